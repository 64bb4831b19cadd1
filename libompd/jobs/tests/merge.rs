//! Merging, whatever is merged in whichever order.

use std::collections::BTreeMap;

use ompd_jobs::{Merged, Process, html, read, text, tree};
use proptest::prelude::*;

/// A report of `ompd-inspect --json`, as far as it is read: what a rank does is one of a few things.
fn report(rank: u64, ranks: u64, does: usize) -> String {
    let (host, pid) = (rank / 4, 1000 + rank);
    let (word, doing, line) = match does {
        0 => ("RUNNING", "MPI_Barrier", 13),
        1 => ("DEADLOCK", "omp_set_lock", 40),
        _ => ("WAITING", "write", 50 + does),
    };
    let (moved, second) = (does % 2 == 1, rank % 2);
    format!(
        r#"{{"schema":"ompd-inspect/1","process":{{"pid":{pid},"host":"n{host}","rank":{{"number":{rank},"size":{ranks},"job":"4711.0",
        "launcher":"Slurm"}}}},"answer":{{"word":"{word}","text":"thread 0 (id {pid}) waits","cause":"thread 0 (id {pid}): {doing}",
        "fix":null}},"os_threads":[{{"lwp":{pid},"outside":{{"call":{{"function":"{doing}","file":"src/app.c","line":{line},
        "caller":"exchange"}},"wait":{{"kind":"mpi","mpi":"{doing}","communicator":{{"value":"MPI_COMM_WORLD"}},
        "partner":{{"value":{line}}}}},"text":""}}}}],"stopped_at":{second}.5,"progress":{{"threads":[{{"moved":{moved}}}]}},
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
        for (rank, does) in does.iter().enumerate().filter(|(_, does)| **does == 5) {
            let mut failed = Merged::default();
            failed.add_failure(&format!("{rank}.json"), if rank % 2 == *does % 2 { "it is empty" } else { "no permission" });
            parts.push(failed);
        }
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
        let all = merged(parts);
        prop_assert_eq!(json(&all), json(&flat));
        prop_assert_eq!(all.inspected.len(), ranks);
        let answered: u64 = all.answers.values().map(ompd_jobs::Members::len).sum();
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
    let all = ten_thousand();
    let page = text::page(&all, None);
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    assert!(lines.len() < 60, "{page}");
    let plain = ompd_report::text::plain(&page);
    assert!(
        plain.starts_with("DEADLOCK  rank 5 (n1, pid 1005): ")
            && plain.contains("\n\n10,000 ranks of job 4711.0 on 2,500 hosts: n[0-2499], read within 1.0 s\n"),
        "{plain}"
    );
    assert!(plain.contains("rank 4242: write, app.c:53, in exchange"), "{plain}");
    assert!(plain.contains("9,998 ranks (0-4,6-4241,4243-9999): MPI_Barrier, app.c:13, in exchange"), "{plain}");
    // What it takes does not grow with the ranks.
    assert!(json(&all).len() < 8192, "{} bytes", json(&all).len());
}

/// 10,000 ranks: rank 5 waits for a lock, rank 4242 writes, the others are in a barrier.
fn ten_thousand() -> Merged {
    let does = |rank| match rank {
        5 => 1,
        4242 => 3,
        _ => 0,
    };
    merged((0..10_000).map(|rank| read("x", report(rank, 10_000, does(rank)).as_bytes()).expect("a report")))
}

