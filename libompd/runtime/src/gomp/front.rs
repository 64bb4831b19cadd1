//! `libgomp_ompt.so` in front of the runtime, or its archive in a program: the functions that the runtime knows are then that library's,
//! and those of the program lie in records of it (`libompd/gomp-ompt/src/layout.rs`).

use std::ops::Range;

use ompd_layout::profile::ShippedProfiles;
use ompd_process::{Addr, Module, Target, TargetExt};

/// The library's description of itself.
const LAYOUT: &str = "libgomp_ompt_layout";
/// What it calls the program's functions with.
const CALL: &str = "libgomp_ompt_call";
/// What the runtime calls as the function of a region, of a league, and of a task.
const REGION: &str = "libgomp_ompt_region";
const LEAGUE: &str = "libgomp_ompt_league";
const TASK: &str = "libgomp_ompt_task";
/// An entry point that any program has which has the library in it.
const ENTRY_POINT: &str = "GOMP_parallel";

/// The library in a process.
#[derive(Debug)]
pub(super) struct Front {
    /// Lowest mapped address of its module.
    pub(super) base: Addr,
    /// Its module has other code as well: it was linked in from the archive.
    is_part: bool,
    /// Names of libgomp, which its entry points have.
    public: &'static ShippedProfiles,
    task: Addr,
    /// What calls the program's functions.
    call: Range<Addr>,
    /// In the argument of a task: its function, and the address of its record.
    task_body: u64,
    task_record: u64,
    /// In that record: what a tool has stored.
    task_data: u64,
}

/// An offset in a record is not larger.
const MOST: u64 = 1 << 12;

impl Front {
    /// That of a process. `None` if it has none, or another version of its layout. `public` are libgomp's public names.
    pub(super) fn of(target: &dyn Target, public: &'static ShippedProfiles) -> Option<Front> {
        let modules = target.modules();
        // The archive's variable is not exported if nothing asks for it. Entry points are, since libgomp has them too: only of a program with
        // such are all symbols looked at.
        let has_it = |module: &&Module| {
            module.exports(ENTRY_POINT) && module.file.as_ref().is_ok_and(|file| file.variable(LAYOUT).is_some())
        };
        let is_program = |module: &&Module| module.file.as_ref().is_ok_and(|file| file.is_program());
        let program = || modules.iter().find(is_program).filter(has_it);
        let module = modules.iter().find(|module| module.exports(LAYOUT)).or_else(program)?;
        let at = |name: &str| module.symbol(name).filter(|symbol| !symbol.tls).map(|symbol| symbol.addr);
        let layout = at(LAYOUT)?;
        let word = |n: u64| target.read_u64(layout.offset(8 * n)).ok();
        if word(0)? != 1 {
            return None;
        }
        let call = module.symbol(CALL)?;
        let offset = |n: u64| word(n).filter(|offset| *offset < MOST);
        Some(Front {
            base: Module::base(module),
            is_part: module.file.as_ref().is_ok_and(|file| file.is_program()),
            public,
            task: at(TASK)?,
            call: call.addr..call.addr.offset(call.size),
            task_body: offset(1)?,
            task_record: offset(2)?,
            task_data: offset(3)?,
        })
    }

    /// Whether code is the library's. Of a file with other code as well the names of functions say so.
    pub(super) fn has(&self, target: &dyn Target, addr: Addr) -> bool {
        let Some(module) = target.module_at(addr).filter(|module| module.base() == self.base) else { return false };
        !self.is_part || module.symbol_at(addr).is_some_and(|(symbol, _)| self.has_name(&symbol.name))
    }

    /// Whether a function is the library's: an entry point, or one with the name of its crate in it as compilers write that. The program
    /// may have functions whose names begin like libgomp's.
    fn has_name(&self, name: &str) -> bool {
        self.public.vocabulary().names.contains(name)
            || name.starts_with("libgomp_ompt_")
            || name.contains("9gomp_ompt")
    }

    /// Whether the code at this address calls the program's functions.
    pub(super) fn calls_program(&self, addr: Addr) -> bool {
        self.call.contains(&addr)
    }

    /// The program's function of a task, and what a tool has stored with it. `function` and `argument` are what the runtime
    /// has. `None` for a task that the library does not know.
    pub(super) fn task(&self, target: &dyn Target, function: Addr, argument: Addr) -> Option<(Addr, Option<u64>)> {
        if function != self.task {
            return None;
        }
        let body = target.read_ptr(argument.offset(self.task_body)).ok().filter(|body| !body.is_null())?;
        let record = target.read_ptr(argument.offset(self.task_record)).ok();
        let data = record.and_then(|record| target.read_u64(record.offset(self.task_data)).ok());
        Some((body, data))
    }
}

/// Whether the library's frames, of which these are the names, innermost first, call the body of a region. `None` for other frames.
pub(super) fn invokes_region(functions: &[Option<&str>]) -> Option<bool> {
    match functions {
        [Some(CALL), Some(by), ..] => Some([REGION, LEAGUE].contains(by)),
        [Some(CALL), ..] => Some(false),
        _ => None,
    }
}
