//! A program that plays a runtime of Technical Report 2 tells the companion of everything, and the block has it in today's terms.

use std::io::{BufRead as _, Write as _};

use anyhow::{Context, Result, ensure};
use ompd_process::{Live, OpenOptions, Target as _};
use ompt_record::block::{RingState, SYMBOL, State};
use ompt_record::event::{Event, NOT_TOLD};
use ompt_record::read::{Block, RingAt};
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, build, built_by_cargo};

mod memory;
use memory::Words;

/// By number of the event, from 1: today's number of the callback, endpoint, and kind or status. From the report's list, by hand;
/// those that are not told today have callback 0.
const EVENTS: [(u8, u8, u16); 61] = [
    (3, 0, 0),
    (4, 0, 0),
    (5, 0, 0),
    (6, 0, 1),
    (1, 0, 1),
    (2, 0, 0),
    (11, 0, 0),
    (0, 0, 0),
    (0, 0, 0),
    (0, 0, 0),
    (16, 1, 1),
    (16, 2, 1),
    (16, 1, 5),
    (16, 2, 5),
    (16, 1, 6),
    (16, 2, 6),
    (17, 0, 1),
    (17, 0, 3),
    (17, 0, 5),
    (17, 0, 6),
    (17, 0, 7),
    (7, 1, 2),
    (7, 2, 2),
    (7, 1, 1),
    (7, 2, 1),
    (6, 0, 0),
    (20, 1, 1),
    (20, 2, 1),
    (20, 1, 2),
    (20, 2, 2),
    (20, 1, 3),
    (20, 2, 3),
    (20, 1, 4),
    (20, 2, 4),
    (20, 1, 5),
    (20, 2, 5),
    (21, 1, 0),
    (21, 2, 0),
    (23, 1, 1),
    (23, 2, 1),
    (23, 1, 5),
    (23, 2, 5),
    (23, 1, 6),
    (23, 2, 6),
    (28, 2, 0),
    (26, 0, 1),
    (26, 0, 3),
    (26, 0, 5),
    (26, 0, 6),
    (26, 0, 7),
    (27, 0, 1),
    (27, 0, 3),
    (28, 1, 0),
    (27, 0, 5),
    (27, 0, 6),
    (27, 0, 7),
    (24, 0, 1),
    (24, 0, 3),
    (25, 0, 1),
    (25, 0, 3),
    (29, 0, 0),
];

/// Ends the program whatever happens.
struct Ended(Process);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and is waited for all the same.
        let _ = self.0.child.kill();
        let _ = self.0.child.wait();
    }
}

impl Ended {
    /// The program, with the library if there is to be one; `None` if it cannot be built here.
    fn start(arguments: &str, variables: &[(&str, &str)], preloaded: bool) -> Result<Option<Ended>> {
        if let Err(skip) = Toolchain::Gcc.check().and_then(|()| Runtime::Libgomp.library().map(drop)) {
            skip.show();
            return Ok(None);
        }
        let library = built_by_cargo("libompt_companion_tr2.so");
        let program = build("tr2_runtime", Toolchain::Gcc, Opt::O2, &["-ldl"])?;
        let mut launch = Launch::new(&program, Runtime::Libgomp, Env::Stock);
        for argument in arguments.split(' ') {
            launch = launch.argument(argument);
        }
        if preloaded {
            launch = launch.variable("LD_PRELOAD", &library.to_string_lossy());
        }
        let launch = variables.iter().fold(launch, |launch, (name, value)| launch.variable(name, value));
        Ok(Some(Ended(launch.spawn()?)))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.stdout.read_line(&mut line)?;
        Ok(line)
    }

    fn ready(&mut self) -> Result<()> {
        let line = self.line()?;
        ensure!(line == "ready\n", "it says {line:?}");
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        Ok(self.0.stdin.write_all(b"!")?)
    }
}

fn block(process: &Ended) -> Result<(Words, Block)> {
    let pid = i32::try_from(process.0.child.id())?;
    let live = Live::open(pid, &OpenOptions::default())?;
    let symbol = live.modules().iter().find_map(|module| module.symbol(SYMBOL)).context("no companion")?;
    let memory = Words::of(pid)?;
    let at = memory.word(symbol.addr.0)?;
    ensure!(at != 0, "there is no block");
    let block = Block::open(&memory, at)?;
    Ok((memory, block))
}

fn events(memory: &Words, block: &Block, ring: RingAt) -> Result<Vec<Event>> {
    let events = block.events(memory, ring, u64::MAX)?;
    ensure!((events.torn, events.overwritten) == (0, 0), "{events:?}");
    Ok(events.events)
}

/// What the event with this number has to be, by what the program says at its beginning.
fn expected(number: u64) -> Option<Event> {
    let (kind, endpoint, sub) = EVENTS[usize::try_from(number).ok()? - 1];
    let (region, task, other, wait_id) = (1000 + number, 2000 + number, 2100 + number, 3000 + number);
    let event = Event { kind, endpoint, sub, ..Event::default() };
    match (number, kind) {
        (_, 0) => None,
        (1, _) => Some(Event { region, task, other: 7, ..event }),
        (3, _) => Some(Event { task, other, flags: 4, ..event }),
        (4, _) => Some(Event { task, ..event }),
        (24 | 25, _) => Some(Event { task, flags: NOT_TOLD, ..event }),
        (26, _) => Some(Event { task, other, ..event }),
        (_, 7) => Some(Event { region, task, flags: NOT_TOLD, ..event }),
        (_, 20) => Some(Event { region, task, other: NOT_TOLD.into(), ..event }),
        (_, 17 | 24..=28) => Some(Event { other: wait_id, ..event }),
        (_, 29 | 1 | 2) => Some(event),
        _ => Some(Event { region, task, ..event }),
    }
}

