//! Limits, and work that does not grow with the number of threads.

use ompd_stack::{Cache, End};

/// Calls of the recursion. The middle of a stack this deep is left out.
const DEEP: usize = 100_000;

use crate::support::{Built, have, places, skip};

#[test]
fn of_a_deep_recursion_both_ends_are_told() {
    let program = Built::places(&["-O2", "-g", "-fno-optimize-sibling-calls"]);
    let waiting = program.start(&["recursive", &DEEP.to_string()], 1);
    let report = waiting.look().report(&Cache::default());
    let logical = &report.logical[0];
    assert_eq!((&logical.end, &logical.gap), (&End::Root, &None));
    assert_eq!(logical.frames.last().and_then(|frame| frame.function.as_deref()), Some("main"));
    let told = logical.frames.len() - 1;
    assert!(told < DEEP / 10, "{told} frames");
    let cut = |text: &str| text.strip_prefix('<')?.strip_suffix(" frames left out>")?.parse::<usize>().ok();
    let cuts: Vec<usize> = logical.frames.iter().filter_map(|frame| cut(frame.function.as_deref()?)).collect();
    assert_eq!(cuts.len(), 1, "{cuts:?}");
    assert!((DEEP..DEEP + 100).contains(&(told + cuts[0])), "{told} frames and {cuts:?}");
}

#[test]
fn of_a_deep_recursion_the_frames_repeat_themselves() {
    let program = Built::places(&["-O2", "-fno-optimize-sibling-calls"]);
    let waiting = program.start(&["recursive", &DEEP.to_string()], 1);
    let ours = waiting.look().backtrace();
    assert_eq!(ours.end, End::Root);
    assert!(ours.frames.len() > DEEP);
    let frames = places(&ours);
    // One return address, and as much stack each time.
    let (first, last) = (100, DEEP - 100);
    let size = frames[first + 1].1 - frames[first].1;
    for pair in frames[first..last].windows(2) {
        assert_eq!((pair[1].0, pair[1].1 - pair[0].1), (pair[0].0, size));
    }
    if !have("gdb") {
        return skip("there is no gdb to compare with");
    }
    let theirs = &waiting.in_gdb("500")[0].1;
    assert_eq!(theirs.len(), 500);
    assert_eq!(&frames[..500], &theirs[..]);
}

#[test]
fn what_was_parsed_is_kept() {
    let program = Built::places(&["-O2", "-g"]);
    let waiting = program.start(&["realigned"], 1);
    let cache = Cache::default();
    let first = waiting.look().report(&cache);
    let parsed = cache.parsed();
    assert!(parsed > 0);
    let second = waiting.look().report(&cache);
    assert_eq!(cache.parsed(), parsed, "files were opened again");
    assert_eq!(first.logical[0].frames, second.logical[0].frames);
}

#[test]
fn threads_at_the_same_place_cost_no_look_ups() {
    let program = Built::places(&["-O2", "-g"]);
    let looked_up = [4, 64].map(|count| {
        let cache = Cache::default();
        let report = program.start(&["many", &count.to_string()], count + 1).look().report(&cache);
        assert_eq!(report.logical.len(), count + 1);
        assert!(report.logical.iter().all(|stack| stack.end == End::Root && stack.frames.len() >= 2));
        cache.looked_up()
    });
    assert_eq!(looked_up[0], looked_up[1]);
    assert!(looked_up[0] > 4, "{looked_up:?}");
}
