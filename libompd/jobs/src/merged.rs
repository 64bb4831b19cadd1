//! What the ranks of a job do together.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::plain::{self, plain};
use crate::ranks::RankSet;

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect-merged/1";

/// Processes that are named of those that do the same: the first ones.
const EXAMPLES: usize = 3;
/// Entries of each list that are kept: the first ones in the order of the list.
pub(crate) const MOST: usize = 100_000;
/// Ranks that are kept as partners of others: the first ones.
const MOST_PARTNERS: usize = 256;
/// The name of their list.
pub(crate) const PARTNERS: &str = "partners";

/// Reports put together. To put two together is to unite sets, so that neither order nor repetition makes a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// Name and version of this format: `ompd-inspect-merged/1`.
    pub schema: String,
    /// How many ranks each job has by its launcher, as far as that tells it.
    pub sizes: BTreeMap<String, u64>,
    /// All processes that a report was read of.
    pub inspected: Members,
    /// The hosts they run on.
    pub hosts: Names,
    /// The answers of the reports.
    #[serde(with = "entries")]
    #[schemars(with = "Vec<Entry<Answers, Members>>")]
    pub answers: BTreeMap<Answers, Members>,
    /// Where the main threads are.
    #[serde(with = "entries")]
    #[schemars(with = "Vec<Entry<Place, Members>>")]
    pub places: BTreeMap<Place, Members>,
    /// The stacks of all threads.
    #[serde(with = "entries")]
    #[schemars(with = "Vec<Entry<Frames, Members>>")]
    pub stacks: BTreeMap<Frames, Members>,
    /// Calls of MPI that threads are in.
    #[serde(with = "entries", default)]
    #[schemars(with = "Vec<Entry<MpiCall, Members>>")]
    pub calls: BTreeMap<MpiCall, Members>,
    /// Ranks that calls of MPI send to or receive from: the first ones, with all ranks that are in such a call.
    #[serde(with = "entries", default)]
    #[schemars(with = "Vec<Entry<Partner, Members>>")]
    pub partners: BTreeMap<Partner, Members>,
    /// Processes that are in calls of MPI, and of which another thread may do something meanwhile, as far as is known.
    #[serde(skip_serializing_if = "Members::is_empty", default)]
    pub not_alone: Members,
    /// Whether processes have moved between two looks.
    #[serde(with = "entries", default)]
    #[schemars(with = "Vec<Entry<Motion, Members>>")]
    pub motions: BTreeMap<Motion, Members>,
    /// How far processes are, by what is counted.
    #[serde(with = "entries", default)]
    #[schemars(with = "Vec<Entry<Counter, Extent>>")]
    pub counters: BTreeMap<Counter, Extent>,
    /// When the first and the last process was stopped, in milliseconds since 1970 by the clocks of their hosts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stopped_at: Option<(u64, u64)>,
    /// Processes that were not inspected.
    #[serde(with = "entries")]
    #[schemars(with = "Vec<Entry<Failure, Targets>>")]
    pub failures: BTreeMap<Failure, Targets>,
    /// Lists of this document that have more entries than are kept (`answers`, `places`, `stacks`, `calls`, `partners`, `counters`,
    /// `failures`). Of each the first are kept.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub more: BTreeSet<String>,
}

/// The answer of a report, without what differs from process to process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// `DEADLOCK`, `SUSPECT`, `WAITING`, `RUNNING`, …
    pub word: String,
    /// Why nothing moves, or what moves.
    pub text: String,
    /// The threads that are the cause, with what each does and where.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fix: Option<String>,
}

/// What a thread does, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// `MPI_Barrier, app.c:13, in exchange`.
    pub text: String,
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Frames {
    /// Outermost first, as `solve  app.c:40`.
    pub frames: Vec<String>,
}

/// A call of MPI that has not returned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MpiCall {
    /// The function, as C has it.
    pub function: String,
    /// Where it is called: `app.c:13, in exchange`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// `MPI_COMM_WORLD`, `MPI_COMM_SELF`, or `another`; absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub communicator: Option<String>,
}