/// Without what differs from run to run.
fn timeless(events: &[Event]) -> Vec<Event> {
    events.iter().map(|event| Event { time: 0, position: 0, ..*event }).collect()
}

#[test]
fn every_event_is_recorded_in_todays_terms() -> Result<()> {
    every_event("1")
}

#[test]
fn a_tool_started_by_ompt_tool_records_the_same() -> Result<()> {
    every_event("1 tool")
}

fn every_event(arguments: &str) -> Result<()> {
    let Some(mut process) = Ended::start(arguments, &[], true)? else { return Ok(()) };
    process.ready()?;
    let (memory, begun) = block(&process)?;
    ensure!(begun.is_recording() && begun.runtime == "an old runtime", "{begun:?}");
    let (rings, _) = begun.rings(&memory);
    let [ring] = rings[..] else { anyhow::bail!("{rings:?}") };
    ensure!(ring.values.kind == 1 && ring.values.lwp == u64::from(process.0.child.id()), "{ring:?}");
    let written = events(&memory, &begun, ring)?;
    let told: Vec<Event> = [5].into_iter().chain(1..5).chain(9..62).filter_map(expected).collect();
    assert_eq!(timeless(&written), told);
    assert!(written[0].time > 0 && written.is_sorted_by_key(|event| event.time));

    // What is not over: the region and the task that began, and the locks that were acquired.
    let region = begun.region(&memory, 1001)?.context("the region")?;
    assert_eq!((region.encountering_task, region.detail, region.thread), (2001, 7, ring.values.id));
    let task = begun.task(&memory, 2003)?.context("the task")?;
    assert_eq!((task.encountering_task, task.flags), (2103, 4));
    let held = begun.held(&memory, ring)?;
    let held: Vec<(u64, u64)> = held.iter().map(|held| (held.wait_id, held.kind & 0xffff_ffff)).collect();
    assert_eq!(held, [(3051, 1), (3052, 3), (3054, 5), (3055, 6), (3056, 7)]);

    // What today would be answered for each callback, a nibble each: where events of one differ, something between.
    let answer = |number: u64| {
        let word = [begun.header.results_first, begun.header.results_second, begun.header.results_third];
        word[usize::try_from((number - 1) / 16).expect("small")] >> (4 * ((number - 1) % 16)) & 15
    };
    let not_asked = [8, 9, 10, 12, 13, 14, 15, 18, 19, 22, 30, 31, 32, 33, 34, 35, 36, 37];
    for number in 1..=48 {
        let wanted = match number {
            _ if number > 37 || not_asked.contains(&number) => 15,
            21 => 1,
            26 | 29 => 3,
            _ => 5,
        };
        assert_eq!(answer(number), wanted, "callback {number}");
    }

    process.go_on()?;
    process.ready()?;
    let (memory, paused) = block(&process)?;
    assert_eq!((paused.header.state, paused.header.command), (State::Paused as u64, 2));
    let (rings, _) = paused.rings(&memory);
    let written = events(&memory, &paused, rings[0])?;
    // The command itself is the last, though a flush came after it.
    let last = Event { kind: 11, flags: 2, task: 9, ..Event::default() };
    assert_eq!(timeless(&written), [told, vec![last]].concat());

    process.go_on()?;
    process.ready()?;
    let (memory, ended) = block(&process)?;
    assert_eq!(ended.header.state, State::Ended as u64);
    let (rings, _) = ended.rings(&memory);
    let worker = rings.iter().find(|ring| ring.values.kind == 2).context("the second thread")?;
    assert_eq!(worker.values.state, RingState::Ended as u64);
    let of_worker = [
        Event { kind: 1, sub: 2, ..Event::default() },
        Event { kind: 7, endpoint: 1, sub: 2, region: 1022, task: 2022, flags: NOT_TOLD, ..Event::default() },
        Event { kind: 2, ..Event::default() },
    ];
    assert_eq!(timeless(&events(&memory, &ended, *worker)?), of_worker);
    process.go_on()?;
    ensure!(process.0.child.wait()?.success());
    Ok(())
}

#[test]
fn the_shutdown_writes_the_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("block");
    let variables = [("OMPT_COMPANION_FILE", &*file.to_string_lossy())];
    let Some(mut process) = Ended::start("1", &variables, true)? else { return Ok(()) };
    for step in 0..3 {
        process.ready()?;
        ensure!(file.exists() == (step == 2), "{step}: there or not");
        process.go_on()?;
    }
    ensure!(process.0.child.wait()?.success());
    Ok(())
}

#[test]
fn other_versions_get_no_tool() -> Result<()> {
    for (version, preloaded) in
        [("0", true), ("2", true), ("201811", true), ("1", false), ("2 tool", true), ("1 tool", false)]
    {
        let Some(mut process) = Ended::start(version, &[], preloaded)? else { return Ok(()) };
        assert_eq!(process.line()?, "no tool\n", "{version}");
        ensure!(process.0.child.wait()?.success());
    }
    Ok(())
}

/// The name may be a function of another tool's in a process of today.
#[test]
fn only_the_library_for_old_runtimes_has_the_old_name() -> Result<()> {
    let exports = |library: &str| -> Result<bool> {
        let file = ompd_process::elf::ElfFile::open(&built_by_cargo(library))?;
        ensure!(file.exported_names().any(|name| name == SYMBOL), "{library} is no companion");
        let names = ["ompt_initialize", "ompt_tool"].map(|name| file.exported_names().any(|exported| exported == name));
        ensure!(names[0] == names[1], "{library} has one of them");
        Ok(names[0])
    };
    assert!(exports("libompt_companion_tr2.so")?);
    assert!(!exports("libompt_companion.so")?);
    Ok(())
}
