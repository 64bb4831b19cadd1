//! Another machine: programs on an emulated aarch64 machine. What the command says of them there, live and of their cores, against
//! what they said of themselves; and what it says of the cores here against what it said there.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::Command;

use serde_json::Value;
use test_programs::guest::{Kept, KeptRuntime, Look, Settles};
use test_programs::{
    Case, Comparison, Emulated, Guest, GuestKernel, GuestResult, GuestRuntime, HANGS, HEALTHY, KeptCore, Opt, Runtime,
    STACK_PROGRAMS, STEADY_PROGRAMS, TRUTH_SPINS, Toolchain, Truth, compare, compare_stacks, compare_verdicts, emulate,
    emulator, kept_core_name, kept_cores, kept_cores_folder,
};

use crate::common;

/// Programs whose every value a core of any machine has.
const STEADY: [&str; 10] = [
    "nested",
    "lock",
    "tasks",
    "barrier_missing",
    "region_end",
    "idle",
    "user_pthread",
    "serialized",
    "stacks",
    "stacks_tail",
];

/// Programs for other releases: nested teams, every kind of lock, tasks in every state, stacks across threads.
const RELEASES: [&str; 4] = ["nested", "lock", "tasks", "stacks"];

/// Programs that know their stacks, of those that need no file of their own beside them.
const STACKS: [&str; 8] = [
    "stacks_jump",
    "stacks_regions",
    "stacks_orphan",
    "stacks_pthread",
    "stacks_cpp",
    "stacks_fortran",
    "stacks_signal",
    "stacks_teams",
];
/// Has functions sign their return addresses.
const PROTECTED: &[&str] = &["-mbranch-protection=standard"];
/// Programs that are built so.
const SIGNED: [&str; 4] = ["nested", "stacks", "stacks_tail", "stacks_regions"];

/// What threads spin for, and what the report calls it.
const SPINNING: [(&str, &str); 4] =
    [("barrier", "barrier"), ("lock", "lock"), ("nest lock", "lock"), ("critical", "critical")];

const fn debian(suite: &'static str, package: &'static str) -> GuestRuntime {
    GuestRuntime { suite, package }
}

/// The runtimes on which all programs run.
const RUNTIMES: [GuestRuntime; 2] = [debian("bookworm", "libgomp1"), debian("bookworm", "libomp5-14")];
/// The runtimes on which programs of [`RELEASES`] run.
const FURTHER: [GuestRuntime; 10] = [
    debian("bullseye", "libgomp1"),
    debian("trixie", "libgomp1"),
    debian("sid", "libgomp1"),
    debian("bullseye", "libomp5-13"),
    debian("bookworm", "libomp5-15"),
    debian("bookworm", "libomp5-16"),
    debian("trixie", "libomp5-17t64"),
    debian("trixie", "libomp5-18"),
    debian("trixie", "libomp5-19"),
    debian("forky", "libomp5"),
];

/// Programs of which the cores are kept in `test-programs/aarch64`: name, flags, and package of the runtime.
const KEPT: [(&str, &[&str], &str); 6] = [
    ("nested", &[], "libgomp1"),
    ("stacks", PROTECTED, "libgomp1"),
    ("stacks_signal", &[], "libgomp1"),
    ("tasks", &[], "libomp5-14"),
    ("hangs/lock_cycle", &[], "libgomp1"),
    ("hangs/lock_cycle", &[], "libomp5-14"),
];

/// Programs of which a core does not have all. The verdict of the first two needs a system call, and a core of this machine does not show
/// whether a thread is in it or about to make it. The third catches the signal that is to end it, and sends it to itself.
const UNSHOWN: [&str; 3] = ["hangs/missing_read", "hangs/child_hangs", "hangs/lock_cycle_fortran"];

/// The name of the look at the process as users take it, and at the core there.
const LIVE: &str = "live";
const CORE: &str = "core";

fn look(name: &str, arguments: &[&str]) -> Look {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Look { name: name.to_owned(), arguments, of_core: name == CORE, ptrace_scope: None }
}

