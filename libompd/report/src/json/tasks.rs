//! Tasks.

use ompd_runtime::model;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Code, Known, Location, code, copied, hex, known, location};
use ompd_inspection::Inspection;

/// One task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Task {
    /// The runtime's descriptor.
    pub descriptor: String,
    /// `initial`, `implicit`, `explicit` or `undeferred`.
    pub kind: Known<&'static str>,
    /// `running`, `suspended`, `ready`, `blocked` (on dependences), `detached` or `on device`.
    pub state: Known<&'static str>,
    /// Function.
    pub function: Known<Code>,
    /// Source position of the construct. With origin `dwarf` it is that of the first code of its body: of the directive, or of
    /// the first statement in it.
    pub location: Known<Location>,
    /// Where it was generated, as an OMPT companion has recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<super::Site>,
    /// Index of the generating task; `null` as value: none, or finished.
    pub generating: Known<Option<usize>>,
    /// Index of its team; `null` as value: none.
    pub team: Known<Option<usize>>,
    /// Thread that executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lwp: Option<i32>,
    /// `final` is in force.
    #[serde(rename = "final")]
    pub is_final: Known<bool>,
    /// Thread on whose stack it is, once it has been begun, where the stacks tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_lwp: Option<i32>,
    /// It has no `untied` clause.
    pub tied: Known<bool>,
    /// `mergeable` clause.
    pub mergeable: Known<bool>,
    /// `priority` clause in force.
    pub priority: Known<i64>,
    /// Index of the innermost task group it is in; `null` as value: none.
    pub taskgroup: Known<Option<usize>>,
    /// Event of a `detach` clause; `null` as value: none.
    pub event: Known<Option<Event>>,
    /// Items of `depend` clauses, as far as the runtime keeps them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dependences: Vec<Dependence>,
    /// Tasks it depends on that are not over.
    pub unmet: Known<u32>,
    /// Indices of those that were found.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub predecessors: Vec<usize>,
    /// Children that are not over.
    pub unfinished_children: Known<u32>,
    /// What it waits for: if it is suspended, its thread executes something else meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_in: Option<TaskWait>,
    /// Its frames that border on the runtime, where they are on a stack and could be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<TaskFrames>,
}

/// A wait of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskWait {
    /// As the kind of a thread's wait.
    pub kind: &'static str,
    /// Line of the call that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// Frames of a task that border on the runtime, as the addresses the stack pointer had before each was called.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskFrames {
    /// Thread on whose stack they are.
    pub lwp: i32,
    /// Of its outermost frame.
    pub exit: String,
    /// Of its innermost frame, if that called the runtime and has not returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<String>,
}

/// The event of a detached task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Event {
    /// Value of its handle, for `omp_fulfill_event`.
    pub handle: String,
    /// It has been fulfilled.
    pub fulfilled: bool,
}

/// One item of a `depend` clause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dependence {
    /// Address of the storage.
    pub addr: String,
    /// `in`, `inout` (or `out`), `mutexinoutset`, `inoutset`.
    pub kind: Known<&'static str>,
    /// Name of the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Tasks that are only counted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MoreTasks {
    /// Index of a task that they are like.
    pub like: usize,
    /// How many there are beside those listed.
    pub count: u64,
}

/// A task group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Taskgroup {
    /// The runtime's descriptor.
    pub descriptor: String,
    /// Index of the enclosing one; `null` as value: none.
    pub parent: Known<Option<usize>>,
    /// Tasks of the group that are not over.
    pub unfinished: Known<u64>,
    /// It has been cancelled.
    pub cancelled: Known<bool>,
}

pub fn task(inspection: &Inspection, runtime: usize, id: model::TaskId) -> Task {
    let task = &inspection.runtimes[runtime].tasks[id.0];
    let frames = inspection.stacks.task_frames(runtime, id, task);
    Task {
        descriptor: hex(task.descriptor),
        kind: known(&task.kind, |k| k.word()),
        state: known(&task.state, |s| s.word()),
        function: known(&task.function, code),
        location: known(&task.location, location),
        created: task.created.as_ref().map(super::site),
        generating: known(&task.generating, |g| g.map(|t| t.0)),
        team: known(&task.team, |team| team.map(|t| t.0)),
        lwp: task.thread,
        is_final: copied(&task.is_final),
        stack_lwp: task.stack,
        tied: copied(&task.tied),
        mergeable: copied(&task.mergeable),
        priority: copied(&task.priority),
        taskgroup: known(&task.taskgroup, |group| group.map(|g| g.0)),
        event: known(&task.event, |e| e.map(|e| Event { handle: hex(e.handle), fulfilled: e.fulfilled })),
        dependences: task.dependences.iter().map(dependence).collect(),
        unmet: copied(&task.unmet),
        predecessors: task.predecessors.iter().map(|id| id.0).collect(),
        unfinished_children: copied(&task.unfinished_children),
        waits_in: task
            .wait
            .as_ref()
            .map(|wait| TaskWait { kind: wait.kind.word(), location: wait.location.as_ref().map(location) }),
        frames: frames.map(|f| TaskFrames { lwp: f.lwp, exit: hex(f.exit), enter: f.enter.map(hex) }),
    }
}

fn dependence(dependence: &model::Dependence) -> Dependence {
    Dependence {
        addr: hex(dependence.addr),
        kind: known(&dependence.kind, |k| k.word()),
        name: dependence.name.clone(),
    }
}

pub fn more(more: &model::MoreTasks) -> MoreTasks {
    MoreTasks { like: more.like.0, count: more.count }
}

pub fn taskgroup(group: &model::Taskgroup) -> Taskgroup {
    Taskgroup {
        descriptor: hex(group.descriptor),
        parent: known(&group.parent, |p| p.map(|g| g.0)),
        unfinished: copied(&group.unfinished),
        cancelled: copied(&group.cancelled),
    }
}
