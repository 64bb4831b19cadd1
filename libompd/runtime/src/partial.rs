//! What a missing or wrong value of the layout does to the others: it may make them unknown, and never wrong.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use ompd_layout::Origin;
use ompd_layout::profile::ShippedProfiles;
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Live, Module, OpenOptions, Target};
use test_programs::{Env, Opt, Running, Toolchain, build};

use crate::family::{self, Family};
use crate::icvs::{LEVELS, NTHREADS, RUN_SCHED};
use crate::instance::{self, FamilyOrigins, LayoutsFrom, Runtime};
use crate::model::{Owner, RawSnapshot, TaskId, TaskgroupId, TeamId};
use crate::recover::Recovered;
use crate::{gomp, kmp};

thread_local! {
    /// Struct and field, or a struct whose size is lacking, or no struct and a global.
    static LACKING: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// All that the shipped layout and the code know.
fn all(image: &ElfFile, origins: &FamilyOrigins) -> Recovered {
    let known = instance::analyse(image, origins);
    let mut found = (origins.recover)(image);
    let profile = &known.profile.expect("a shipped layout fits").profile.facts;
    (found.facts.fields, found.facts.sizes) = (profile.fields.clone(), profile.sizes.clone());
    found
}

/// The same but for one value.
fn all_but_one(image: &ElfFile, origins: &FamilyOrigins) -> Recovered {
    // A test has to do with one runtime, whose code says the same each time.
    thread_local!(static KNOWN: OnceCell<Recovered> = const { OnceCell::new() });
    let mut found = KNOWN.with(|known| known.get_or_init(|| all(image, origins)).clone());
    LACKING.with_borrow(|lack| match lack {
        Some((of, None)) => drop(found.facts.sizes.remove(of)),
        Some((of, Some(global))) if of.is_empty() => drop(found.facts.globals.remove(global)),
        Some((of, Some(field))) => drop(found.facts.fields.get_mut(of).and_then(|f| f.remove(field))),
        None => {}
    });
    found
}

/// What is known of each object, by address: ids depend on what else was found.
fn known(s: &RawSnapshot) -> BTreeMap<(Addr, &'static str), String> {
    let mut all = BTreeMap::new();
    let mut file = |at: Addr, what, value: Option<String>| {
        if let Some(value) = value.filter(|_| !at.is_null()) {
            all.insert((at, what), value);
        }
    };
    let team = |id: &Option<TeamId>| format!("{:?}", id.map(|id| s.teams[id.0].descriptor));
    let task = |id: TaskId| s.tasks[id.0].descriptor.to_string();
    for t in &s.threads {
        file(t.descriptor, "role", t.role.value().map(|v| format!("{v:?}")));
        file(t.descriptor, "number", t.thread_num.value().map(u32::to_string));
        file(t.descriptor, "team", t.team.value().map(team));
        file(t.descriptor, "task", t.task.value().map(|v| task(*v)));
        file(t.descriptor, "nthreads", t.icvs.get(&NTHREADS).value().map(ToString::to_string));
        file(t.descriptor, "wait", t.wait.value().map(|v| format!("{:?}", v.as_ref().map(|w| w.kind))));
        let over = t.wait.value().and_then(|w| w.as_ref()?.over.get());
        file(t.descriptor, "over", over.map(|over| over.to_string()));
        file(t.descriptor, "level", t.icvs.get(&LEVELS).value().map(ToString::to_string));
        file(t.descriptor, "schedule", t.icvs.get(&RUN_SCHED).value().map(|v| format!("{v:?}")));
    }
    for t in &s.teams {
        file(t.descriptor, "size", t.size.value().map(u32::to_string));
        file(t.descriptor, "level", t.level.value().map(u32::to_string));
        file(t.descriptor, "parent", t.parent.value().map(team));
        file(t.descriptor, "primary", t.primary_num.value().map(u32::to_string));
        file(t.descriptor, "serialized", t.serialized.value().map(bool::to_string));
        file(
            t.descriptor,
            "barrier",
            t.barrier.value().map(|v| format!("{:?}", crate::model::Barrier { passed: None, ..*v })),
        );
        file(t.descriptor, "barriers passed", t.barrier.value().and_then(|v| v.passed).map(|n| n.to_string()));
        file(t.descriptor, "function", t.function.value().map(|v| format!("{v:?}")));
    }
    for t in &s.tasks {
        file(t.descriptor, "kind", t.kind.value().map(|v| format!("{v:?}")));
        file(t.descriptor, "state", t.state.value().map(|v| format!("{v:?}")));
        file(t.descriptor, "of team", t.team.value().map(team));
        file(t.descriptor, "function", t.function.value().map(|v| format!("{v:?}")));
        file(t.descriptor, "priority", t.priority.value().map(i64::to_string));
        file(t.descriptor, "event", t.event.value().map(|v| format!("{v:?}")));
        file(t.descriptor, "unmet", t.unmet.value().map(u32::to_string));
        file(t.descriptor, "children", t.unfinished_children.value().map(u32::to_string));
        let group = |id: &Option<TaskgroupId>| format!("{:?}", id.map(|id| s.taskgroups[id.0].descriptor));
        file(t.descriptor, "taskgroup", t.taskgroup.value().map(group));
        file(t.descriptor, "generating", t.generating.value().map(|v| format!("{:?}", v.map(task))));
    }
    for g in &s.taskgroups {
        file(g.descriptor, "unfinished", g.unfinished.value().map(u64::to_string));
        file(g.descriptor, "cancelled", g.cancelled.value().map(bool::to_string));
        let parent = |id: &Option<TaskgroupId>| format!("{:?}", id.map(|id| s.taskgroups[id.0].descriptor));
        file(g.descriptor, "parent", g.parent.value().map(parent));
    }
    for l in &s.locks {
        file(l.object, "kind of lock", l.kind.value().map(|v| format!("{v:?}")));
        file(l.object, "held", l.held.value().map(bool::to_string));
        let owner = |owner: &Option<Owner>| match owner {
            Some(Owner::Task(id)) => format!("task {}", task(*id)),
            other => format!("{other:?}"),
        };
        file(l.object, "owner", l.owner.value().map(owner));
    }
    all
}

fn check(
    program: &str,
    on: test_programs::Runtime,
    toolchain: Toolchain,
    origins: FamilyOrigins,
    open: fn(&Live, &Module, &FamilyOrigins) -> Box<dyn Runtime>,
) {
    let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, on, Env::Settled).expect("it starts");
    let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be inspected");
    let of_family = |family: &dyn Family| family.about().name == origins.family;
    let module = live.modules().iter().find(|m| family::of_module(&live, m).is_some_and(of_family));
    let module = module.expect("the runtime is loaded").clone();
    LACKING.set(None);
    let all = (origins.recover)(module.file.as_deref().expect("its file")).facts;
    let fields = all.fields.iter().flat_map(|(of, fields)| fields.keys().map(move |f| (of.clone(), Some(f.clone()))));
    let globals = all.globals.keys().map(|global| (String::new(), Some(global.clone())));
    let lacks: Vec<_> = fields.chain(globals).chain(all.sizes.keys().map(|of| (of.clone(), None))).collect();
    assert!(lacks.len() > 50, "{lacks:?}");
    let right = open(&live, &module, &origins);
    let partial: Vec<_> = lacks
        .iter()
        .map(|lack| {
            LACKING.set(Some(lack.clone()));
            open(&live, &module, &origins)
        })
        .collect();
    live.stop().expect("it can be stopped");
    let right = known(&right.snapshot(&live));
    let partial: Vec<_> = partial.iter().map(|p| known(&p.snapshot(&live))).collect();
    live.resume();
    assert!(right.len() > 10, "{right:?}");
    let mut wrong = Vec::new();
    for (lack, found) in lacks.iter().zip(&partial) {
        for (key, value) in found.iter().filter(|(key, value)| right.get(key) != Some(value)) {
            // Less may be known of which kind a barrier, a lock or a wait for tasks is.
            let less = match (key.1, value.as_str()) {
                ("wait", "Some(Mutex)") => ["Some(Lock)", "Some(Critical)"],
                ("wait", "Some(Barrier)") => ["Some(RegionEnd)", "Some(BarrierTasks)"],
                ("wait", "Some(TaskwaitOrTaskgroup)") => ["Some(Taskwait)", "Some(Taskgroup)"],
                _ => [""; 2],
            };
            if right.get(key).is_some_and(|truth| less.contains(&truth.as_str())) {
                continue;
            }
            wrong.push(format!("without {lack:?}: {key:?} is {value}, in truth {:?}", right.get(key)));
        }
    }
    assert!(wrong.is_empty(), "{program}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    running.release().expect("the program goes on");
}

/// Only what `recover` says counts.
const ONLY_CODE: LayoutsFrom<'static> =
    LayoutsFrom { ignore: &[Origin::Profile, Origin::Dwarf, Origin::Table, Origin::Symbol], anew: true, cache: None };

#[test]
fn libgomp() {
    for program in ["nested", "tasks", "idle", "lock", "region_end", "tasks_queued"] {
        let origins = FamilyOrigins { recover: |image| all_but_one(image, &gomp::origins()), ..gomp::origins() };
        check(program, test_programs::Runtime::Libgomp, Toolchain::Gcc, origins, |live, module, origins| {
            Box::new(gomp::Gomp::with(live, module, origins, ONLY_CODE))
        });
    }
}

#[test]
fn libomp() {
    let on = test_programs::Runtime::Libomp14;
    let Some((toolchain, _)) = test_programs::combinations().into_iter().find(|(_, r)| *r == on) else { return };
    for program in ["nested", "tasks", "idle", "serialized", "lock", "region_end"] {
        let origins = FamilyOrigins { recover: |image| all_but_one(image, &kmp::origins()), ..kmp::origins() };
        check(program, on, toolchain, origins, |live, module, origins| {
            Box::new(kmp::Kmp::with(live, module, origins, ONLY_CODE))
        });
    }
}

/// A profile that fits by all that can be seen in the file, but is wrong in a value that no instruction shows. The
/// process itself contradicts it, and it is not used.
fn contradicted(
    (toolchain, on): (Toolchain, test_programs::Runtime),
    origins: fn() -> FamilyOrigins,
    (of, name): (&str, &str),
    open: fn(&Live, &Module, &FamilyOrigins) -> Box<dyn Runtime>,
    failing: &str,
) {
    let executable = build("nested", toolchain, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, on, Env::Settled).expect("it starts");
    let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be inspected");
    let library = on.library().expect("it is here").canonicalize().expect("a file");
    let module = live.modules().iter().find(|m| *m.path == *library.to_string_lossy()).expect("it is loaded").clone();

    let right = open(&live, &module, &origins());
    let mut profiles = origins().profiles.all().clone();
    for profile in &mut profiles.classes {
        let field = profile.facts.fields.get_mut(of).and_then(|fields| fields.get_mut(name));
        field.expect("every profile has it").offset += 4;
    }
    let wrong = FamilyOrigins { profiles: Box::leak(Box::new(ShippedProfiles::parsed(profiles))), ..origins() };
    let wrong = open(&live, &module, &wrong);
    assert!(wrong.info().missing.is_empty(), "the wrong profile is chosen: {:?}", wrong.info().origins);

    live.stop().expect("it can be stopped");
    let (right, wrong) = (right.snapshot(&live), wrong.snapshot(&live));
    live.resume();
    assert!(right.issues.is_empty() && !right.teams.is_empty(), "{:?}", right.issues);
    let why = &wrong.issues.first().expect("an issue").what.to_string();
    assert!(why.contains(&format!("is not used: {failing}")), "{why}");
    // What the code tells is still there, and the same.
    let numbers =
        |s: &RawSnapshot| -> Vec<_> { s.threads.iter().map(|t| (t.lwp, t.thread_num.get(), t.team.get())).collect() };
    assert_eq!(numbers(&right), numbers(&wrong));
    assert!(!wrong.instance.missing.is_empty());
    assert!(wrong.instance.origins.iter().all(|o| o.origin != Origin::Profile || o.values == 0));
    running.release().expect("the program goes on");
}

#[test]
fn a_profile_of_libgomp_that_memory_contradicts() {
    contradicted(
        (Toolchain::Gcc, test_programs::Runtime::Libgomp),
        gomp::origins,
        ("gomp_team", "master_release"),
        |live, module, origins| Box::new(gomp::Gomp::with(live, module, origins, LayoutsFrom::default())),
        "the first release pointer of a team",
    );
}

#[test]
fn a_profile_of_libomp_that_memory_contradicts() {
    let mut on_libomp = test_programs::combinations().into_iter();
    let Some(pair) = on_libomp.find(|(_, runtime)| *runtime == test_programs::Runtime::Libomp14) else { return };
    contradicted(
        pair,
        kmp::origins,
        ("kmp_base_info", "th_info.ds.ds_gtid"),
        |live, module, origins| Box::new(kmp::Kmp::with(live, module, origins, LayoutsFrom::default())),
        "the table of threads has entries",
    );
}