/// Every way of looking at a program.
fn all() -> [Look; 4] {
    [
        look(LIVE, &["--json"]),
        look("brief", &["--json", "--pause", "brief"]),
        look("never", &["--json", "--pause", "never"]),
        look(CORE, &["--json"]),
    ]
}

/// What is asked of a program that hangs.
fn waits() -> [Look; 2] {
    [look(LIVE, &["waits", "--json"]), look(CORE, &["waits", "--json"])]
}

/// Makes guests that run on one runtime.
fn guest_on(runtime: GuestRuntime) -> impl Fn(&'static str, &'static [&'static str], Settles, &[Look]) -> Guest {
    move |program, flags, settles, looks| Guest {
        program,
        opt: Opt::O2,
        flags,
        runtime,
        variables: Vec::new(),
        settles,
        looks: looks.to_vec(),
        user: None,
    }
}

fn on_large_pages() -> Vec<Guest> {
    let mut guests = Vec::new();
    for runtime in RUNTIMES {
        let guest = guest_on(runtime);
        guests.extend(RELEASES.map(|program| guest(program, &[], Settles::Steady, &all())));
        guests.extend(SIGNED.map(|program| guest(program, PROTECTED, Settles::Steady, &all())));
        let hangs = HANGS.iter().filter(|case| case.works(runtime.toolchain(), runtime.runtime())).take(3);
        guests.extend(hangs.map(|case| guest(case.program, case.flags, Settles::Hangs, &waits())));
    }
    guests
}

fn guests() -> Vec<Guest> {
    let mut guests = Vec::new();
    let (all, waits) = (all(), waits());
    for runtime in RUNTIMES.into_iter().chain(FURTHER) {
        let guest = guest_on(runtime);
        if !RUNTIMES.contains(&runtime) {
            let looks = [look(LIVE, &["--json"]), look(CORE, &["--json"])];
            // Before GCC 11 a limit of active levels does not by itself allow nested regions.
            let variables = if runtime.suite == "bullseye" { vec![("OMP_NESTED", "true")] } else { Vec::new() };
            let of_release = |program| guest(program, &[], Settles::Steady, &looks);
            guests.extend(RELEASES.map(|program| Guest { variables: variables.clone(), ..of_release(program) }));
            continue;
        }
        for program in STEADY {
            guests.push(guest(program, &[], Settles::Steady, &all));
        }
        for program in STACKS {
            if program != "stacks_fortran" || !runtime.runtime().is_kmp() {
                guests.push(guest(program, &[], Settles::Steady, &all));
            }
        }
        for program in SIGNED {
            guests.push(guest(program, PROTECTED, Settles::Steady, &all));
        }
        if !runtime.runtime().is_kmp() {
            for (wanted, _) in SPINNING {
                let variables = [("GOMP_SPINCOUNT", "infinity"), ("OMP_WAIT_POLICY", "active")];
                let variables = [&variables[..], &[(TRUTH_SPINS, "1"), ("SPIN", wanted)]].concat();
                let spinning =
                    guest("spinning", &[], Settles::Steady, &[look(LIVE, &["--json"]), look(CORE, &["--json"])]);
                guests.push(Guest { variables, ..spinning });
            }
        }
        // Of a child that hangs, the parent leaves the core.
        let works =
            |case: &&Case| case.works(runtime.toolchain(), runtime.runtime()) && case.program != "hangs/fork_child";
        for Case { program, flags, .. } in HANGS.iter().filter(works) {
            if runtime.runtime().is_kmp() && program.ends_with("fortran") {
                continue;
            }
            let shown = if UNSHOWN.contains(program) { &waits[..1] } else { &waits };
            guests.push(guest(program, flags, Settles::Hangs, shown));
        }
        for Case { program, flags, .. } in HEALTHY.iter().filter(works) {
            guests.push(guest(program, flags, Settles::Healthy, &[look(LIVE, &["waits", "--json"])]));
        }
    }
    guests
}

/// What was compared.
#[derive(Default)]
struct Table {
    runtimes: BTreeMap<String, KeptRuntime>,
    differences: Vec<String>,
    /// What the machine has that the others do not.
    suffix: &'static str,
}

impl Table {
    fn row(&mut self, result: &GuestResult) -> &mut KeptRuntime {
        let what = result.guest.runtime.what().expect("it is here") + self.suffix;
        self.runtimes.entry(what).or_default()
    }

    fn add(&mut self, result: &GuestResult, look: &str, compared: &Comparison) {
        let Comparison { differences, unknown, lacking, .. } = compared;
        let mut all: Vec<&String> = differences.iter().collect();
        // Without registers some values cannot be read; what is said is right all the same.
        if look != "never" {
            all.extend(lacking.iter().chain(unknown));
            let row = self.row(result);
            let values = if look == CORE { &mut row.core } else { &mut row.live };
            values.compared += compared.compared;
            values.wrong += differences.len();
            values.unknown += unknown.len();
        }
        self.differences.extend(all.into_iter().map(|line| format!("{}, {look}: {line}", of(result))));
    }
}

fn of(result: &GuestResult) -> String {
    let Guest { program, flags, runtime, variables, .. } = &result.guest;
    format!("{program} {} {variables:?} on {runtime:?}", flags.concat())
}

#[test]
fn programs_on_an_emulated_machine() {
    let known = |program: &&str| STEADY_PROGRAMS.contains(program) || STACK_PROGRAMS.contains(program);
    assert!(STEADY.iter().chain(&STACKS).chain(&SIGNED).all(known));
    let pages = on_large_pages();
    let (kmp, gomp): (Vec<Guest>, Vec<Guest>) =
        guests().into_iter().partition(|guest| guest.runtime.runtime().is_kmp());
    // A machine for each family, and one with large pages, all at once: one alone leaves a processor idle.
    let machines = [(GuestKernel::Usual, &gomp), (GuestKernel::Usual, &kmp), (GuestKernel::LargePages, &pages)];
    let all = std::thread::scope(|scope| {
        let run = |(kernel, guests): (GuestKernel, &Vec<Guest>)| emulate(kernel, guests).expect("the machine runs");
        let all = machines.map(|machine| scope.spawn(move || run(machine)));
        all.map(|one| one.join().expect("it does not panic"))
    });
    let mut table = Table::default();
    let mut kernels = Vec::new();
    for (one, (kernel, _)) in all.into_iter().zip(machines) {
        match one {
            Ok(emulated) => {
                table.suffix = if kernel == GuestKernel::LargePages { ", pages of 16 KiB" } else { "" };
                compared(&emulated, &mut table);
                kernels.push(emulated.kernel().to_owned());
            }
            Err(skip) => return skip.show(),
        }
    }
    kernels.dedup();
    let Table { runtimes, differences, .. } = table;
    let date = Command::new("date").args(["-u", "+%F"]).output().expect("the date").stdout;
    let date = String::from_utf8(date).expect("text").trim_end().to_owned();
    let machine = "aarch64".to_owned();
    let kept =
        Kept { machine, date, kernel: kernels.join(" and "), emulator: emulator().expect("it has run"), runtimes };
    let text = serde_json::to_string_pretty(&kept).expect("JSON");
    let _ = writeln!(std::io::stderr(), "{text}");
    if is_updated() && differences.is_empty() {
        kept.write().expect("it is kept");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// The program of README's first command is explained there, live and from its core, and from that core here.
#[test]
fn the_demo_on_an_emulated_machine() {
    let looks = [look(LIVE, &[]), look(CORE, &[])];
    let guest = guest_on(RUNTIMES[0])("hang", &[], Settles::Hangs, &looks);
    let emulated = match emulate(GuestKernel::Usual, &[guest]).expect("the machine runs") {
        Ok(emulated) => emulated,
        Err(skip) => return skip.show(),
    };
    let result = &emulated.results[0];
    assert_eq!(result.error, None);
    let core = result.core.as_ref().and_then(|core| core.to_str()).expect("a core");
    let here = common::run(&["--lib-root", emulated.root().to_str().expect("a plain path"), core]);
    let here = String::from_utf8(here.stdout).expect("UTF-8").replace(core, "/tmp/work/core");
    let [live, there] = [LIVE, CORE].map(|name| &result.looks[name].0);
    assert_eq!(*there, here);
    let _ = writeln!(std::io::stderr(), "{live}\n{here}");
    for text in [live, &here] {
        for part in ["DEADLOCK", "waits for lock total_lock, hang.c:37, in sweep", "has not reached the barrier"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// A kernel with Yama, the process and the look of the same ordinary user. By default such a kernel permits looks at children only.
#[test]
fn yama_on_an_emulated_machine() {
    let scopes = ["0", "1", "2", "3"];
    let look = |scope: &&str| Look { ptrace_scope: scope.parse().ok(), ..look(scope, &[]) };
    let looks: Vec<Look> = scopes.iter().map(look).collect();
    let hang = guest_on(RUNTIMES[0])("hang", &[], Settles::Hangs, &looks);
    let guest = Guest { user: Some(1000), variables: vec![("OMPD_YAMA_DECIDES", "1")], ..hang };
    let emulated = match emulate(GuestKernel::Usual, &[guest]).expect("the machine runs") {
        Ok(emulated) => emulated,
        Err(skip) => return skip.show(),
    };
    let result = &emulated.results[0];
    assert_eq!(result.error, None);
    let [permitted, refused @ ..] = scopes.map(|scope| &result.looks[scope]);
    assert!(permitted.0.contains("DEADLOCK"), "{permitted:?}");
    let expected = [
        ("ptrace_scope is 1 (only a parent may inspect its children)", "sysctl -w kernel.yama.ptrace_scope=0"),
        ("ptrace_scope is 2 (only with CAP_SYS_PTRACE)", "sysctl -w kernel.yama.ptrace_scope=0"),
        ("ptrace_scope is 3 (nobody may, until the next boot)", "inspect a core file instead"),
    ];
    for ((out, said), (cause, remedy)) in refused.into_iter().zip(expected) {
        assert!(out.is_empty() && said.starts_with("2\n"), "{out}{said}");
        assert!(said.contains(cause) && said.contains(remedy), "{said}");
    }
}

/// Whether what this test finds is to be kept.
fn is_updated() -> bool {
    std::env::var_os("UPDATE_AARCH64").is_some()
}

/// Keeps program, core and truth of what [`KEPT`] lists.
fn keep(emulated: &Emulated, result: &GuestResult) {
    let Guest { program, flags, runtime, .. } = &result.guest;
    let is_this = |kept: &&(&str, &[&str], &str)| (kept.0, kept.1, kept.2) == (*program, *flags, runtime.package);
    if !KEPT.iter().any(|kept| is_this(&kept)) || runtime.suite != "bookworm" {
        return;
    }
    let (Some(core), Some(truth)) = (&result.core, &result.truth) else { return };
    let name = kept_core_name(program, runtime.package);
    fs::create_dir_all(kept_cores_folder()).expect("a folder");
    for (from, to) in [(core, format!("{name}.core.xz")), (&emulated.program(result), format!("{name}.xz"))] {
        let to = fs::File::create(kept_cores_folder().join(to)).expect("a file");
        let done = Command::new("xz").args(["-9e", "-c"]).arg(from).stdout(to).status().expect("xz runs");
        assert!(done.success(), "xz ended with {done}");
    }
    // The path of the program on the machine, and what it said.
    let text = serde_json::json!({ "program": emulated.path(result), "truth": truth });
    fs::write(kept_cores_folder().join(format!("{name}.json")), format!("{text:#}\n")).expect("it is written");
}

/// Compares a report with what the program said.
fn comparison(settles: Settles, truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain) -> Comparison {
    match settles {
        Settles::Steady if truth.stacks.is_empty() => compare(truth, report, runtime, toolchain),
        Settles::Steady => compare_stacks(truth, report, runtime, Opt::O2),
        Settles::Hangs | Settles::Healthy => compare_verdicts(truth, report, truth.owners_recorded(runtime)),
    }
}

/// The cores that were kept, by the libraries that `ci/fetch debian` gets.
#[test]
fn cores_of_aarch64_are_read_here() {
    let cores = match kept_cores().expect("the cores are unpacked") {
        Ok(cores) => cores,
        Err(skip) => return skip.show(),
    };
    let mut differences = Vec::new();
    for KeptCore { name, program, runtime, core, root, truth } in cores {
        let truth: Truth = serde_json::from_value(truth).expect("a truth");
        let core = core.to_str().expect("a plain path");
        let (settles, view) = match program.starts_with("hangs/") {
            true => (Settles::Hangs, &["waits"][..]),
            false => (Settles::Steady, &[][..]),
        };
        let (report, _) = common::json(&[view, &["--lib-root", root.path().to_str().expect("a path"), core]].concat());
        let compared = comparison(settles, &truth, &report, runtime.runtime(), runtime.toolchain());
        assert!(compared.compared > 10, "{name}: only {} values", compared.compared);
        let Comparison { differences: wrong, unknown, lacking, .. } = compared;
        differences.extend([wrong, unknown, lacking].concat().iter().map(|line| format!("{name}: {line}")));
        // Without the files it is said what is missing, and how to bring it.
        let said = common::run(&["doctor", core]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains(&runtime.folder()) && said.contains("--lib-root"), "{said}");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Compares what came of one machine.
fn compared(emulated: &Emulated, table: &mut Table) {
    let root = emulated.root();
    let root = root.to_str().expect("a plain path");
    for result in &emulated.results {
        if is_updated() {
            keep(emulated, result);
        }
        let Some(truth) = result.truth.as_ref().filter(|_| result.error.is_none()) else {
            table.differences.push(format!("{}: {:?}", of(result), result.error));
            continue;
        };
        for look in &result.guest.looks {
            let (out, said) = &result.looks[&look.name];
            let report: Value = match serde_json::from_str(out) {
                Ok(report) => report,
                Err(error) => {
                    table.differences.push(format!("{}, {}: no JSON ({error}): {said}", of(result), look.name));
                    continue;
                }
            };
            let (runtime, toolchain) = (result.guest.runtime.runtime(), result.guest.runtime.toolchain());
            if let Some((_, wanted)) = result.guest.variables.iter().find(|(name, _)| *name == "SPIN") {
                table.differences.extend(spins(&of(result), wanted, truth, &report));
            } else {
                table.add(result, &look.name, &comparison(result.guest.settles, truth, &report, runtime, toolchain));
            }
        }
        match result.guest.settles {
            Settles::Steady => {}
            Settles::Hangs => table.row(result).hangs += 1,
            Settles::Healthy => table.row(result).healthy += 1,
        }
        let Some(core) = &result.core else { continue };
        let core = core.to_str().expect("a plain path");
        let look = result.guest.looks.iter().find(|look| look.of_core).expect("of the core");
        let there = &result.looks[CORE].0;
        let mut arguments: Vec<&str> = look.arguments.iter().map(String::as_str).collect();
        arguments.extend(["--lib-root", root, core]);
        let here = String::from_utf8(common::run(&arguments).stdout).expect("JSON is UTF-8");
        let here = here.replace(core, "/tmp/work/core");
        if *there != here {
            let first = there.lines().zip(here.lines()).find(|(there, here)| there != here);
            table.differences.push(format!("{}: there and here differ: {first:?}", of(result)));
        } else {
            table.row(result).same += 1;
        }
    }
}

/// The thread that waits without sleeping is known to, and for what.
fn spins(what: &str, wanted: &str, truth: &Truth, report: &Value) -> Option<String> {
    let waiter = truth.threads.iter().find(|thread| thread.lwp != truth.coordinator).expect("a thread that waits").lwp;
    let threads = report["runtimes"][0]["threads"].as_array().map_or(&[][..], Vec::as_slice);
    let wait = threads.iter().find(|thread| thread["lwp"] == waiter).map(|thread| &thread["wait"]["value"]);
    let kind = SPINNING.iter().find(|(known, _)| *known == wanted).map(|(_, kind)| *kind);
    let right = wait.is_some_and(|wait| wait["kind"].as_str() == kind && wait["asleep"] == false);
    (!right).then(|| format!("{what}: thread {waiter} is said to wait so: {wait:?}"))
}
