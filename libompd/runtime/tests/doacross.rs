//! How far doacross loops are, compared with what a program knows of itself, on every runtime at hand.

use std::path::Path;

use ompd_process::{Live, OpenOptions};
use ompd_runtime::discover;
use ompd_runtime::model::*;
use test_programs::{Held, Opt, Skip, Toolchain, build, libomp_libraries};

#[path = "common/libgomp.rs"]
mod libgomp;
#[path = "common/lying.rs"]
mod lying;
#[path = "common/snapshot.rs"]
mod one_stop;

use lying::lying;
use one_stop::snapshot;

/// The loops of the program, the iterations to stop at, and how many loops are nested in each.
const LOOPS: [(&str, &[&str], u32); 6] = [
    ("static", &["5"], 1),
    ("static2", &["0", "5", "12"], 1),
    ("dynamic", &["5"], 1),
    ("guided", &["5"], 1),
    ("unsigned", &["5"], 1),
    ("nest", &["1", "5"], 2),
];

/// What the program says of itself, each iteration by its counters.
struct Said {
    posted: Vec<Vec<u64>>,
    /// The iteration it stops at.
    at: Vec<u64>,
    /// What each member has posted last.
    members: Vec<Posted>,
}

impl Said {
    fn of(held: &Held) -> Said {
        let numbers = |words: Vec<&str>| words.iter().map(|word| word.parse().expect("a number")).collect::<Vec<u64>>();
        let [at] = &held.told("loop")[..] else { panic!("{:?}", held.told("loop")) };
        let told: Vec<Vec<u64>> = held.told("member").into_iter().map(numbers).collect();
        let last = |member: u32| told.iter().find(|t| t[0] == u64::from(member)).map(|t| t[1..].to_vec());
        Said {
            posted: held.told("posted").into_iter().map(numbers).collect(),
            at: numbers(at.clone()),
            members: (0..3).map(|member| Posted { member, last: last(member) }).collect(),
        }
    }
}

/// The loop with what is known of how far it is.
fn seen(snapshot: &RuntimeSnapshot, what: &str) -> (Loop, Doacross) {
    assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);
    let [found] = &snapshot.loops[..] else { panic!("{what}: {:?}", snapshot.loops) };
    let doacross = found.doacross.value().and_then(Option::as_ref);
    (found.clone(), doacross.unwrap_or_else(|| panic!("{what}: {:?}", found.doacross)).clone())
}

fn each_case(mut check: impl FnMut(&str, &str, u32)) {
    for (which, stops, nested) in LOOPS {
        for at in stops {
            check(which, at, nested);
        }
    }
}

#[test]
fn on_libgomp() {
    let libraries = libgomp::libraries();
    for library in &libraries {
        let program = build("doacross", Toolchain::Gcc, Opt::O2, &[]).expect("it builds");
        let folder = &library.folder;
        each_case(|which, at, nested| {
            let what = format!("{which} {at} on {}", library.what);
            let Some(held) = Held::start(&program.path, folder, &what, &[], &[which, at]) else { return };
            let said = Said::of(&held);
            let (found, doacross) = seen(&snapshot(held.pid(), &what), &what);
            assert_eq!(doacross.dimensions, nested, "{what}");
            assert_eq!(doacross.furthest.value(), Some(&said.posted.last().cloned()), "{what}: {doacross:?}");
            match nested {
                1 => assert_eq!(doacross.missing.value(), Some(&Some(said.at.clone())), "{what}: {doacross:?}"),
                _ => assert!(doacross.missing.why().is_some(), "{what}: {doacross:?}"),
            }
            assert!(doacross.posted.why().is_some(), "{what}: {doacross:?}");
            let members = if found.schedule.get() == Some(LoopSchedule::Static) { said.members } else { Vec::new() };
            assert_eq!(doacross.members, members, "{what}");
            assert_eq!(found.ordered_turn.get(), Some(None), "{what}");
            assert_eq!(found.members.len(), 1, "{what}: {found:?}");
            held.end();
        });
        let what = format!("huge on {}", library.what);
        let Some(held) = Held::start(&program.path, folder, &what, &[], &["huge", "0"]) else { continue };
        let (_, doacross) = seen(&snapshot(held.pid(), &what), &what);
        assert_eq!(doacross.dimensions, 2, "{what}");
        assert!(
            doacross.furthest.why().is_some_and(|why| why.to_string().contains("one number")),
            "{what}: {doacross:?}"
        );
        held.end();
    }
}

