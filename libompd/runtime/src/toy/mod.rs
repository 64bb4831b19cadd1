//! A runtime made for a test: what a family needs at least, and nothing else of this crate changes for it.
//!
//! It is described by the debug information of the program that has it built in. `docs/new-runtime-family.md` walks through it.

use std::process::{Command, Stdio};

use ompd_layout::profile::ShippedProfiles;
use ompd_layout::{GlobalSchema, Layout, Origin, Schema};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Live, Module, OpenOptions, Target, TargetExt};

use crate::bind::{StructData, structs};
use crate::evidence::Evidence;
use crate::family::{About, Family, Layouts, Variables};
use crate::icvs::texts;
use crate::instance::{self, Cost, FamilyOrigins, LayoutsFrom, Runtime};
use crate::merge::merge;
use crate::model::*;
use crate::names::FileNames;
use crate::owner::OwnNames;
use crate::recover::Recovered;
use crate::stops::Stops;

structs! {
    ToyThread = "toy_thread", "One thread" {
        lwp: "lwp", "kernel thread id";
        number: "number", "number in its team";
    }
    ToyTeam = "toy_team", "The only team" {
        members: "size", "members";
        threads: "threads", "array of members";
    }
}

const TEAM: &str = "toy_team";

static SCHEMA: Schema =
    Schema { family: "toy", structs: STRUCTS, globals: &[GlobalSchema { name: TEAM, meaning: "the only team" }] };

static NAMES: OwnNames = OwnNames { internal: &["toy_"], shared: &[], not: &[], plain: &[], structs: &[], files: &[] };

static ABOUT: About = About {
    name: "toy",
    libraries: &[],
    files: &[],
    well_known: "toy_fork",
    has_tools: false,
    registration: None,
    variables: Variables { prefix: "TOY_", spins: ("TOY_SPINS", "forever"), affinity: &[], flag: texts::flag },
    layouts: Layouts { schema: &SCHEMA, archs: &[], prefixes: &["toy_"], large_exports: &[] },
    reasons: &[],
};

/// The family.
#[derive(Debug)]
pub(crate) struct Toy;

pub(crate) static FAMILY: Toy = Toy;

impl Family for Toy {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn defined_by(&self, defines: &dyn Fn(&str) -> bool) -> bool {
        defines(ABOUT.well_known)
    }

    fn origins(&self) -> FamilyOrigins {
        static NONE: ShippedProfiles = ShippedProfiles::new(&[], "");
        FamilyOrigins {
            family: ABOUT.name,
            schema: &SCHEMA,
            profiles: &NONE,
            costs: &[Cost { of: "toy_", text: "its threads are unknown" }],
            recover: |_| Recovered::default(),
            decoded: "",
            described: None,
            alternatives: &[],
            names: &NAMES,
            only_with: &[],
            led_to: &[],
        }
    }

    fn open(&self, target: &dyn Target, module: &Module, layouts: LayoutsFrom<'_>) -> Box<dyn Runtime> {
        let resolved = instance::resolve(target, module, "toy runtime", &self.origins(), layouts);
        Box::new(Instance::bind(module, &resolved.layout, resolved.info))
    }

    fn stops_of(&self, _file: &ElfFile) -> Stops {
        Stops::default()
    }
}

/// One toy runtime in one process.
#[derive(Debug)]
struct Instance {
    info: InstanceInfo,
    thread: ToyThread,
    team: ToyTeam,
    at: Option<(Addr, Origin)>,
}

impl Instance {
    fn bind(module: &Module, layout: &Layout, info: InstanceInfo) -> Instance {
        let at = instance::resolve::global(layout, module, TEAM);
        Instance { info, thread: ToyThread::bind(layout), team: ToyTeam::bind(layout), at }
    }

    fn read(&self, target: &dyn Target) -> Result<(Vec<RawThread>, RawTeam), Reason> {
        let (at, _) = self.at.ok_or(Reason::NoLayout(TEAM))?;
        let view = StructData::read(target, at, self.team.size)?;
        let size = view.count(&self.team.members)?;
        let mut threads = Vec::new();
        for number in 0..size.min(64) {
            let thread = view.within(&self.team.threads, number.into(), self.thread.size)?;
            threads.push(self.thread(&thread)?);
        }
        threads.sort_by_key(|thread| thread.lwp);
        let mut members: Vec<_> = threads.iter().map(|thread| (thread.thread_num.get(), thread.lwp)).collect();
        members.sort_unstable();
        let why = Common::NotRecordedByRuntime;
        let team = RawTeam {
            descriptor: at,
            size: self.team.members.fact(Ok(size)),
            level: Fact::unknown(why),
            active_level: Fact::unknown(why),
            parent: Fact::unknown(why),
            primary_num: Fact::unknown(why),
            serialized: Fact::unknown(why),
            function: Fact::unknown(why),
            location: Fact::unknown(why),
            members: members.into_iter().map(|(_, lwp)| lwp).collect(),
            barrier: Fact::unknown(why),
            tool_data: Fact::unknown(why),
        };
        Ok((threads, team))
    }

