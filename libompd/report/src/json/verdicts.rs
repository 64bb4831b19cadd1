//! Verdicts.

use schemars::JsonSchema;
use serde::Serialize;

use crate::tell;
use crate::{answer, remarks};
use ompd_inspection::Inspection;

/// One hang.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdict {
    /// `deadlock`: proven, nothing can end these waits; `suspect`: everything waits for something from outside of the
    /// process; `waiting`: no hang, threads wait for one that may still let them continue, or for one that is unknown.
    pub verdict: &'static str,
    /// What kind of hang it is: `lock_cycle`, `self_deadlock`, `owner_gone`, `barrier_mismatch`, `orphaned_worksharing`,
    /// `missing_member`, `unfulfilled_event`, `dependence_cycle`, `task_never_run`, `nested_exhausted`, `pool_lost_in_fork`, `closed_waits`; of
    /// `waiting`: `barrier_not_reached`, `lock_held`, `ordered_turn`, `tasks_unfinished`, `device_not_done`; or others to come.
    pub situation: &'static str,
    /// What it is, in one sentence.
    pub text: String,
    /// The threads that are the cause, with what each does and where.
    pub cause: Option<String>,
    /// The facts it rests on, a sentence each.
    pub evidence: Vec<String>,
    /// What is inferred and was not read, a sentence each: who probably holds a lock whose owner is not recorded. No verdict rests
    /// on it.
    pub inferred: Vec<String>,
    /// How to fix it.
    pub fix: String,
    /// Threads (LWP) that wait for each other, or are waited for; of `waiting` those that have not reached the barrier, or hold
    /// the lock.
    pub threads: Vec<i32>,
    /// Threads (LWP) that in the end wait for these.
    pub held_up: Vec<i32>,
    /// Addresses of the locks, dependences and event handles named in it.
    pub objects: Vec<String>,
    /// Descriptors of the tasks named in it.
    pub tasks: Vec<String>,
    /// Teams whose barriers are part of it.
    pub teams: Vec<TeamReference>,
}

/// Something that makes threads wait without being wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Remark {
    /// `oversubscribed`: more threads of OpenMP were awake than there are processors for them; `several_runtimes`: several
    /// runtimes are at work; `levels_exhausted`: a nested region could not get more than one thread;
    /// `iterations_wait`: no member of a team computes, and some wait for iterations of a doacross loop; or others to come.
    pub kind: &'static str,
    /// What is so, and why.
    pub text: String,
    /// How to avoid it.
    pub fix: String,
}

/// A team, by its place in the report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TeamReference {
    /// Index of the runtime.
    pub runtime: usize,
    /// Index of the team.
    pub team: usize,
}

pub fn remarks(inspection: &Inspection) -> Vec<Remark> {
    let all = remarks::remarks(inspection).into_iter();
    all.map(|remark| Remark { kind: remark.kind, text: remark.text, fix: remark.fix }).collect()
}

pub fn verdicts(inspection: &Inspection) -> Vec<Verdict> {
    let verdicts = answer::verdicts(inspection);
    verdicts
        .map(|verdict| {
            let told = tell::tell(inspection, verdict);
            Verdict {
                verdict: verdict.certainty.word(),
                situation: verdict.situation.word(),
                text: told.text,
                cause: told.cause,
                evidence: told.evidence,
                inferred: told.inferred,
                fix: told.fix,
                threads: told.threads,
                held_up: verdict.held_up.clone(),
                objects: told.objects.iter().map(ToString::to_string).collect(),
                tasks: told.tasks.iter().map(ToString::to_string).collect(),
                teams: told
                    .teams
                    .iter()
                    .map(|(runtime, team)| TeamReference { runtime: *runtime, team: *team })
                    .collect(),
            }
        })
        .collect()
}
