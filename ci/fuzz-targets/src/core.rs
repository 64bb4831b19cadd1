//! Core files: headers, notes, the overlay of segments, the images found in it.

use std::cell::RefCell;
use std::io::{Seek as _, SeekFrom, Write as _};

use ompd_process::{Addr, Core, OpenOptions, Target, TargetExt};
use tempfile::NamedTempFile;

/// Opens the input as a core, and looks at everything that it says is there.
pub fn check(data: &[u8]) {
    thread_local! {
        // Cores are opened by name: one file serves all inputs.
        static FILE: RefCell<Option<NamedTempFile>> = const { RefCell::new(None) };
    }
    FILE.with_borrow_mut(|slot| {
        let file = slot.get_or_insert_with(|| NamedTempFile::new().expect("a file for the input"));
        let written =
            file.as_file().set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| file.write_all(data));
        written.expect("write the input");
        if let Ok(core) = Core::open(file.path(), &OpenOptions::default()) {
            look_at(&core);
        }
    });
}

fn look_at(core: &Core) {
    let _ = (core.arch(), core.process(), core.issues(), core.auxv(3));
    let word = u64::from(core.arch().pointer_bytes);
    for thread in core.threads() {
        let Ok(registers) = &thread.registers else { continue };
        for addr in [Some(registers.pc), Some(registers.sp), registers.thread_pointer].into_iter().flatten() {
            let _ = (core.read_ptr(addr), core.read_vec(addr, 100), core.read_cstr(addr, 100));
            // No end of the address space may be stepped over.
            let _ = core.read_uint(addr.back(word), word);
            if let Some(module) = core.module_at(addr) {
                let _ = (module.symbol_at(addr), module.symbol("omp_get_thread_num"));
            }
        }
    }
    for module in core.modules() {
        assert!(!module.ranges.is_empty() && module.ranges.iter().all(|r| r.start < r.end), "{:?}", module.ranges);
        let _ = (module.name(), module.exports("GOMP_parallel"));
        let mut first = [0; 64];
        let _ = core.read(module.base(), &mut first);
    }
    for addr in [0, 1, 0x1000, u64::MAX - 7, u64::MAX] {
        let _ = core.read_ptr(Addr(addr));
    }
    let runtimes = ompd_runtime::discover(core, &[]);
    crate::stack::look_at(core, &runtimes, &ompd_stack::Cache::default());
}
