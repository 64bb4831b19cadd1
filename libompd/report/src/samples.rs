//! Inspections and histories for tests.

use std::collections::HashMap;
use std::time::SystemTime;

use ompd_inspection::{Inspection, ProcessThread};
use ompd_process::{ProcessInfo, TargetKind};
use ompd_runtime::model::RuntimeSnapshot;
use ompd_runtime::os::OsState;
use ompd_runtime::samples::Process;
use ompd_runtime::waits_for;
use ompd_stack::{End, LogicalFrame, LogicalStack, Report};

use ompd_inspection::history::{DeviceHistory, History};
use ompt_record::block::State;
use ompt_record::device::{DeviceRecord, DeviceState};

/// A history without threads. It began at 1000 ns.
pub(crate) fn history() -> History {
    History {
        kind: None,
        pid: 1,
        forks: 0,
        runtime: String::new(),
        omp_version: 0,
        state: State::Recording,
        command: None,
        began: (1000, SystemTime::UNIX_EPOCH),
        now: None,
        threads: Vec::new(),
        devices: Vec::new(),
        places: HashMap::new(),
        names: HashMap::new(),
        issues: Vec::new(),
    }
}

/// A device introduced 4 µs after the history began, when its clock was at 100 ticks and the host's at 5 s.
pub(crate) fn device(records: Vec<DeviceRecord>) -> DeviceHistory {
    DeviceHistory {
        number: 3,
        type_name: "x86\n64".to_owned(),
        state: DeviceState::Tracing,
        has_lookup: true,
        entry_points: vec!["ompt_start_trace", "ompt_stop_trace"],
        began: 5000,
        device_time: Some(100),
        host_time: Some(5.0),
        ended: None,
        total: 9,
        records,
        earlier: false,
        fragments: 0,
        buffers_refused: 0,
        invalid: 0,
        cut: 0,
    }
}

/// The inspection of a live process that was made by hand. Its first thread is the main thread.
pub(crate) fn inspection(process: Process) -> Inspection {
    judged(vec![process.snapshot.into()], process.os)
}

/// The same of snapshots to which names and lines were added.
pub(crate) fn judged(runtimes: Vec<RuntimeSnapshot>, os: OsState) -> Inspection {
    let mut waits_for = waits_for::judge(&runtimes, &os);
    waits_for.find_waiting(&runtimes, &os);
    let known = |lwp| runtimes.iter().any(|runtime| runtime.thread_by_lwp(lwp).is_some());
    let threads = os.threads.iter().map(|thread| ProcessThread {
        lwp: thread.lwp,
        name: None,
        blocked_in: None,
        signal: None,
        foreign: !known(thread.lwp),
    });
    Inspection {
        kind: TargetKind::Live,
        process: ProcessInfo { pid: Some(1), ..ProcessInfo::default() },
        children: Vec::new(),
        threads: threads.collect(),
        os,
        outside: Vec::new(),
        waits_for,
        stacks: Report::default(),
        lock_calls: Vec::new(),
        locals: None,
        unopened: Vec::new(),
        nameless: false,
        unlisted: false,
        tools: Vec::new(),
        mpi: None,
        issues: Vec::new(),
        pause: None,
        stopped_at: None,
        stops: 0,
        stopped_threads: None,
        read_asleep: false,
        cpu: HashMap::new(),
        progress: None,
        unmoved: None,
        runtimes,
    }
}

/// A thread executes this line of a function of the program.
pub(crate) fn stack(lwp: i32, function: &str, file: &str, line: u32) -> LogicalStack {
    let mut frame = LogicalFrame::named(function);
    (frame.file, frame.line, frame.lwp) = (Some(file.into()), Some(line), Some(lwp));
    LogicalStack { lwp, frames: vec![frame], in_call: None, idle: false, gap: None, end: End::Root }
}