/// A loop that is ordered in the plain way is none, however many members it has a queue for.
#[test]
fn ordered_loops_are_no_doacross_loops() {
    for library in libgomp::libraries() {
        let program = build("ordered_many", Toolchain::Gcc, Opt::O2, &[]).expect("it builds");
        let folder = &library.folder;
        for members in ["2", "40"] {
            let what = format!("{members} members on {}", library.what);
            let Some(held) = Held::start(&program.path, folder, &what, &[], &[members]) else { continue };
            let snapshot = snapshot(held.pid(), &what);
            let [found] = &snapshot.loops[..] else { panic!("{what}: {:?}", snapshot.loops) };
            assert_eq!(found.doacross.value(), Some(&None), "{what}");
            held.end();
        }
    }
}

/// On a runtime of the LLVM family, in a program that `toolchain` has compiled.
fn on_libomp(toolchain: Toolchain, library: &Path, name: &str) -> usize {
    let program = build("doacross", toolchain, Opt::O2, &[]).expect("it builds");
    let mut tried = 0;
    each_case(|which, at, nested| {
        let what = format!("{which} {at} by {toolchain:?} on {name}");
        let Some(held) = Held::start(&program.path, library, &what, &[], &[which, at]) else { return };
        let said = Said::of(&held);
        let snapshot = snapshot(held.pid(), &what);
        if !snapshot.instance.missing.is_empty() {
            Skip::because(format!("{what}: its layout is not known as a whole")).show();
            return held.end();
        }
        let (found, doacross) = seen(&snapshot, &what);
        assert_eq!(doacross.dimensions, nested, "{what}");
        assert_eq!(doacross.posted.get(), Some(said.posted.len() as u64), "{what}: {doacross:?}");
        assert_eq!(doacross.furthest.value(), Some(&said.posted.last().cloned()), "{what}: {doacross:?}");
        match doacross.missing.value() {
            Some(missing) => assert_eq!(*missing, Some(said.at.clone()), "{what}: {doacross:?}"),
            // The bits after the last iteration of an inner loop may be for none.
            None => assert!(said.at == [12] || said.at == [1, 1], "{what}: {doacross:?}"),
        }
        assert_eq!((found.members.len(), found.completed.get()), (1, Some(2)), "{what}: {found:?}");
        held.end();
        tried += 1;
    });
    tried
}

#[test]
fn on_every_libomp() {
    let mut tried = 0;
    for toolchain in [Toolchain::Clang, Toolchain::Gcc] {
        if let Err(skip) = test_programs::can_build("doacross", toolchain).expect("the program is there") {
            skip.show();
            continue;
        }
        for (directory, name) in libomp_libraries() {
            tried += on_libomp(toolchain, directory.path(), &name);
        }
    }
    assert!(tried > 0, "no libomp was tried");
}

/// What memory that lies is read as has the form of an answer.
#[test]
fn hostile_memory() {
    let gomp = libgomp::libraries().into_iter().next();
    let kmp = libomp_libraries().into_iter().next();
    let on_gomp = gomp.iter().map(|library| (library.folder.as_path(), Toolchain::Gcc));
    let on_kmp = kmp.iter().map(|(directory, _)| (directory.path(), Toolchain::Clang));
    let mut tried = 0;
    for (folder, toolchain) in on_gomp.chain(on_kmp) {
        if let Err(skip) = test_programs::can_build("doacross", toolchain).expect("the program is there") {
            skip.show();
            continue;
        }
        let program = build("doacross", toolchain, Opt::O2, &[]).expect("it builds");
        for (which, at, _) in LOOPS {
            let Some(held) = Held::start(&program.path, folder, which, &[], &[which, at[0]]) else { continue };
            let mut live = Live::open(held.pid(), &OpenOptions::default()).expect("it can be opened");
            let runtimes = discover(&live, &[]);
            live.stop().expect("it can be stopped");
            for seed in 0..100 {
                let snapshot = runtimes[0].snapshot(&lying(&live, seed));
                for doacross in snapshot.loops.iter().filter_map(|of| of.doacross.value()?.as_ref()) {
                    let told = [doacross.furthest.value(), doacross.missing.value()].into_iter().flatten().flatten();
                    let all = told.chain(doacross.members.iter().filter_map(|posted| posted.last.as_ref()));
                    assert!(all.into_iter().all(|i| i.len() == doacross.dimensions as usize), "{which}: {doacross:?}");
                    tried += 1;
                }
            }
            live.resume();
            held.end();
        }
    }
    assert!(tried > 0, "no loop was seen");
}