#[test]
fn the_tree_of_ten_thousand_ranks_has_a_line_for_each_place_where_they_part() {
    let all = ten_thousand();
    let plain = ompd_report::text::plain(&tree::text(&all, Some(100)));
    let expected = "\n\n10,000 ranks (0-9999): main app.c:5\n  \
                    rank 5, 1 thread: exchange app.c:40 > omp_set_lock\n  \
                    rank 4242, 1 thread: exchange app.c:53 > write\n  \
                    9,998 ranks (0-4,6-4241,4243-9999), 1 thread each: exchange app.c:13 > MPI_Barrier\n";
    assert!(plain.ends_with(expected), "{plain}");
    for width in [40, 60, 80] {
        let narrow = ompd_report::text::plain(&tree::text(&all, Some(width)));
        assert!(narrow.lines().all(|line| line.chars().count() <= width.into()), "{width}: {narrow}");
    }
    let dot = tree::dot(&all);
    let nodes = dot.lines().filter(|line| line.contains(" [label=") && !line.contains(" -> ")).count();
    assert_eq!((nodes, dot.matches(" -> ").count()), (5, 4), "{dot}");
    assert!(dot.contains(" -> n2 [label=\"rank 5, 1 thread\"];"), "{dot}");
    assert!(dot.contains("[label=\"exchange app.c:40\\nomp_set_lock\","), "{dot}");
}

#[test]
fn a_tree_of_very_many_stacks_stays_short_and_has_the_branch_of_most_ranks() {
    let of = |rank: u64| read("x", report(rank, 5000, if rank < 2000 { rank as usize + 2 } else { 0 }).as_bytes());
    let all = merged((0..5000).map(|rank| of(rank).expect("a report")));
    let plain = ompd_report::text::plain(&tree::text(&all, Some(80)));
    assert!(plain.lines().count() < 40, "{plain}");
    assert!(plain.contains("3,000 ranks (2000-4999), 1 thread each: exchange app.c:13"), "{plain}");
    assert!(plain.contains("… 1,989 more branches"), "{plain}");
}

#[test]
fn the_page_for_browsers_has_all_and_stays_small() {
    let page = html::page(&ten_thousand(), &BTreeMap::new());
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for text in [
        "<h1>10,000 ranks of job 4711.0 on 2,500 hosts: n[0-2499], read within 1.0 s</h1>",
        "<b>DEADLOCK</b> rank 5 (n1, pid 1005)",
        "<a href=\"#process-0\">rank 5 (n1, pid 1005)</a>",
        "<code>ompd-inspect stacks 1005</code>",
        "9,998 ranks (0-4,6-4241,4243-9999), 1 thread each",
        "\"0-4,6-4241,4243-9999\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.len() < 32_768, "{} bytes", page.len());
}

#[test]
fn text_of_a_hostile_report_is_text_on_every_page() {
    // Each text of the report, with everything that HTML, Graphviz and terminals may take for their own.
    let evil = "<script>alert(1)</script>&amp;'\\\"><img src=x onerror=y>\\u001b[31m\\u202e\\u0000`\\n\\u2028</style>";
    let evil_report = report(1, 2, 1);
    let mut hostile = evil_report.clone();
    for (name, value) in [
        ("host", "n0"),
        ("job", "4711.0"),
        ("word", "DEADLOCK"),
        ("text", "thread 0 (id 1001) waits"),
        ("cause", "thread 0 (id 1001): omp_set_lock"),
        ("function", "omp_set_lock"),
        ("function", "exchange"),
        ("caller", "exchange"),
        ("file", "src/app.c"),
    ] {
        let from = format!("\"{name}\":\"{value}\"");
        assert!(hostile.contains(&from), "{from}");
        hostile = hostile.replace(&from, &format!("\"{name}\":\"{evil}{name}\""));
    }
    let mut all = read("x", hostile.as_bytes()).expect("a report");
    all.merge(read("x", evil_report.as_bytes()).expect("a report"));
    all.add_failure("<b>1", "<i>\u{202e}");
    let process = all.answers.values().filter_map(ompd_jobs::Members::first);
    let files = process.map(|process| (process.clone(), "javascript:alert(1)//\"<u>.json".to_owned())).collect();
    let page = html::page(&all, &files);
    let (head, body) = page.split_once("<body>").expect("a body");
    let title = head.split_once("</title>").expect("a title").0;
    for forbidden in
        ["<script>alert", "<img", "<b>1", "<i>", "<u>", "\u{1b}", "\u{202e}", "\u{0}", "\u{2028}", "</style>"]
    {
        assert!(!body.contains(forbidden) && !title.contains(forbidden), "{forbidden:?}: {page}");
    }
    assert_eq!(page.matches("<script").count(), 2, "{page}");
    assert!(body.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && body.contains("\\u{202e}"), "{page}");
    assert!(body.contains("href=\"./javascript%3Aalert%281%29//%22%3Cu%3E.json\""), "{page}");
    // Within tags, quotes end the value that they began.
    let attributes = body.split('<').filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag);
    assert!(attributes.clone().all(|tag| tag.matches('"').count() % 2 == 0 && !tag.contains("onerror")), "{page}");
    for text in [tree::text(&all, Some(80)), tree::dot(&all), text::page(&all, Some(80))] {
        let plain = ompd_report::text::plain(&text);
        assert!(!plain.contains(|c: char| c.is_control() && c != '\n' || "\u{202e}\u{2028}".contains(c)), "{plain}");
    }
    let dot = tree::dot(&all);
    for line in dot.lines().filter(|line| line.contains("[label=")) {
        let quotes = line.replace("\\\\", "").replace("\\\"", "");
        assert!(quotes.matches('"').count() % 2 == 0 && line.ends_with("];"), "{line}");
    }
}

