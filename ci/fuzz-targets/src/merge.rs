//! Reports of ranks, whatever they contain: read, merged, and shown in every form.

use std::collections::BTreeMap;

use ompd_jobs::{Documents, Merged, html, read, text, tree};

/// Bytes of a merged report for each byte of input. A stack of a few bytes has the names of its job and host, all escaped.
const GROWTH: usize = 1024;
/// Bytes of the longest page.
const PAGE: usize = 64 << 20;

/// Reads documents and shows what they say together.
pub fn check(bytes: &[u8]) {
    let mut documents = Documents::new(bytes);
    let mut all = Merged::default();
    while let Some(document) = documents.read_next().expect("memory can be read") {
        match read("input", document) {
            Ok(merged) => all.merge(merged),
            Err(error) => all.add_failure("input", &error.to_string()),
        }
    }
    let document = json(&all);
    assert!(document.len() <= GROWTH * (bytes.len() + 16), "{} bytes of {}", document.len(), bytes.len());
    let mut twice = all.clone();
    twice.merge(all.clone());
    assert_eq!(json(&twice), document, "merged twice is not the same as once");
    let again = read("input", document.as_bytes()).expect("what is written can be read");
    assert_eq!(json(&again), document, "read again it is another");
    let page = html::page(&all, &BTreeMap::new());
    assert!(page.len() <= PAGE && !page.contains(|c: char| c.is_control() && c != '\n'), "{} bytes", page.len());
    for width in [None, Some(80)] {
        assert!(text::page(&all, width).len() <= PAGE && tree::text(&all, width).len() <= PAGE);
    }
    let dot = tree::dot(&all);
    assert!(dot.len() <= PAGE && !dot.contains(|c: char| c.is_control() && c != '\n'));
}

fn json(merged: &Merged) -> String {
    serde_json::to_string(merged).expect("a merged report can be written")
}

/// Inputs to start from: reports of two ranks, a list, what they make together, and a document that is cut.
pub fn samples() -> Vec<(String, Vec<u8>)> {
    let report = |rank: u32, word: &str, call: &str| {
        format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":70{rank},"host":"n1.x","rank":{{"number":{rank},"size":3,"job":"9.0","launcher":"Slurm"}}}},"answer":{{"word":"{word}","text":"thread 0 (id 70{rank}) waits","cause":"0x7f","fix":null}},"os_threads":[{{"lwp":70{rank},"outside":{{"call":{{"function":"{call}","file":"a/app.c","line":7,"caller":"main"}},"text":""}}}}],"stacks":[{{"lwp":70{rank},"frames":[{{"function":"main","file":"a/app.c","line":7}},{{"construct":"parallel","module":"m","offset":"0x1"}}],"in_call":{{"construct":"barrier"}}}}]}}"#
        )
    };
    let [one, two] = [report(0, "DEADLOCK", "omp_set_lock"), report(1, "RUNNING", "MPI_Barrier")];
    let list = format!(
        r#"{{"schema":"ompd-inspect-list/1","processes":[{{"target":"70","report":{one}}},{{"target":"71","refusal":"gone"}}]}}"#
    );
    let mut all = Merged::default();
    for text in [&one, &two, &list] {
        all.merge(read("sample", text.as_bytes()).expect("a report"));
    }
    let merged = json(&all);
    let cut = format!("{}\n{two}{merged}\n", &one[..one.len() / 2]);
    let named = [("one", one), ("two", two), ("list", list), ("merged", merged), ("cut", cut)];
    named.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect()
}
