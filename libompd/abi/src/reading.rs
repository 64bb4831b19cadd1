//! What a look at a process has shown of one runtime, whole or of a single thread, and where things were then.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, NativeThread};
use ompd_runtime::excerpt::{Excerpt, Known};
use ompd_runtime::model::{RawSnapshot, Role, RuntimeSnapshot, Task, TaskId, Team, TeamId, Thread};

use crate::answer::Answer;
use crate::keys::{RegionKey, RuntimeKey, ThreadKey};
use crate::types::Rc;

/// What was read of one runtime. Of a single thread it has that alone: what is missing here need not be missing there.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) runtime: RuntimeKey,
    pub(crate) threads: &'a [Thread],
    pub(crate) teams: &'a [Team],
    pub(crate) tasks: &'a [Task],
    pub(crate) members: Members<'a>,
}

/// How members of teams are known.
#[derive(Clone, Copy)]
pub(crate) enum Members<'a> {
    /// As the runtime lists them, by team.
    Listed(&'a [BTreeMap<usize, Addr>]),
    /// By their kernel thread ids.
    Of(&'a RuntimeSnapshot),
}

impl<'a> Reading<'a> {
    pub(crate) fn team(&self, id: TeamId) -> Option<&'a Team> {
        self.teams.get(id.0)
    }

    pub(crate) fn task(&self, id: TaskId) -> Option<&'a Task> {
        self.tasks.get(id.0)
    }

    pub(crate) fn thread_by_lwp(&self, lwp: i32) -> Option<&'a Thread> {
        self.threads.iter().find(|thread| thread.lwp == Some(lwp))
    }

    /// The descriptor of a member of a team.
    pub(crate) fn member(&self, team: TeamId, number: usize) -> Option<Addr> {
        match self.members {
            Members::Listed(lists) => match lists.get(team.0)?.get(&number) {
                Some(member) => Some(*member),
                // The one that was looked at may be the one.
                None => {
                    let is = |thread: &&Thread| {
                        thread.team.flat() == Some(team)
                            && thread
                                .thread_num
                                .get()
                                .is_some_and(|own| usize::try_from(own).is_ok_and(|own| own == number))
                    };
                    self.threads.iter().find(is).map(|thread| thread.descriptor)
                }
            },
            Members::Of(snapshot) => {
                let lwp = self.team(team)?.members.get(number).copied().flatten()?;
                snapshot.thread_by_lwp(lwp).map(|thread| thread.descriptor)
            }
        }
    }

    pub(crate) fn region(&self, id: TeamId) -> Answer<RegionKey> {
        let team = self.team(id).ok_or(Rc::ERROR)?;
        let level = team.level.get().ok_or(Rc::UNAVAILABLE)?;
        Ok(RegionKey::Team { runtime: self.runtime, descriptor: team.descriptor, level, size: team.size.get() })
    }

    /// The thread that executes a task.
    pub(crate) fn executing(&self, task: &Task) -> Option<&'a Thread> {
        match self.members {
            Members::Of(snapshot) => snapshot.thread_by_lwp(task.thread?),
            Members::Listed(_) => self.threads.iter().find(|thread| {
                let executed = thread.task.get().and_then(|id| self.task(id));
                executed.is_some_and(|executed| executed.descriptor == task.descriptor)
            }),
        }
    }
}

/// Most that is remembered of one kind before it is forgotten altogether.
const MOST: usize = 1 << 16;

/// Where things were at an earlier look, by which they are found again. Nothing of it is shown, or believed before it has been read
/// anew.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Threads by their descriptors, and descriptors by kernel thread id.
    threads: HashMap<Addr, Known>,
    by_lwp: HashMap<i32, Addr>,
    /// Members of teams by number, and the team around.
    teams: HashMap<Addr, (Vec<Option<Addr>>, Option<Addr>)>,
    /// The innermost teams of threads.
    innermost: HashMap<Addr, Addr>,
    /// The runtime does not list the members of its teams.
    unlisted: bool,
    /// Threads that execute a task, or one it has generated.
    holders: HashMap<Addr, Addr>,
}

impl Hints {
    /// After a look at the whole process.
    pub(crate) fn of(snapshot: &RawSnapshot, natives: &[NativeThread]) -> Hints {
        let mut hints = Hints::default();
        let pthreads: HashMap<i32, Addr> = natives.iter().map(|native| (native.lwp, native.pthread)).collect();
        for thread in &snapshot.threads {
            let Some((lwp, pthread)) = thread.lwp.and_then(|lwp| Some((lwp, *pthreads.get(&lwp)?))) else { continue };
            let descriptor = thread.descriptor;
            // The role of a thread that the runtime has made stays the same.
            let is_worker = matches!(thread.role.get(), Some(Role::Worker | Role::IdleWorker));
            hints.threads.insert(descriptor, Known { descriptor, lwp, pthread, is_worker });
            hints.by_lwp.insert(lwp, descriptor);
            if let Some(team) = thread.team.flat().and_then(|id| snapshot.team(id)) {
                hints.innermost.insert(descriptor, team.descriptor);
            }
            if let Some(task) = thread.task.get().and_then(|id| snapshot.task(id)) {
                hints.holders.insert(task.descriptor, descriptor);
            }
        }
        for team in &snapshot.teams {
            let member = |lwp: &Option<i32>| hints.by_lwp.get(lwp.as_ref()?).copied();
            let around = team.parent.flat().and_then(|id| snapshot.team(id)).map(|team| team.descriptor);
            let around = around.filter(|around| *around != team.descriptor);
            let members = team.members.iter().map(member).collect();
            let known = hints.teams.entry(team.descriptor).or_insert((members, around));
            known.1 = known.1.or(around);
        }
        for thread in &snapshot.threads {
            let mut at = thread.task.get().and_then(|id| snapshot.task(id)?.generating.flat());
            while let Some(task) = at.and_then(|id| snapshot.task(id))
                && !hints.holders.contains_key(&task.descriptor)
            {
                hints.holders.insert(task.descriptor, thread.descriptor);
                at = task.generating.flat();
            }
        }
        hints
    }

