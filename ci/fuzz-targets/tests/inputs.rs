//! What `ci/fuzz` starts from works, and the targets survive it, whole, cut and damaged.

use fuzz_targets::{TARGETS, seeds};
use ompd_process::{Core, OpenOptions, Target};

fn all() -> Vec<seeds::Seed> {
    seeds::make().expect("seeds")
}

#[test]
fn every_target_has_seeds() {
    let seeds = all();
    for (target, _) in TARGETS {
        assert!(seeds.iter().any(|seed| seed.target == target && seed.bytes.len() > 64), "{target}");
    }
}

#[test]
fn seeds_say_what_they_should() {
    let seeds = all();
    let of = |target: &'static str| seeds.iter().filter(move |seed| seed.target == target);
    for seed in of("core") {
        let path = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(path.path(), &seed.bytes).expect("write");
        let core = Core::open(path.path(), &OpenOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", seed.name));
        assert_eq!((core.threads().len(), core.process().pid), (3, Some(70)), "{}", seed.name);
        assert!(core.modules().iter().any(|m| m.name() == "prog" && m.build_id.is_some()), "{}: {core:?}", seed.name);
    }
    for seed in of("python") {
        let (_, snapshot) = fuzz_targets::python::read(&seed.bytes).expect("an interpreter");
        let [runtime] = &snapshot.runtimes[..] else { panic!("{snapshot:?}") };
        let [thread] = &runtime.threads[..] else { panic!("{}: {runtime:?}", seed.name) };
        let frames = thread.calls.iter().flat_map(|call| &call.frames);
        let frames: Vec<_> = frames.map(|frame| (&*frame.code.name, &*frame.code.file, frame.line)).collect();
        assert_eq!(frames, [("work", "a.py", Some(11)), ("main", "a.py", Some(11))], "{}: {runtime:?}", seed.name);
        assert_eq!((thread.calls.len(), &thread.problem, &runtime.problem), (2, &None, &None), "{}", seed.name);
        assert_eq!(runtime.gils[0].state, Ok(ompd_python::GilState::HeldBy(thread.state)), "{}", seed.name);
    }
    let mut whole = 0;
    for seed in of("debugged") {
        let found =
            fuzz_targets::debugged::open(&seed.bytes).unwrap_or_else(|| panic!("{}: nothing is found", seed.name));
        assert_eq!((found.modules.0, found.threads, found.environment), (1, 2, true), "{}: {found:?}", seed.name);
        whole += usize::from(found.modules.1 == 1 && found.names > 0);
    }
    assert!(whole > 0, "of no seed the file is put together");
    for (target, schema) in ompd_runtime::family::families().map(|about| ("elf", about.layouts.schema)) {
        let found = of(target).filter(|seed| {
            let file = ompd_process::ElfFile::from_bytes(&seed.name, seed.bytes.clone()).expect("an ELF file");
            ompd_layout::dwarf::extract_elf(&file, schema).is_ok_and(|facts| facts.fields.len() >= 3)
        });
        assert!(found.count() > 0, "no seed has structs of {}", schema.family);
    }
}

/// What all names of an interpreter take is limited, whatever the process says.
#[test]
fn names_that_overlap_and_structs_of_any_size_take_no_memory_to_speak_of() {
    let read = |input: &[u8]| fuzz_targets::python::read(input).expect("an interpreter").1.runtimes.remove(0);
    let runtime = read(&seeds::python::of_long_names(2000, 4096));
    let thread = &runtime.threads[0];
    let limit = 4 << 20;
    assert_eq!(thread.problem, Some(ompd_python::Unknown::TooMany { what: "characters of names", limit }));
    // Each also has a path of four characters.
    assert_eq!(thread.calls.len(), limit / (4096 + 4));
    fuzz_targets::python::check(&seeds::python::of_long_names(2000, 4096));

    assert_eq!(read(&seeds::python::of_large_threads(4088)).problem, None);
    let large = read(&seeds::python::of_large_threads(4096)).problem.map(|why| why.to_string());
    assert!(large.as_ref().is_some_and(|why| why.contains("description of the layout")), "{large:?}");
}

#[test]
fn seeds_and_what_is_left_of_damaged_ones_do_no_harm() {
    for seed in all() {
        let (_, check) = TARGETS.into_iter().find(|(name, _)| *name == seed.target).expect("a target");
        check(&seed.bytes);
        for n in 0..12 {
            check(&seed.bytes[..seed.bytes.len() * n / 12]);
            // Every twelfth-so-many bytes one is overwritten, each time others, with numbers that lie at an edge.
            let mut damaged = seed.bytes.clone();
            for at in (n..damaged.len()).step_by(97) {
                damaged[at] = [0, 1, 0x7f, 0x80, 0xff][(at + n) % 5];
            }
            check(&damaged);
        }
    }
}
