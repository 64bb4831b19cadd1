//! Why the crate framehop, made for profilers, does not do the unwinding here.
//!
//! It takes every address on a stack for that behind a call, and steps over an unknown place by the frame pointer. So a
//! stack that a signal interrupted in the first instruction of a function loses frames without saying so. It also
//! recovers only the registers that return addresses depend on as a rule. The registers that give the arguments of
//! runtimes' functions are not among them.

use ::framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use ::framehop::{ExplicitModuleSectionInfo, Unwinder as _};
use ompd_process::Target as _;
use ompd_stack::End;

use crate::support::{Built, Look, have, places, skip};

/// What framehop makes of the only thread: program counters, and what it ended with.
fn by_framehop(look: &Look) -> (Vec<u64>, Option<String>) {
    let mut unwinder = UnwinderX86_64::<Vec<u8>>::new();
    for module in look.live.modules() {
        let file = module.file.as_ref().expect("every file is there");
        let place = |name| file.section_range(name);
        let bytes = |name| file.section(name).map(|bytes| bytes.into_owned());
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: place(".text"),
            text: bytes(".text"),
            got_svma: place(".got"),
            eh_frame_svma: place(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: place(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            debug_frame: bytes(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        };
        let end = module.ranges.last().map_or(0, |range| range.end);
        let range = module.base().0..end;
        unwinder.add_module(::framehop::Module::new(module.path.clone(), range, module.bias, sections));
    }
    let registers = look.live.threads()[0].registers.as_ref().expect("registers");
    let start = UnwindRegsX86_64::new(registers.pc.0, registers.sp.0, registers.fp.0);
    let mut read = |addr| look.stacks.read_u64(&look.live, ompd_process::Addr(addr)).map_err(drop);
    let mut cache = CacheX86_64::<_>::new();
    let mut frames = unwinder.iter_frames(registers.pc.0, start, &mut cache, &mut read);
    let mut found = Vec::new();
    loop {
        match frames.next() {
            Ok(Some(frame)) => found.push(frame.address()),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error.to_string())),
        }
    }
}

#[test]
fn what_it_loses_is_found() {
    if !have("gdb") {
        return skip("there is no gdb to compare with");
    }
    let compare = |flags: &[&str], place: &str| {
        let program = Built::places(flags);
        let waiting = program.start(&[place], 1);
        let theirs: Vec<(u64, u64)> = waiting.in_gdb("all").remove(0).1;
        let look = waiting.look();
        let ours = look.backtrace();
        assert_eq!((places(&ours), ours.end), (theirs.clone(), End::Root), "{place}");
        let (found, error) = by_framehop(&look);
        (theirs.into_iter().map(|(pc, _)| pc).collect::<Vec<u64>>(), found, error)
    };
    // Where it can tell it is right: the comparison is sound.
    let (right, found, error) = compare(&["-O2", "-fomit-frame-pointer"], "recursive");
    assert_eq!((found, error), (right, None));
    // The function that a signal interrupted and its caller are missing, and nothing says so.
    let (right, found, error) = compare(&["-O0"], "fault");
    assert_eq!((found.len(), error), (right.len() - 2, None));
    assert!(found.iter().all(|pc| right.contains(pc)));
    // Without frame pointers a value of the program is taken for an address.
    let (right, found, error) = compare(&["-O2", "-fomit-frame-pointer"], "fault");
    assert!(found.iter().any(|pc| !right.contains(pc)) && error.is_some(), "{found:x?} {error:?}");
    // The register that has the caller's value after a realigned frame is lost, and what it holds taken for an address.
    let (right, found, error) = compare(&["-O2", "-fomit-frame-pointer"], "realigned");
    assert!(found.iter().any(|pc| !right.contains(pc)) && error.is_some(), "{found:x?} {error:?}");
}
