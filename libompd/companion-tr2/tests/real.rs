//! Runtimes of the time: builds of LLVM 3.7's and 4.0's libomp, where somebody has put them (`docs/old-ompt.md`).

use std::path::{Path, PathBuf};

use ompd_process::{Live, OpenOptions, Target as _};
use ompt_record::block::SYMBOL;
use ompt_record::event::Event;
use ompt_record::read::Block;
use test_programs::{Held, Opt, Skip, Toolchain, build, built_by_cargo, can_build};

mod memory;
use memory::Words;

/// The releases: the first calls `ompt_initialize`, the second `ompt_tool`.
const RELEASES: [&str; 2] = ["3.7", "4.0"];

/// Numbers of callbacks, and of kinds.
const PARALLEL_BEGIN: u8 = 3;
const TASK_CREATE: u8 = 5;
const MUTEX_RELEASED: u8 = 17;
const WORK: u8 = 20;
const MASKED: u8 = 21;
const NEST_LOCK: u8 = 28;
const LOOP: u16 = 1;
const SINGLE_EXECUTOR: u16 = 3;
const NEST: u16 = 3;
const CRITICAL: u16 = 5;
/// An endpoint.
const END: u8 = 2;

/// The folder with a release's `libomp.so.5`; `None`, with the reason told, if it is not there.
fn release(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes/tr2").join(name);
    if !folder.join("libomp.so.5").is_file() {
        let place = folder.display();
        Skip::because(format!("LLVM {name}'s libomp is not in {place}; docs/old-ompt.md says how it is built")).show();
        return None;
    }
    Some(folder)
}

/// All events of a process, of each thread in order.
fn events(pid: i32) -> Vec<Event> {
    let live = Live::open(pid, &OpenOptions::default()).expect("it can be opened");
    let symbol = live.modules().iter().find_map(|module| module.symbol(SYMBOL)).expect("a companion");
    let memory = Words::of(pid).expect("its memory");
    let at = memory.word(symbol.addr.0).expect("the word");
    let block = Block::open(&memory, at).expect("a block");
    let (rings, unreadable) = block.rings(&memory);
    assert_eq!(unreadable, 0);
    rings.iter().flat_map(|ring| block.events(&memory, *ring, u64::MAX).expect("events").events).collect()
}

#[test]
fn runtimes_of_the_time_are_recorded() {
    if let Err(skip) = can_build("tr2_recorded", Toolchain::Clang).expect("the program is there") {
        skip.show();
        return;
    }
    let program = build("tr2_recorded", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    let library = built_by_cargo("libompt_companion_tr2.so");
    for name in RELEASES {
        let Some(folder) = release(name) else { continue };
        let variables = [("LD_PRELOAD", &*library.to_string_lossy())];
        let running = Held::start(&program.path, &folder, name, &variables, &[]).expect("it runs");
        let told = running.told("did");
        let told: Vec<usize> = told[0].iter().map(|word| word.parse().expect("a number")).collect();
        let [regions, loops, singles, tasks, criticals, _barriers, masters, nested] = told[..] else {
            panic!("{told:?}")
        };
        // LLVM 4.0 got locks of another make, which tell of nothing.
        let (criticals, nested) = if name == "4.0" { (0, 0) } else { (criticals, nested) };
        let events = events(running.pid());
        let count = |which: &dyn Fn(&Event) -> bool| events.iter().filter(|event| which(event)).count();
        let begun = |kind: u8, sub: u16| count(&|event| event.kind == kind && event.endpoint == 1 && event.sub == sub);
        assert_eq!(count(&|event| event.kind == PARALLEL_BEGIN), regions, "{name}");
        assert_eq!(begun(WORK, LOOP), loops, "{name}");
        assert_eq!(begun(WORK, SINGLE_EXECUTOR), singles, "{name}");
        assert_eq!(count(&|event| event.kind == TASK_CREATE), tasks, "{name}");
        assert_eq!(begun(MASKED, 0), masters, "{name}");
        let released = |of: u16| count(&|event| event.kind == MUTEX_RELEASED && event.sub == of);
        assert_eq!((released(CRITICAL), released(NEST)), (criticals, nested), "{name}");
        assert_eq!(count(&|event| event.kind == NEST_LOCK && event.endpoint == END), nested, "{name}");
        running.end();
    }
}
