//! Waits and locks.

use ompd_runtime::entry::Construct;
use ompd_runtime::model;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Known, Location, Site, copied, hex, known, location, site};

/// What a thread waits for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Wait {
    /// Kind of wait.
    pub kind: &'static str,
    /// Address of the object waited for.
    pub object: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Source position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Index of the team whose barrier it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<usize>,
    /// At a barrier inside a region: `explicit`, or whose implicit barrier it is (`loop`, `sections`, `single`, `workshare`,
    /// `loop or unspecified`), or only that it is `implicit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier: Option<Known<&'static str>>,
    /// Index of the lock, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<usize>,
    /// Index of the task group, at the end of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taskgroup: Option<usize>,
    /// False: what it waits for had not happened at the stop.
    pub over: Known<bool>,
    /// True: it sleeps; false: it spins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep: Option<bool>,
    /// Construct or function by which the program called the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<&'static str>,
    /// How it was recognised.
    pub origin: &'static str,
}

/// A lock, critical or atomic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Lock {
    /// Address of the lock variable where it is known, else of the runtime's own object.
    pub object: String,
    /// Address of the variable, where `object` is the runtime's own and the call of a thread that waits tells the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// `lock`, `nest lock`, `critical` or `atomic`.
    pub kind: Known<&'static str>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Source position the runtime recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Whether it is held.
    pub held: Known<bool>,
    /// Who holds it; `null` as value: nobody.
    pub owner: Known<Option<Owner>>,
    /// Where its owner has acquired it, as an OMPT companion has recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquired: Option<Site>,
    /// How often a nest lock has been set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Threads (LWP) that wait for it.
    pub waiters: Vec<i32>,
    /// The runtime queues its waiters: these are all, in the order in which they get it.
    pub queued: bool,
}

/// Who holds a lock: one of these.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Owner {
    /// A thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lwp: Option<i32>,
    /// A task, by its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<usize>,
    /// A thread or task that has ended, under the number or address the runtime knew it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<u64>,
}

pub fn wait(wait: &model::Wait) -> Wait {
    Wait {
        kind: wait.kind.word(),
        object: hex(wait.object),
        name: wait.name.clone(),
        location: wait.location.as_ref().map(location),
        team: wait.team.map(|t| t.0),
        barrier: wait.barrier.as_ref().map(|barrier| known(barrier, |kind| kind.word())),
        lock: wait.lock.map(|lock| lock.0),
        taskgroup: wait.taskgroup.map(|group| group.0),
        over: copied(&wait.over),
        asleep: wait.asleep,
        call: wait.call.map(Construct::word),
        origin: wait.origin.word(),
    }
}

fn owner(owner: model::Owner) -> Owner {
    match owner {
        model::Owner::Thread(lwp) => Owner { lwp: Some(lwp), ..Owner::default() },
        model::Owner::Task(task) => Owner { task: Some(task.0), ..Owner::default() },
        model::Owner::Gone(number) => Owner { gone: Some(number), ..Owner::default() },
    }
}

pub fn lock(lock: &model::Lock) -> Lock {
    Lock {
        object: hex(lock.object),
        variable: lock.variable.map(hex),
        kind: known(&lock.kind, |k| k.word()),
        name: lock.name.clone(),
        location: lock.location.as_ref().map(location),
        held: copied(&lock.held),
        owner: known(&lock.owner, |o| o.map(owner)),
        acquired: lock.acquired.as_ref().map(site),
        depth: lock.depth,
        waiters: lock.waiters.clone(),
        queued: lock.queued,
    }
}
