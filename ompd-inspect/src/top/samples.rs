//! Refreshes for tests.

use ompd_report::top::{Barrier, Loop, Process, Refresh, Tasks, Team, Thread};

/// A process of four threads, one of them idle, and a second one that is the rank 3 of a job.
pub fn refresh() -> Refresh {
    // 14:02:31 on some day.
    let mut refresh = Refresh::new(7, 86_400.0 * 100.0 + 50_551.0);
    refresh.processes = vec![solver(), rank()];
    refresh
}

/// The same with one process.
pub fn single() -> Refresh {
    let mut refresh = refresh();
    refresh.processes.truncate(1);
    refresh
}

fn thread(id: i32, number: u32, cpu: f64, doing: &str) -> Thread {
    Thread {
        id,
        team: Some(0),
        number: Some(number),
        team_size: Some(3),
        level: Some(1),
        role: Some("worker"),
        state: Some("work_parallel"),
        cpu_percent: Some(cpu),
        loop_percent: Some(52),
        doing: doing.to_owned(),
        ..Thread::default()
    }
}

fn solver() -> Process {
    let waits = "waits at the implicit barrier of a loop, relax.c:37, in relax";
    let idle = Thread {
        team: None,
        number: None,
        team_size: None,
        level: None,
        loop_percent: None,
        idle: true,
        ..thread(4714, 0, 0.0, "idle: waits for the next region")
    };
    Process {
        pid: 4711,
        name: Some("solver".to_owned()),
        runtimes: vec!["GNU libgomp"],
        word: Some("RUNNING"),
        answer: Some("2 of 3 OpenMP threads execute the program".to_owned()),
        pause_ms: Some(3.13),
        os_threads: 5,
        tasks: Tasks { executing: 1, queued: 12, ..Tasks::default() },
        teams: vec![Team {
            id: 0,
            level: Some(1),
            size: Some(3),
            region: Some("parallel in main (relax.c:52)".to_owned()),
            barrier: Some(Barrier { at_end: false, reached: 1, not_reached: vec![0, 2], unclear: Vec::new() }),
            barriers_passed: Some(3),
            loops: vec![Loop {
                kind: Some("loop"),
                iterations: Some(100),
                handed_out: Some(52),
                percent: Some(52),
                left: Some(48),
                text: "52 of 100 handed out (52%)".to_owned(),
                members: vec![0, 1, 2],
            }],
            tasks: Tasks { executing: 1, queued: 12, ..Tasks::default() },
            ..Team::default()
        }],
        threads: vec![
            // Some characters are two columns wide.
            thread(4711, 0, 48.25, "running, 計算.c:12, in größe_反復"),
            Thread { waiting: true, ..thread(4712, 1, 0.0, waits) },
            thread(4713, 2, 99.96, "running, relax.c:33, in relax"),
            idle,
        ],
        ..Process::default()
    }
}

fn rank() -> Process {
    Process {
        pid: 90_210,
        name: Some("solver".to_owned()),
        rank: Some(3),
        runtimes: vec!["LLVM libomp"],
        word: Some("DEADLOCK"),
        answer: Some("1 thread waits for lock total_lock, which it holds itself".to_owned()),
        pause_ms: Some(0.5),
        os_threads: 1,
        threads: vec![Thread {
            team: None,
            number: None,
            level: Some(2),
            waiting: true,
            loop_percent: None,
            ..thread(90_210, 0, 0.0, "waits for lock total_lock, lock.c:9, in main")
        }],
        ..Process::default()
    }
}