/// A rank of `MPI_COMM_WORLD` that a call of MPI sends to or receives from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Partner {
    /// The job.
    pub job: String,
    /// The rank.
    pub rank: u64,
    /// The function, as C has it.
    pub function: String,
    /// Another thread of the process may do something meanwhile, as far as is known.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub not_alone: bool,
}

/// What has changed between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Motion {
    /// Whether a thread or team of the process was seen to move; absent: that is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub moved: Option<bool>,
}

/// What is counted in processes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// What it is.
    pub what: Counted,
    /// The region: `sweep.c:40, in sweep`.
    pub region: String,
}

/// A count of a runtime that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Iterations of a worksharing loop that threads have got.
    HandedOut,
    /// The loop variable with which the next chunk of a worksharing loop begins.
    Next,
    /// Barriers that a team has passed.
    Barriers,
}

/// How far processes are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// The processes.
    pub members: Members,
    /// Those that are least far.
    pub least: BTreeSet<Reached>,
    /// Those that are farthest.
    pub most: BTreeSet<Reached>,
}

/// How far a process is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// The count.
    pub count: i64,
    /// Of how many, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<i64>,
    /// The process.
    pub process: Process,
}

/// Why a process was not inspected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The reason, without ids.
    pub reason: String,
}

/// Processes, cores and files that were not inspected or read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Targets {
    /// Files, cores and hosts, as they were named.
    pub targets: Names,
    /// Processes.
    #[serde(skip_serializing_if = "Members::is_empty", default)]
    pub processes: Members,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its job; empty if its launcher gives none. Of a core that is no rank: the name of the core.
    pub job: String,
    /// Its rank.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rank: Option<u64>,
    /// Its host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Its process id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<i32>,
}

/// Processes that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Members {
    /// Ranks by job.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub ranks: BTreeMap<String, RankSet>,
    /// Processes that are no ranks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub others: BTreeSet<Process>,
    /// The first of the ranks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub examples: BTreeSet<Process>,
    /// Least and most threads of one process; of what is no thread neither.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threads: Option<(u64, u64)>,
}

impl Default for Merged {
    fn default() -> Merged {
        Merged {
            schema: SCHEMA.to_owned(),
            sizes: BTreeMap::new(),
            inspected: Members::default(),
            hosts: Names::default(),
            answers: BTreeMap::new(),
            places: BTreeMap::new(),
            stacks: BTreeMap::new(),
            calls: BTreeMap::new(),
            partners: BTreeMap::new(),
            not_alone: Members::default(),
            motions: BTreeMap::new(),
            counters: BTreeMap::new(),
            stopped_at: None,
            failures: BTreeMap::new(),
            more: BTreeSet::new(),
        }
    }
}

impl Merged {
    /// Adds what another has.
    pub fn merge(&mut self, other: Merged) {
        for (job, size) in other.sizes {
            let known = self.sizes.entry(job).or_default();
            *known = size.max(*known);
        }
        self.inspected.unite(other.inspected);
        self.hosts.unite(other.hosts);
        self.more.extend(other.more);
        let mut full = |list: &str| {
            self.more.insert(list.to_owned());
        };
        unite(&mut self.answers, other.answers, Members::unite, MOST, || full("answers"));
        unite(&mut self.places, other.places, Members::unite, MOST, || full("places"));
        unite(&mut self.stacks, other.stacks, Members::unite, MOST, || full("stacks"));
        unite(&mut self.calls, other.calls, Members::unite, MOST, || full("calls"));
        self.not_alone.unite(other.not_alone);
        unite(&mut self.partners, other.partners, Members::unite, MOST_PARTNERS, || full(PARTNERS));
        unite(&mut self.motions, other.motions, Members::unite, MOST, || ());
        unite(&mut self.counters, other.counters, Extent::unite, MOST, || full("counters"));
        self.stopped_at = widest(self.stopped_at, other.stopped_at);
        unite(&mut self.failures, other.failures, Targets::unite, MOST, || full("failures"));
    }

    /// Adds that a host, core or file was not inspected or read.
    pub fn add_failure(&mut self, target: &str, reason: &str) {
        let targets = Names::target(&plain::short(target));
        self.add_failed(plain::without_name(target, reason), Targets { targets, ..Targets::default() });
    }