#[test]
fn failures_of_one_reason_are_one_entry() {
    let mut all = Merged::default();
    for number in 0..5000 {
        all.add_failure(&format!("out/rank{number}.json"), "no report: it is empty");
        all.add_failure(&number.to_string(), &format!("process {number} cannot be stopped"));
    }
    assert_eq!(all.failures.len(), 2);
    assert!(json(&all).len() < 1024, "{}", json(&all));
    let plain = ompd_report::text::plain(&text::page(&all, None));
    assert!(plain.contains("Not inspected: 5,000 (out/rank[0-4999].json): no report: it is empty\n"), "{plain}");
    assert!(plain.contains("Not inspected: 5,000 ([0-4999]): process N cannot be stopped\n"), "{plain}");
}

#[test]
fn merged_reports_beyond_all_limits_are_refused() {
    let json = json(&ten_thousand());
    let place = json.find("\"frames\":[").expect("a stack") + "\"frames\":[".len();
    let deep = json[..place].to_owned() + &"\"f\",".repeat(200) + &json[place..];
    assert!(matches!(read("x", deep.as_bytes()), Err(ompd_jobs::ReadError::Long)));
    let long = json.replace("MPI_Barrier", &"x".repeat(3000));
    assert!(matches!(read("x", long.as_bytes()), Err(ompd_jobs::ReadError::Long)));
    // Each text by itself.
    for text in
        ["\"region\":\"a.c:13, in f", "\"place\":\"app.c:13, in exchange", "\"rank\":13,\"function\":\"MPI_Barrier"]
    {
        assert!(json.contains(text), "{text}: {json}");
        let long = json.replacen(text, &(text.to_owned() + &"x".repeat(3000)), 1);
        assert!(matches!(read("x", long.as_bytes()), Err(ompd_jobs::ReadError::Long)), "{text}");
    }
    let nested = format!("{{\"schema\":\"ompd-inspect-merged/1\",\"x\":{}", "[".repeat(1 << 20));
    assert!(read("x", nested.as_bytes()).is_err());
}

#[test]
fn of_very_many_partners_the_first_are_kept_in_any_order() {
    const RANKS: u64 = 300;
    // The partner is the line of the call.
    let of = |rank: u64| read("x", report(rank, RANKS, rank as usize + 2).as_bytes()).expect("a report");
    let (up, down) = (merged((0..RANKS).map(of)), merged((0..RANKS).rev().map(of)));
    assert_eq!(json(&up), json(&down));
    assert_eq!(up.partners.len(), 256);
    assert!(up.partners.keys().map(|partner| partner.rank).eq(52..308));
    assert_eq!(up.more.iter().collect::<Vec<_>>(), ["partners"]);
    let plain = ompd_report::text::plain(&text::page(&up, None));
    assert!(plain.contains("Others wait for other ranks; --json has them"), "{plain}");
}

