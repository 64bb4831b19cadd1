//! Histories and loops for tests.

use std::collections::HashMap;
use std::time::SystemTime;

use ompd_inspection::history::{DeviceHistory, History};
use ompd_runtime::model::{Common, Fact, Loop, TeamId};
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

/// A worksharing loop of which nothing is known.
pub(crate) fn unknown_loop() -> Loop {
    let why = Common::NotRecordedByRuntime;
    Loop {
        team: TeamId(0),
        kind: Fact::unknown(why),
        schedule: Fact::unknown(why),
        chunk: Fact::unknown(why),
        iterations: Fact::unknown(why),
        handed_out: Fact::unknown(why),
        next: Fact::unknown(why),
        end: Fact::unknown(why),
        step: Fact::unknown(why),
        completed: Fact::unknown(why),
        members: Vec::new(),
        shares: Vec::new(),
        ordered_turn: Fact::unknown(why),
        doacross: Fact::unknown(why),
    }
}