    /// Adds that a process was not inspected.
    pub fn add_failed_process(&mut self, process: &Process, reason: &str) {
        self.add_failed(plain(reason), Targets { processes: Members::one(process), ..Targets::default() });
    }

    fn add_failed(&mut self, reason: String, of: Targets) {
        let failures = BTreeMap::from([(Failure { reason }, of)]);
        self.merge(Merged { failures, ..Merged::default() });
    }

    /// Ranks of a job that no report was read of, if the launcher tells how many there are.
    pub fn absent(&self, job: &str) -> RankSet {
        match self.sizes.get(job).and_then(|size| size.checked_sub(1)) {
            Some(last) => self.inspected.ranks.get(job).map_or(RankSet::range(0, last), |known| known.absent(last)),
            None => RankSet::default(),
        }
    }
}

/// Adds entries, and calls `full` if there are more than are kept. A key that is kept keeps all its entries, in whatever order
/// lists are united. A key among the first of all is among the first of each.
fn unite<K: Ord, V: Default>(
    all: &mut BTreeMap<K, V>,
    more: BTreeMap<K, V>,
    add: impl Fn(&mut V, V),
    most: usize,
    mut full: impl FnMut(),
) {
    for (key, value) in more {
        add(all.entry(key).or_default(), value);
    }
    while all.len() > most {
        all.pop_last();
        full();
    }
}

impl Targets {
    fn unite(&mut self, other: Targets) {
        self.targets.unite(other.targets);
        self.processes.unite(other.processes);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.targets.len().saturating_add(self.processes.len())
    }
}

impl Members {
    /// One process.
    pub fn one(process: &Process) -> Members {
        let mut members = Members::default();
        match process.rank {
            Some(rank) => {
                members.ranks.insert(process.job.clone(), RankSet::one(rank));
                members.examples.insert(process.clone());
            }
            None => drop(members.others.insert(process.clone())),
        }
        members
    }

    /// How many processes there are.
    pub fn len(&self) -> u64 {
        let ranks = self.ranks.values().map(RankSet::len).fold(0, u64::saturating_add);
        ranks.saturating_add(self.others.len() as u64)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty() && self.others.is_empty()
    }

    /// The first of them: the one with the lowest rank.
    pub fn first(&self) -> Option<&Process> {
        self.examples.first().or(self.others.first())
    }

    /// True if the process is among them.
    pub fn contains(&self, process: &Process) -> bool {
        match process.rank {
            Some(rank) => self.ranks.get(&process.job).is_some_and(|ranks| ranks.contains(rank)),
            None => self.others.contains(process),
        }
    }

    /// Adds those of another set.
    pub(crate) fn unite(&mut self, other: Members) {
        for (job, ranks) in other.ranks {
            self.ranks.entry(job).or_default().unite(ranks);
        }
        self.others.extend(other.others);
        self.examples.extend(other.examples);
        while self.examples.len() > EXAMPLES {
            self.examples.pop_last();
        }
        self.threads = widest(self.threads, other.threads);
    }
}

impl Extent {
    /// One process.
    pub(crate) fn one(reached: Reached) -> Extent {
        let members = Members::one(&reached.process);
        Extent { members, least: BTreeSet::from([reached.clone()]), most: BTreeSet::from([reached]) }
    }

    fn unite(&mut self, other: Extent) {
        self.members.unite(other.members);
        self.least.extend(other.least);
        while self.least.len() > EXAMPLES {
            self.least.pop_last();
        }
        self.most.extend(other.most);
        while self.most.len() > EXAMPLES {
            self.most.pop_first();
        }
    }
}

/// The range that has both in it.
fn widest(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (one, other) {
        (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
        (one, two) => one.or(two),
    }
}

/// A key with its members, as documents have them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Entry<K, V> {
    #[serde(flatten)]
    key: K,
    #[serde(flatten)]
    value: V,
}

/// Maps as lists of entries: keys of JSON are texts.
mod entries {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Entry;

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        all: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|(key, value)| Entry { key, value }))
    }

    pub(super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let all = Vec::<Entry<K, V>>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|entry| (entry.key, entry.value)).collect())
    }
}