    /// Where threads are, and nothing else.
    pub(crate) fn of_threads(threads: &[Known]) -> Hints {
        Hints {
            threads: threads.iter().map(|thread| (thread.descriptor, *thread)).collect(),
            by_lwp: threads.iter().map(|thread| (thread.lwp, thread.descriptor)).collect(),
            ..Hints::default()
        }
    }

    /// All threads, the first of the process first.
    pub(crate) fn all_threads(&self) -> Vec<Known> {
        let mut all: Vec<Known> = self.threads.values().copied().collect();
        all.sort_unstable_by_key(|thread| thread.lwp);
        all
    }

    /// After a look at a single thread.
    pub(crate) fn learn(&mut self, excerpt: &Excerpt) {
        if self.teams.len() > MOST || self.holders.len() > MOST || self.innermost.len() > MOST {
            self.teams.clear();
            self.holders.clear();
            self.innermost.clear();
        }
        let thread = excerpt.thread.as_ref();
        let team = thread.and_then(|thread| excerpt.teams.get(thread.team.flat()?.0));
        if let Some((thread, team)) = thread.zip(team) {
            self.innermost.insert(thread.descriptor, team.descriptor);
        }
        for (team, members) in excerpt.teams.iter().zip(&excerpt.members) {
            let around = team.parent.flat().and_then(|id| excerpt.teams.get(id.0)).map(|team| team.descriptor);
            let around = around.filter(|around| *around != team.descriptor);
            let known = self.teams.entry(team.descriptor).or_default();
            self.unlisted |= !excerpt.lists_members;
            for (number, member) in members {
                if known.0.len() <= *number {
                    known.0.resize(*number + 1, None);
                }
                known.0[*number] = Some(*member);
            }
            known.1 = around.or(known.1);
        }
        for task in &excerpt.tasks {
            let team = task.team.flat().and_then(|id| excerpt.teams.get(id.0));
            let member = team.and_then(|team| self.member(team.descriptor, task.member? as usize));
            if let Some(member) = member {
                self.holders.entry(task.descriptor).or_insert(member);
            }
        }
        let Some(thread) = thread else { return };
        for task in &excerpt.tasks {
            self.holders.entry(task.descriptor).or_insert(thread.descriptor);
        }
        if let Some(task) = thread.task.get().and_then(|id| excerpt.tasks.get(id.0)) {
            self.holders.insert(task.descriptor, thread.descriptor);
        }
    }

    pub(crate) fn of_native(&self, native: NativeThread) -> Option<Addr> {
        let descriptor = *self.by_lwp.get(&native.lwp)?;
        self.threads.get(&descriptor).filter(|known| known.pthread == native.pthread).map(|known| known.descriptor)
    }

    pub(crate) fn known(&self, thread: Addr) -> Option<Known> {
        self.threads.get(&thread).copied()
    }

    /// False if the descriptor was known for another thread's.
    pub(crate) fn is_not_another(&self, key: ThreadKey) -> bool {
        let known = self.threads.get(&key.descriptor);
        key.lwp.zip(known).is_none_or(|(lwp, known)| lwp == known.lwp)
    }

    pub(crate) fn member(&self, team: Addr, number: usize) -> Option<Addr> {
        self.teams.get(&team)?.0.get(number).copied().flatten()
    }

    /// True if members of teams have to be looked at to be known.
    pub(crate) fn has_no_lists(&self) -> bool {
        self.unlisted
    }

    pub(crate) fn holder(&self, task: Addr) -> Option<Addr> {
        self.holders.get(&task).copied()
    }

    pub(crate) fn innermost(&self, thread: Addr) -> Option<Addr> {
        self.innermost.get(&thread).copied()
    }

    /// A thread, and those of number 0 of its team and of the teams around that.
    pub(crate) fn with_primaries(&self, thread: Addr) -> Option<Vec<Known>> {
        let mut found = vec![*self.threads.get(&thread)?];
        let mut at = self.innermost(thread);
        for _ in 0..self.teams.len() {
            let Some((members, around)) = at.and_then(|team| self.teams.get(&team)) else { break };
            let primary = members.first().copied().flatten().and_then(|first| self.threads.get(&first));
            if let Some(primary) = primary.filter(|primary| !found.contains(primary)) {
                found.push(*primary);
            }
            at = *around;
        }
        Some(found)
    }
}