#[test]
fn what_a_library_does_within_a_call_makes_no_other_stack() {
    let inner = |rank: u64, names: &str| {
        let whole = report(rank, 3, 0).replace("\"frames\":[", &format!("\"frames\":[{names}"));
        read("x", whole.as_bytes()).expect("a report")
    };
    let library = r#"{"function":"sched_yield"},{"function":"wait_all"},{"function":"PMPI_Barrier"},"#;
    let all = merged([inner(0, library), inner(1, r#"{"function":"PMPI_Barrier"},"#), inner(2, "")]);
    let stacks: Vec<String> = all.stacks.keys().map(|stack| stack.frames.join(" > ")).collect();
    assert_eq!(stacks, ["main  app.c:5 > exchange  app.c:13 > MPI_Barrier"]);
}

/// A main thread in code without symbols is at a place of its library.
#[test]
fn a_place_without_a_name_is_one_of_its_library() {
    let of_frame = |frame: &str| {
        let stack = format!(r#"{{"lwp":7,"frames":[{frame}]}}"#);
        let report = format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":7}},"answer":{{"word":"RUNNING","text":"t"}},"stacks":[{stack}]}}"#
        );
        read("x", report.as_bytes())
            .expect("a report")
            .places
            .keys()
            .map(|place| place.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_frame(r#"{"module":"libsolver.so","offset":"0x1040"}"#), ["in libsolver.so+0x1040"]);
    assert_eq!(of_frame(r#"{"pc":"0x7f0000001040"}"#), [""; 0]);
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

#[test]
fn processes_that_failed_are_named_by_rank() {
    let mut all = Merged::default();
    for rank in 0..5000 {
        let process =
            Process { job: "4711.0".to_owned(), rank: Some(rank), host: Some(format!("n{}", rank / 8)), pid: Some(7) };
        all.add_failed_process(&process, &format!("process {rank} has ended"));
        all.add_failure(&format!("host x{rank}"), &format!("ssh: connect to host x{rank} port 22: Connection refused"));
    }
    assert_eq!(all.failures.len(), 2);
    assert!(json(&all).len() < 1024, "{}", json(&all));
    let unwrapped = |all: &Merged| {
        let plain = ompd_report::text::plain(&text::page(all, None));
        plain.split_whitespace().collect::<Vec<_>>().join(" ") + " "
    };
    let plain = unwrapped(&all);
    for told in [
        "Not inspected: 5,000 ranks (0-4999), first rank 0 (n0, pid 7): process N has ended ",
        "Not inspected: 5,000 (host x[0-4999]): ssh: connect to host HOST port 22: Connection refused ",
    ] {
        assert!(plain.contains(told), "{told}: {plain}");
    }
    for reason in 0..9 {
        all.add_failure(&format!("core.{reason}"), &format!("reason {}", "x".repeat(reason)));
    }
    let plain = unwrapped(&all);
    assert!(plain.contains("Not inspected: 7 others, for 7 more reasons; --json has all "), "{plain}");
}

/// Two jobs whose launchers give no name have the same ranks.
#[test]
fn processes_of_one_rank_are_named_although_they_count_once() {
    let of = |rank: u64, pid: u64, host: &str| {
        let whole = report(rank, 2, 0)
            .replace("\"job\":\"4711.0\",", "")
            .replace(&format!("\"pid\":{}", 1000 + rank), &format!("\"pid\":{pid}"));
        read("x", whole.replace("\"n0\"", &format!("\"{host}\"")).as_bytes()).expect("a report")
    };
    let page = |all: &Merged| ompd_report::text::plain(&text::page(all, None));
    let one = merged([of(0, 11, "n0"), of(1, 12, "n0")]);
    assert!(!page(&one).contains("the same rank"), "{}", page(&one));
    for second in [of(0, 21, "n0"), of(0, 11, "n7")] {
        let all = merged([one.clone(), second.clone()]);
        let told = "Several processes have the same rank: rank 0 (n0, pid 11) and rank 0 (n";
        assert!(page(&all).contains(told) && page(&all).contains("such processes count once"), "{}", page(&all));
        assert_eq!(json(&all), json(&merged([second, one.clone()])));
    }
    // The same report again is no other process.
    assert_eq!(json(&merged([one.clone(), of(0, 11, "n0")])), json(&one));
}

#[test]
fn cores_without_a_rank_are_told_apart_by_their_names() {
    let core = |name: &str| {
        let text =
            r#"{"schema":"ompd-inspect/1","source":"core","process":{"pid":7},"answer":{"word":"IDLE","text":"t"}}"#;
        read(name, text.as_bytes()).expect("a report")
    };
    let all = merged([core("n1/core.7"), core("n2/core.7"), core("n2/core.7")]);
    assert_eq!(all.inspected.len(), 2, "{}", json(&all));
    let plain = ompd_report::text::plain(&text::page(&all, None));
    assert!(plain.contains("2 processes, first process 7 (n1/core.7): t\n"), "{plain}");
}

#[test]
fn nothing_is_listed_without_a_name() {
    let of = |pid: u64, more: &str| {
        let text = format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":{pid}}},"answer":{{"word":"IDLE","text":"t"}},{more}}}"#
        );
        read("x", text.as_bytes()).expect("a report")
    };
    let all = merged([
        of(1, r#""os_threads":[{"lwp":1,"outside":{"call":{"function":""}}}]"#),
        of(2, r#""stacks":[{"lwp":2,"frames":[{"function":" "}]}]"#),
        of(3, r#""stacks":[{"lwp":3,"frames":[{"function":"","module":"a.so","offset":"0x1"}]}]"#),
    ]);
    let plain = ompd_report::text::plain(&text::page(&all, None));
    let told = "\nMain threads\n  process 3: in a.so+0x1\n  2 processes: unknown: no frame has a name\n";
    assert!(plain.ends_with(told), "{plain}");
}

/// Other programs sort keys, lay documents out, and put them into arrays.
#[test]
fn documents_that_other_programs_have_written_are_read_or_refused_with_the_reason() {
    let all = ten_thousand();
    let value: serde_json::Value = serde_json::from_str(&json(&all)).expect("JSON");
    let sorted = serde_json::to_string(&value).expect("JSON");
    assert!(!sorted.starts_with("{\"schema\"") && read("x", sorted.as_bytes()).is_ok_and(|read| read == all));
    let pretty = serde_json::to_string_pretty(&value).expect("JSON");
    assert!(read("x", pretty.as_bytes()).is_ok_and(|read| read == all));
    let refused = |text: &str| read("x", text.as_bytes()).expect_err("no report").to_string();
    assert!(refused(&format!("[{sorted}]")).contains("array of JSON"));
    for version in ["ompd-inspect/2", "ompd-inspect-merged/7", "ompd-inspect-list/0"] {
        let told = refused(&format!("{{\"schema\":\"{version}\"}}"));
        assert!(told.contains(version) && told.contains("the ompd-inspect that has made it"), "{told}");
    }
    assert!(refused("{\"schema\":\"ompd-inspector/1\"}").contains("no report of a known format"));
    // A name in a report is no name of a format.
    let named = report(0, 1, 0).replacen("\"pid\"", "\"exe\":\"ompd-inspect-merged/1\",\"pid\"", 1);
    assert!(read("x", named.as_bytes()).is_ok());
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
