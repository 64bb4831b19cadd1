//! What threads wait for outside of OpenMP: the library function that the program called, where, and what the kernel shows of the
//! system call. No value here is a guess: what was not found is `None`.

mod calls;
mod ends;
mod model;
mod mpi;
mod names;
mod waits;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use ompd_process::{Arch, Registers, Syscall, Target, TargetKind};
use ompd_runtime::model::{Fact, RuntimeSnapshot};
use ompd_runtime::os::{Blocked, OsState};
use ompd_stack::{Code, Stacks};

use crate::ProcessThread;
use calls::Calls;
use mpi::Arguments;
use names::mpi_name;
use waits::{Waiter, Waits};

pub use model::{
    Call, CallSite, Communicator, Described, Ends, MpiArguments, ObjectKind, Outside, OutsideWait, Partner, Read,
    RwHolder,
};

/// Of every thread that executes no wait of a runtime, in LWP order. The target may run again.
pub(crate) fn find(
    target: &dyn Target,
    code: &Code<'_>,
    stacks: &Stacks,
    report: &ompd_stack::Report,
    os: &OsState,
    runtimes: &[RuntimeSnapshot],
    threads: &[ProcessThread],
) -> Vec<Outside> {
    let in_calls: HashSet<i32> =
        report.logical.iter().filter(|stack| stack.in_call.is_some()).map(|stack| stack.lwp).collect();
    let waiting: HashSet<i32> = runtimes.iter().flat_map(|runtime| waiting(runtime, &in_calls)).collect();
    let registers: HashMap<i32, &Registers> =
        target.threads().iter().filter_map(|t| Some((t.lwp, t.registers.as_ref().ok()?))).collect();
    let blocked: HashMap<i32, Blocked> = os.threads.iter().map(|thread| (thread.lwp, thread.blocked)).collect();
    let mut calls = Calls::new(target, code, report);
    let surroundings = target.surroundings();
    let waits = Waits {
        target,
        stacks,
        surroundings,
        descriptors: RefCell::default(),
        children: OnceCell::new(),
        device_library: OnceCell::new(),
    };
    let mut mpi: Option<Arguments<'_, '_>> = None;
    let outside = threads.iter().filter(|thread| !waiting.contains(&thread.lwp)).map(|thread| {
        let stack = calls.of(thread.lwp);
        let registers = registers.get(&thread.lwp).copied();
        let call = registers.and_then(|of| of.syscall.filter(|call| call.begun).or_else(|| ended_call(target, of)));
        let name = call.map(|call| name_call(call, target.arch()));
        let waiter = Waiter {
            lwp: thread.lwp,
            call: call.zip(name.as_deref()),
            registers,
            blocked: blocked.get(&thread.lwp).copied().unwrap_or(Blocked::No),
            stack: &stack,
        };
        let mut wait = waits.of(&waiter);
        if let Some(OutsideWait::Mpi { function, arguments }) = &mut wait
            && let Some(called) = &stack.called
            && mpi_name(&called.symbol).as_deref() == Some(&**function)
            && let Some(backtrace) = report.physical(thread.lwp)
        {
            let reader = mpi.get_or_insert_with(|| Arguments::new(target, code));
            *arguments = reader.of(function, &called.symbol, &backtrace.frames, called.frame);
        }
        let process = target.process();
        if process.stopped || process.frozen || process.held_by.is_some() {
            let by = process.held_by.as_ref().map(|holder| holder.name.clone());
            let by = by.or_else(|| process.frozen.then(|| "its frozen control group".to_owned()));
            wait = Some(OutsideWait::Stopped { within: wait.map(Box::new), by });
        }
        Outside { lwp: thread.lwp, call: stack.call, wait, object: None }
    });
    let mut outside: Vec<Outside> = outside.collect();
    if let Some(surroundings) = &waits.surroundings {
        ends::find(surroundings, &mut outside);
    }
    outside
}

/// The call that a thread was in when somebody stopped it to write a core.
fn ended_call(target: &dyn Target, registers: &Registers) -> Option<Syscall> {
    registers.ended_call(target.arch()).filter(|_| target.kind() == TargetKind::Core)
}

/// The name of the system call that a thread is in.
pub(crate) fn call_name(registers: &Registers, arch: Arch) -> Option<String> {
    let call = registers.syscall.filter(|call| call.begun).map(|call| name_call(call, arch));
    call.or_else(|| registers.is_in_unknown_call(arch).then(|| UNKNOWN_CALL.to_owned()))
}

/// The name of a system call whose number is unknown.
pub(crate) const UNKNOWN_CALL: &str = "unknown";

/// Name of a system call in the table of the target's machine.
pub(crate) fn name_call(call: Syscall, arch: Arch) -> String {
    let name = arch.machine.call_name(call.number);
    match name {
        // What is left of a sleep or wait that a stop, ours or another's, has interrupted before.
        Some("restart_syscall") => "restart_syscall (a sleep or wait interrupted before)".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("number {}", call.number),
    }
}

/// Threads that wait in a runtime, or may: `in_calls` has those whose stacks show them in one of its calls.
fn waiting<'r>(runtime: &'r RuntimeSnapshot, in_calls: &'r HashSet<i32>) -> impl Iterator<Item = i32> + 'r {
    runtime.threads.iter().filter_map(move |thread| {
        let lwp = thread.lwp?;
        let waits = match &thread.wait {
            Fact::Known { value, .. } => value.is_some(),
            Fact::Unknown { .. } => in_calls.contains(&lwp),
        };
        waits.then_some(lwp)
    })
}