    fn thread(&self, view: &StructData) -> Result<RawThread, Reason> {
        let why = Common::NotRecordedByRuntime;
        Ok(RawThread {
            lwp: Some(view.count(&self.thread.lwp)? as i32),
            descriptor: view.addr(),
            gtid: None,
            role: Fact::unknown(why),
            thread_num: self.thread.number.fact(view.count(&self.thread.number)),
            team: self.thread.number.fact(Ok(Some(TeamId(0)))),
            task: Fact::unknown(why),
            wait: Fact::unknown(why),
            at_work: false,
            icvs: Icvs::unknown(why),
            placement: Placement::unknown(why),
            tool_data: Fact::unknown(why),
            outermost_tool_data: Fact::unknown(why),
            ompt_state: Fact::unknown(why),
        })
    }
}

impl Runtime for Instance {
    fn info(&self) -> &InstanceInfo {
        &self.info
    }

    fn snapshot(&self, target: &dyn Target) -> RawSnapshot {
        let (threads, teams, issues) = match self.read(target) {
            Ok((threads, team)) => (threads, vec![team], Vec::new()),
            Err(why) => (Vec::new(), Vec::new(), vec![Issue::new("team", why)]),
        };
        let (tasks, locks, recorded) = (Vec::new(), Vec::new(), Recorded::default());
        RawSnapshot { instance: self.info.clone(), threads, teams, tasks, locks, recorded, issues }
    }

    fn owns_code(&self, target: &dyn Target, addr: Addr) -> bool {
        let symbol = target.module_at(addr).and_then(|module| module.symbol_at(addr));
        symbol.is_some_and(|(symbol, _)| NAMES.is_internal(&symbol.name))
    }
}

/// A process that is killed when nobody has it any more.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when it was waited for already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A family is found, read and shown by its folder and its line in the table.
#[test]
fn a_family_is_its_folder_and_one_line() {
    use std::io::{BufRead as _, BufReader};

    let folder = tempfile::tempdir().expect("a folder");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/toy/toy.c");
    let program = folder.path().join("toy");
    let built = Command::new("gcc").args(["-g", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("gcc runs").success());
    let child = Command::new(&program).stdout(Stdio::piped()).spawn().expect("it starts");
    // Ended also where a line below panics.
    let mut child = Ended(child);
    let lines = BufReader::new(child.0.stdout.take().expect("its output")).lines().take(3);
    let mut told: Vec<(u32, i32)> = lines
        .map(|line| {
            let line = line.expect("a line");
            let (number, lwp) = line.split_once(' ').expect("two words");
            (number.parse().expect("a number"), lwp.parse().expect("a number"))
        })
        .collect();
    told.sort_unstable();

    let mut live = Live::open(child.0.id() as i32, &OpenOptions::default()).expect("it can be opened");
    let runtimes = crate::discover(&live, &[]);
    live.stop().expect("it can be stopped");
    let raw = runtimes.iter().map(|runtime| runtime.snapshot(&live)).collect();
    live.resume();
    drop(child);
    let names = FileNames::of(&live, &runtimes, &|_| None);
    let merged = merge(raw, &Evidence::of_names(&names));

    let [snapshot] = &merged[..] else { panic!("{} runtimes", merged.len()) };
    assert_eq!((snapshot.instance.family, &snapshot.issues[..]), ("toy", &[][..]));
    let mut found: Vec<_> = snapshot.threads.iter().filter_map(|t| Some((t.thread_num.get()?, t.lwp?))).collect();
    found.sort_unstable();
    assert_eq!(found, told);
    let members: Vec<_> = told.iter().map(|(_, lwp)| Some(*lwp)).collect();
    assert_eq!(snapshot.teams[0].members, members);
    assert!(crate::family::variable_prefixes().contains(&"TOY_"));
}
