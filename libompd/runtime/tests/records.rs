//! What is shipped of the code of known builds is what decoding gives.

use std::io::Write as _;

use ompd_layout::{Facts, Origin, decoded};
use ompd_process::live::Live;
use ompd_process::{ElfFile, OpenOptions};
use ompd_runtime::{LayoutsFrom, analyse, discover, discover_by, family};
use test_programs::{Env, Opt, Running, Runtime, build, combinations};

fn records() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of = |about: &'static family::About| ompd_runtime::decoded(about.name).expect("a family");
    let lines = family::families().flat_map(move |about| of(about).lines()).filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a key and facts"))
}

#[test]
fn every_record_can_be_read() {
    let mut last = "";
    let mut count = 0;
    for (key, facts) in records() {
        assert_eq!(key.split('/').count(), 3, "{key}");
        assert_ne!(key, last);
        let facts: Facts = serde_json::from_str(facts).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert!(!facts.fields.is_empty() && !facts.globals.is_empty(), "{key}");
        (last, count) = (key, count + 1);
    }
    assert!(count > 20, "{count}");
}

#[test]
fn records_are_what_decoding_gives() {
    for runtime in Runtime::available() {
        let file = ElfFile::open(&runtime.library().expect("it is here")).expect("it can be read");
        let analysis = analyse(&file).expect("it is a runtime");
        let shipped = ompd_runtime::decoded(analysis.family).expect("a family");
        let Some(recorded) = decoded::find(shipped, &file) else {
            let _ =
                writeln!(std::io::stderr(), "skipped: {runtime:?} of this machine: there is no record of this build");
            continue;
        };
        let code = analysis.origins.iter().find(|(source, _)| source.origin == Origin::Code);
        assert_eq!(recorded, code.expect("it was decoded").1, "{runtime:?}");
    }
}

#[test]
fn a_known_build_is_read_as_one_that_is_decoded() {
    for (toolchain, runtime) in combinations() {
        let program = build("nested", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("it starts");
        let live = Live::open(running.pid, &OpenOptions::default()).expect("it can be looked at");
        let by_record = discover(&live, &[]);
        let anew = discover_by(&live, LayoutsFrom { anew: true, ..LayoutsFrom::default() });
        assert_eq!(by_record.len(), anew.len());
        for (by_record, anew) in by_record.iter().zip(&anew) {
            let (by_record, anew) = (by_record.info(), anew.info());
            let all = |info: &ompd_runtime::model::InstanceInfo| -> Vec<String> {
                info.layout.iter().map(|entry| format!("{} {} {}", entry.name, entry.value, entry.origin)).collect()
            };
            assert_eq!(all(by_record), all(anew), "{runtime:?}");
            let is_recorded = |info: &ompd_runtime::model::InstanceInfo| {
                let code = info.origins.iter().find(|report| report.origin == Origin::Code);
                code.and_then(|report| report.note.as_deref()).is_some_and(|note| note.starts_with("decoded before"))
            };
            assert!(!is_recorded(anew));
            if !is_recorded(by_record) {
                let _ = writeln!(
                    std::io::stderr(),
                    "skipped: {runtime:?} of this machine: there is no record of this build"
                );
            }
        }
        running.release().expect("it goes on to its end");
    }
}
