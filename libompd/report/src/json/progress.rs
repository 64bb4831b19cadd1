//! What has changed between two looks.

use schemars::JsonSchema;
use serde::Serialize;

use ompd_inspection::progress;

/// What has changed between the first and the last look.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// Seconds between them.
    pub seconds: f64,
    /// Threads that were there both times.
    pub threads: Vec<ThreadProgress>,
    /// Other threads that were there both times.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub other_threads: Vec<OtherProgress>,
    /// Teams that were there both times.
    pub teams: Vec<TeamProgress>,
    /// Teams that were not there the first time.
    pub teams_begun: usize,
    /// Teams that were not there any more.
    pub teams_ended: usize,
}

/// What has changed of a thread.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ThreadProgress {
    /// Kernel thread id.
    pub lwp: i32,
    /// Seconds of processor time it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// It executes another task, waits for something else, or is elsewhere in the program.
    pub moved: bool,
}

/// What has changed of a team.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TeamProgress {
    /// Index of the runtime.
    pub runtime: usize,
    /// Index of the team.
    pub team: usize,
    /// Barriers passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barriers_passed: Option<u64>,
    /// Tasks that were not over the first time.
    pub tasks_before: u64,
    /// Tasks that are not over now.
    pub tasks_now: u64,
    /// Something about it or its members has changed.
    pub moved: bool,
}

/// What has changed of a thread that no runtime knows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OtherProgress {
    /// Kernel thread id.
    pub lwp: i32,
    /// Seconds of processor time it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// It is elsewhere in the program. Absent: its stack has no frame of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<bool>,
}

pub fn of(progress: &progress::Progress) -> Progress {
    Progress {
        seconds: progress.elapsed.as_secs_f64(),
        threads: progress
            .threads
            .iter()
            .map(|t| ThreadProgress { lwp: t.lwp, cpu_seconds: t.cpu.map(|cpu| cpu.as_secs_f64()), moved: t.moved })
            .collect(),
        other_threads: progress
            .others
            .iter()
            .map(|t| OtherProgress { lwp: t.lwp, cpu_seconds: t.cpu.map(|cpu| cpu.as_secs_f64()), moved: t.moved })
            .collect(),
        teams: progress
            .teams
            .iter()
            .map(|t| TeamProgress {
                runtime: t.runtime,
                team: t.team.0,
                barriers_passed: t.barriers,
                tasks_before: t.tasks.0,
                tasks_now: t.tasks.1,
                moved: t.moved,
            })
            .collect(),
        teams_begun: progress.begun,
        teams_ended: progress.ended,
    }
}
