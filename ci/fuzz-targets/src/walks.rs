//! The records of runtimes: cores of real programs in which words that a look reads are other ones.
//!
//! An input begins with a byte for the core. Then come changes of ten bytes each: the number of a word, two bytes; what
//! becomes of it, one byte; the number of another word, two bytes; a number, four bytes; and one that fills up.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ompd_inspection::{Wanted, inspect_held};
use ompd_process::{Addr, Core, OpenOptions, Target as _, TargetExt as _};
use ompd_report::json;
use ompd_report::text::{self, How, View};
use ompd_runtime::{LayoutsFrom, Runtime, discover};
use ompd_stack::Cache;
use test_programs::{ChangedTarget, Env, HANGS, Launch, Opt, Runtime as Library, Skip, Toolchain, build};

/// The programs: locks, tasks with dependences, nested teams, a barrier that one misses, and loops in order.
const PROGRAMS: [&str; 5] = [
    "hangs/lock_cycle",
    "hangs/depend_cycle",
    "hangs/nested_exhausted",
    "hangs/barrier_missing_end",
    "hangs/ordered_skip",
];
/// Whose records these are.
const RUNTIMES: [(Toolchain, Library); 2] = [(Toolchain::Gcc, Library::Libgomp), (Toolchain::Clang, Library::Libomp14)];
/// So many inputs that differ in their first byte only are of one core each.
pub const CORES: usize = PROGRAMS.len() * RUNTIMES.len();
/// Bytes of a change.
const CHANGE: usize = 10;
/// As many changes count.
const MOST_CHANGES: usize = 64;
/// Longer reads are of stacks and code, for which there are other targets.
const MOST_BYTES: usize = 4096;
/// A look at one of the cores reads at most hundreds of times. What words say may lead it on, but not for ever.
const MOST_READS: u64 = 4 << 20;
/// What is shown of each.
const VIEWS: [&str; 9] =
    ["summary", "threads", "teams", "tasks", "tasks --tree", "waits", "waits --dot", "loops", "icvs"];

/// A core, and what an unchanged look finds out about it.
struct Held {
    core: Core,
    runtimes: Vec<Box<dyn Runtime>>,
    cache: Cache,
    /// The words that it reads, in the order in which it does.
    places: Vec<Addr>,
}

/// A core of a program that hangs; `None` if none can be made here.
fn held(number: usize) -> Option<Held> {
    let (program, (toolchain, library)) = (PROGRAMS[number / RUNTIMES.len()], RUNTIMES[number % RUNTIMES.len()]);
    let directory = tempfile::tempdir().expect("a directory");
    let made = || -> Result<std::path::PathBuf, Skip> {
        toolchain.check()?;
        library.library()?;
        let case = HANGS.iter().find(|case| case.program == program).expect("it is listed");
        let executable = build(program, toolchain, Opt::O2, case.flags).expect("it builds");
        let running = Launch::new(&executable, library, Env::Settled).start_hanging().expect("it hangs");
        running.gcore(directory.path()).expect("gcore runs")
    };
    let path = made().inspect_err(Skip::show).ok()?;
    let core = Core::open(&path, &OpenOptions::default()).expect("a core");
    let runtimes = discover(&core, &[]);
    let cache = Cache::default();
    let places = {
        let places = Rc::new(RefCell::new((Vec::new(), HashSet::new())));
        let kept = Rc::clone(&places);
        let target = ChangedTarget::new(&core).with_change(move |addr, bytes| {
            let (list, seen) = &mut *kept.borrow_mut();
            if bytes.len() <= MOST_BYTES {
                let words = (addr.0 & !7..addr.0 + bytes.len() as u64).step_by(8).map(Addr);
                list.extend(words.filter(|word| seen.insert(*word)));
            }
        });
        inspect_held(&target, &runtimes, wanted(), &cache);
        drop(target);
        places.take().0
    };
    Some(Held { core, runtimes, cache, places })
}

fn wanted() -> Wanted<'static> {
    Wanted::of_held(LayoutsFrom::default())
}

/// The other words that an input asks for, by address.
fn changes(held: &Held, data: &[u8]) -> HashMap<u64, u64> {
    let place = |low: u8, high: u8| held.places[usize::from(u16::from_le_bytes([low, high])) % held.places.len()];
    let word = |at: Addr| held.core.read_uint(at, 8).unwrap_or_default();
    let change = |change: &[u8; CHANGE]| {
        let [at_low, at_high, kind, low, high, number @ .., _] = *change;
        let (at, other) = (place(at_low, at_high), place(low, high));
        let number = i32::from_le_bytes(number) as u64;
        let value = match kind % 6 {
            0 => number,
            1 => word(at).wrapping_add(number),
            2 => word(at) ^ number,
            3 => other.0.wrapping_add((number % 4096) & !7),
            4 => word(other),
            _ => number << 32 | word(at) & 0xffff_ffff,
        };
        (at.0, value)
    };
    data.as_chunks::<CHANGE>().0.iter().take(MOST_CHANGES).map(change).collect()
}

/// Looks at a changed core, and shows it in every way.
pub fn check(data: &[u8]) {
    thread_local! {
        static CORES_HELD: RefCell<HashMap<usize, Option<Rc<Held>>>> = RefCell::default();
    }
    let Some((number, data)) = data.split_first() else { return };
    let number = usize::from(*number) % CORES;
    let held = CORES_HELD.with_borrow_mut(|all| all.entry(number).or_insert_with(|| held(number).map(Rc::new)).clone());
    let Some(held) = held else { return };
    let changes = changes(&held, data);
    let target = ChangedTarget::new(&held.core).with_change(move |addr, bytes| {
        let first = addr.0 & !7;
        let last = addr.0.saturating_add(bytes.len() as u64);
        for at in (first..last).step_by(8) {
            let Some(word) = changes.get(&at) else { continue };
            for (byte, place) in word.to_le_bytes().into_iter().zip(at..) {
                let changed = place.checked_sub(addr.0).and_then(|offset| bytes.get_mut(offset as usize));
                changed.into_iter().for_each(|changed| *changed = byte);
            }
        }
    });
    let inspection = inspect_held(&target, &held.runtimes, wanted(), &held.cache);
    assert!(target.reads() <= MOST_READS, "{} reads", target.reads());
    assert_eq!(inspection.threads.len(), held.core.threads().len());
    serde_json::to_string(&json::report(&inspection)).expect("a report is JSON");
    for view in VIEWS {
        let view = View::of_words(view).expect("a view");
        let shown = text::plain(&text::render(&inspection, view, How { width: Some(100), ..How::default() }));
        assert!(!shown.is_empty());
    }
}
