//! Merging, whatever is merged in whichever order.

use ompd_jobs::{Merged, read, text};
use proptest::prelude::*;

/// A report of `ompd-inspect --json`, as far as it is read: what a rank does is one of a few things.
fn report(rank: u64, ranks: u64, does: usize) -> String {
    let (host, pid) = (rank / 4, 1000 + rank);
    let (word, doing, line) = match does {
        0 => ("RUNNING", "MPI_Barrier", 13),
        1 => ("DEADLOCK", "omp_set_lock", 40),
        _ => ("WAITING", "write", 50 + does),
    };
    let moved = does % 2 == 1;
    format!(
        r#"{{"schema":"ompd-inspect/1","process":{{"pid":{pid},"host":"n{host}","rank":{{"number":{rank},"size":{ranks},"job":"4711.0",
        "launcher":"Slurm"}}}},"answer":{{"word":"{word}","text":"thread 0 (id {pid}) waits","cause":"thread 0 (id {pid}): {doing}",
        "fix":null}},"os_threads":[{{"lwp":{pid},"outside":{{"call":{{"function":"{doing}","file":"src/app.c","line":{line},
        "caller":"exchange"}},"wait":{{"kind":"mpi","mpi":"{doing}","communicator":{{"value":"MPI_COMM_WORLD"}},
        "partner":{{"value":{line}}}}},"text":""}}}}],"stopped_at":{rank}.5,"progress":{{"threads":[{{"moved":{moved}}}]}},
        "runtimes":[{{"teams":[{{"location":{{"value":{{"file":"a.c","line":{line},"function":"f"}}}},"barriers_passed":{pid}}}],
        "loops":[{{"team":0,"handed_out":{{"value":{rank}}},"iterations":{{"value":100}}}}]}}],"stacks":[{{"lwp":{pid},"frames":[{{"function":"exchange","file":"src/app.c",
        "line":{line}}},{{"function":"main","file":"src/app.c","line":5}}]}}],"more":[1,2]}}"#
    )
}

fn merged(parts: impl IntoIterator<Item = Merged>) -> Merged {
    let mut all = Merged::default();
    parts.into_iter().for_each(|part| all.merge(part));
    all
}

fn json(merged: &Merged) -> String {
    serde_json::to_string(merged).expect("it can be written")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any tree of merges in any order, through documents or not, with reports that come twice, gives the same bytes.
    #[test]
    fn every_order_of_merging_gives_the_same(
        does in prop::collection::vec(0..6_usize, 1..24),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 0..48),
        again in any::<prop::sample::Index>(),
    ) {
        let ranks = does.len() as u64;
        let read_one = |(rank, does): (u64, &usize)| read("x", report(rank, ranks, *does).as_bytes()).expect("a report");
        let mut parts: Vec<Merged> = (0..).zip(&does).map(read_one).collect();
        let flat = merged(parts.clone());
        parts.push(parts[again.index(parts.len())].clone());
        for (one, other, through_text) in order {
            if parts.len() == 1 {
                break;
            }
            let mut part = parts.swap_remove(one.index(parts.len()));
            part.merge(parts.swap_remove(other.index(parts.len())));
            if through_text {
                part = read("x", json(&part).as_bytes()).expect("a merged report");
            }
            parts.push(part);
        }
        let tree = merged(parts);
        prop_assert_eq!(json(&tree), json(&flat));
        prop_assert_eq!(tree.inspected.len(), ranks);
        let answered: u64 = tree.answers.values().map(ompd_jobs::Members::len).sum();
        prop_assert_eq!(answered, ranks, "each rank counts once");
    }

    #[test]
    fn nothing_that_is_read_does_harm(text in "\\PC{0,200}", cut in 0..700_usize) {
        let _ = read("x", text.as_bytes());
        let whole = report(3, 8, 1);
        let _ = read("x", &whole.as_bytes()[..cut.min(whole.len())]);
    }
}

#[test]
fn the_page_of_ten_thousand_ranks_is_short_and_begins_with_those_that_differ() {
    const RANKS: u64 = 10_000;
    let does = |rank| match rank {
        5 => 1,
        4242 => 3,
        _ => 0,
    };
    let all = merged((0..RANKS).map(|rank| read("x", report(rank, RANKS, does(rank)).as_bytes()).expect("a report")));
    let page = text::page(&all, None);
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    assert!(lines.len() < 60, "{page}");
    let plain = ompd_report::text::plain(&page);
    assert!(
        plain.starts_with("DEADLOCK  rank 5 (n1, pid 1005): ")
            && plain.contains("\n\n10,000 ranks of job 4711.0 on 2,500 hosts: n[0-2499]\n"),
        "{plain}"
    );
    assert!(plain.contains("rank 4242: write, app.c:53, in exchange"), "{plain}");
    assert!(plain.contains("9,998 ranks (0-4,6-4241,4243-9999): MPI_Barrier, app.c:13, in exchange"), "{plain}");
    // What it takes does not grow with the ranks.
    assert!(json(&all).len() < 4096, "{} bytes", json(&all).len());
}

#[test]
fn ranks_without_a_report_and_with_two_are_named() {
    let of = |rank, does| read("x", report(rank, 6, does).as_bytes()).expect("a report");
    let list = r#"{"schema":"ompd-inspect-list/1","processes":[{"target":"77","refusal":"it belongs to another user\n  remedy: sudo"}]}"#;
    let refused = read("x", list.as_bytes()).expect("a list");
    let all = merged([of(0, 0), of(1, 0), of(2, 1), of(4, 0), of(4, 1), refused]);
    let plain = ompd_report::text::plain(&text::page(&all, None));
    assert!(plain.contains("No report of 2 ranks (3,5) of job 4711.0"), "{plain}");
    assert!(plain.contains("Not inspected: 77: it belongs to another user\n"), "{plain}");
    assert!(plain.contains("Several reports that differ of rank 4 of job 4711.0"), "{plain}");
}

/// The committed schema is the one that the types give; `UPDATE_SCHEMA=1` writes it.
#[test]
fn the_committed_schema_is_current() {
    let path = format!("{}/../../docs/merged.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Merged)).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).expect("writing the schema");
    }
    assert!(
        std::fs::read_to_string(&path).expect(&path) == schema,
        "docs/merged.schema.json is out of date: run with UPDATE_SCHEMA=1"
    );
}

#[test]
fn documents_of_other_kinds_are_refused() {
    for text in ["", "{}", "[1]", r#"{"schema":"ompd-inspect/9"}"#, r#"{"schema":"ompd-inspect-merged/1"}"#] {
        assert!(read("x", text.as_bytes()).is_err(), "{text}");
    }
    let escape = report(1, 2, 0).replace("exchange", "ex\\u001b[31m");
    let page = text::page(&read("x", escape.as_bytes()).expect("a report"), Some(80));
    assert!(page.contains("ex\\u{1b}[31m"), "{page}");
}
