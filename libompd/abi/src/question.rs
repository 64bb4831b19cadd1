//! What questions are about.

use ompd_process::{Addr, NativeThread};
use ompd_runtime::excerpt::{About, Focus, Known, Tasks, Wanted};

use crate::keys::{RegionKey, TaskKey, ThreadKey};
use crate::reading::Hints;

/// What a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// The thread with this native id.
    Native(NativeThread),
    Thread(ThreadKey),
    Region(RegionKey),
    /// Who is the member of a region with this number.
    Member(RegionKey, usize),
    /// The implicit task of a member of a region.
    ImplicitTask(RegionKey, usize),
    Task(TaskKey),
}

/// What has to be known of the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aspect {
    /// That the thread is there.
    Existence,
    /// That, and its kernel thread id.
    Native,
    /// What it is and which region it is in.
    Itself,
    /// That, and its control variables.
    Icvs,
    /// What it is, and what is kept of it for OMPT tools.
    Tool,
    /// What it is, and its function.
    Function,
    /// What it is, and the region around it.
    Around,
    /// What it is, and the task it executes.
    Task,
    /// That, and the control variables of the task.
    TaskIcvs,
    /// What it is, the task it executes, and what it waits for.
    State,
    /// What has generated the task.
    Generating,
}

/// Where a look at a single thing starts.
pub(crate) struct Start {
    about: About,
    /// A thread that leads to it, if one is known.
    thread: Option<Addr>,
    /// The region asked about, if it is one of a parallel construct.
    team: Option<Addr>,
    /// The task asked about.
    task: Option<Addr>,
    /// The kernel thread id of the thread is wanted.
    lwp: bool,
    /// Which members of its region are wanted.
    members: Wanted,
}

impl Subject {
    /// Where to look, by what is known from an earlier look. Nothing where only a look at the whole process can tell.
    pub(crate) fn start(self, hints: &Hints) -> Option<Start> {
        let (thread, team, task) = match self {
            Subject::Native(native) => (Some(hints.of_native(native)?), None, None),
            Subject::Thread(key)
            | Subject::Region(RegionKey::Outermost(key))
            | Subject::Member(RegionKey::Outermost(key), _) => (Some(key.descriptor), None, None),
            Subject::Member(RegionKey::Team { descriptor, .. }, number) if hints.has_no_lists() => {
                (Some(hints.member(descriptor, number)?), Some(descriptor), None)
            }
            Subject::Member(RegionKey::Team { descriptor, .. }, _)
            | Subject::Region(RegionKey::Team { descriptor, .. }) => {
                (Some(hints.member(descriptor, 0)?), Some(descriptor), None)
            }
            Subject::ImplicitTask(RegionKey::Team { descriptor, .. }, number) => {
                (hints.member(descriptor, number), Some(descriptor), None)
            }
            Subject::ImplicitTask(RegionKey::Outermost(_), _) => return None,
            Subject::Task(key) => (hints.holder(key.descriptor), None, Some(key.descriptor)),
        };
        let about = match (self, team, task) {
            (Subject::ImplicitTask(_, number), Some(team), _) => About::ImplicitTask(team, number as u64),
            (_, Some(team), _) => About::Team(team),
            (_, _, Some(task)) => About::Task(task),
            _ => About::Thread,
        };
        // Another thread may have the descriptor by now.
        let lwp = match self {
            Subject::Thread(key)
            | Subject::Region(RegionKey::Outermost(key))
            | Subject::Member(RegionKey::Outermost(key), _) => hints.is_not_another(key).then_some(true)?,
            Subject::Native(_) => true,
            // Where the runtime lists members, the one looked at leads to the list.
            Subject::Member(..) => hints.has_no_lists(),
            Subject::Region(_) | Subject::ImplicitTask(..) | Subject::Task(_) => false,
        };
        let members = match self {
            Subject::Member(_, number) => Wanted::One(number as u64),
            // The thread looked at is the member asked about, or the first.
            Subject::ImplicitTask(..) | Subject::Region(_) => Wanted::One(0),
            Subject::Native(_) | Subject::Thread(_) | Subject::Task(_) => Wanted::None,
        };
        Some(Start { about, thread, team, task, lwp, members })
    }
}

impl Start {
    /// What the runtime is to read. `alive` tells whether a thread is still the same one.
    pub(crate) fn focus<'a>(
        &self,
        aspect: Aspect,
        hints: &Hints,
        alive: &'a dyn Fn(Known) -> bool,
        first: &'a dyn Fn(Addr) -> Option<Addr>,
    ) -> Option<Focus<'a>> {
        let innermost = self.thread.and_then(|thread| hints.innermost(thread));
        let beyond_own_team = self.team.is_some() && innermost != self.team;
        Some(Focus {
            threads: self.thread.map_or(Some(Vec::new()), |thread| hints.with_primaries(thread))?,
            lwp: self.lwp,
            team: !matches!(aspect, Aspect::Existence | Aspect::Native),
            tasks: match (aspect, self.task) {
                (Aspect::Generating, Some(task)) => Tasks::Beyond(task),
                (_, Some(task)) => Tasks::UpTo(task),
                (Aspect::Task | Aspect::TaskIcvs, None) => self.team.map_or(Tasks::Current, Tasks::ImplicitIn),
                (Aspect::State, None) => Tasks::Current,
                _ => Tasks::None,
            },
            enclosing: aspect == Aspect::Around,
            beyond: beyond_own_team,
            members: self.members,
            wait: aspect == Aspect::State,
            icvs: matches!(aspect, Aspect::Icvs | Aspect::TaskIcvs),
            tool: aspect == Aspect::Tool,
            function: aspect == Aspect::Function,
            subject: self.about,
            alive,
            first,
        })
    }
}
