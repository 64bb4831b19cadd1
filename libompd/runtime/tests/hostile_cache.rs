//! Records of the cache that are wrong on purpose, with a right checksum: what another origin or memory contradicts is not used.

use std::io::Write as _;

use ompd_layout::{Facts, Origin};
use ompd_process::live::Live;
use ompd_process::{ElfFile, OpenOptions};
use ompd_runtime::model::{OriginReport, RawSnapshot};
use ompd_runtime::{DECODER, DecodedCache, LayoutsFrom, analyse, discover_by};
use test_programs::{Env, Launch, Opt, build, native_combinations, unknown_build};

/// All that a snapshot shows of a process.
fn shown(s: &RawSnapshot) -> String {
    format!("{:?}{:?}{:?}{:?}{:?}", s.threads, s.teams, s.tasks, s.taskgroups, s.locks)
}

/// The record with one value moved, for each of its values; with what that is.
fn moved(right: &Facts) -> Vec<(String, Facts)> {
    let mut all = Vec::new();
    for (of, fields) in &right.fields {
        for name in fields.keys() {
            let mut wrong = right.clone();
            let field = wrong.fields.get_mut(of).and_then(|fields| fields.get_mut(name)).expect("a field");
            if field.bits.is_none() {
                field.offset += 4;
                all.push((format!("{of}.{name}"), wrong));
            }
        }
    }
    for of in right.sizes.keys() {
        let mut wrong = right.clone();
        *wrong.sizes.get_mut(of).expect("a size") += 8;
        all.push((format!("sizeof({of})"), wrong));
    }
    all
}

#[test]
fn record_with_a_wrong_offset_changes_no_value() {
    for (toolchain, runtime) in native_combinations() {
        let directory = tempfile::tempdir().expect("a directory");
        let library = unknown_build(toolchain, runtime, directory.path()).expect("a build that nobody knows");
        let program = build("nested", toolchain, Opt::O2, &[]).expect("the program builds");
        let path = directory.path().to_str().expect("a plain path");
        let launch = Launch::new(&program, runtime, Env::Settled).variable("LD_LIBRARY_PATH", path);
        let running = launch.start().expect("it starts");

        let below = tempfile::tempdir().expect("a directory");
        let cache = DecodedCache::below(below.path(), DECODER);
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be looked at");
        let file = ElfFile::open(&library).expect("it can be read");
        let analysis = analyse(&file).expect("a runtime");
        let code = analysis.origins.iter().find(|(source, _)| source.origin == Origin::Code);
        let facts = &code.expect("it was decoded").1;
        let used = LayoutsFrom { cache: Some(&cache), ..LayoutsFrom::default() };
        let right = discover_by(&live, LayoutsFrom { anew: true, ..LayoutsFrom::default() });
        cache.keep(&file, facts).expect("a record");
        let is_cached =
            |report: &OriginReport| report.note.as_deref().is_some_and(|note| note.contains("in the cache"));
        let by_cache = discover_by(&live, used);
        assert!(by_cache[0].info().origins.iter().any(is_cached), "{runtime:?}: the right record is used");
        let wrong: Vec<_> = moved(facts)
            .into_iter()
            .map(|(what, facts)| {
                cache.keep(&file, &facts).expect("a record");
                (what, discover_by(&live, used))
            })
            .collect();
        live.stop().expect("it can be stopped");
        let right = shown(&right[0].snapshot(&live));
        let mut believed = Vec::new();
        for (what, wrong) in &wrong {
            let wrong = wrong[0].snapshot(&live);
            if shown(&wrong) != right && wrong.issues.is_empty() {
                believed.push(what.clone());
            }
        }
        live.resume();
        // Directly, so that it is seen for passing tests as well.
        let has_layout = analysis.profile.is_ok();
        let fits = if has_layout { "a shipped layout fits" } else { "no shipped layout fits" };
        let (count, lines) = (wrong.len(), believed.join(", "));
        let _ = writeln!(std::io::stderr(), "{runtime:?}, {fits}: {count} wrong records, believed: [{lines}]");
        assert!(count > 20);
        // Where no other origin knows a value, memory alone can contradict it, and does of most.
        let most = if has_layout { 0 } else { count / 10 };
        assert!(believed.len() <= most, "{runtime:?}: {believed:?}");
        running.release().expect("it goes on to its end");
    }
}
