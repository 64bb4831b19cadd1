//! What follows from the truth of a program, and where it contradicts itself.

use std::collections::BTreeMap;

use crate::basics::{Address, Kind, LockKind, Wait};
use crate::expect::Verdict;
use crate::runtime::Runtime;
use crate::stacks::{Expected, Line, Stack, StackFrame, StackTask};
use crate::truth::Truth;

impl Truth {
    /// Whether a runtime records the owner of every lock that is held here, with no environment variable set that changes that.
    /// All runtimes do for nestable locks, none for the others. What libgomp recorded, the address of a part of the owner, means
    /// nothing once the owner has ended.
    pub fn owners_recorded(&self, runtime: Runtime) -> bool {
        let kept = runtime.is_kmp() || self.gone.is_empty();
        kept && self.locks.iter().all(|lock| lock.kind == LockKind::NestLock)
    }

    /// The address of a lock or another object that has a name.
    pub fn object(&self, name: &str) -> Option<Address> {
        let lock = self.locks.iter().find(|lock| lock.name == name).map(|lock| lock.address);
        lock.or_else(|| self.objects.iter().find(|object| object.name == name).map(|object| object.address))
    }

    /// Everything the program expects of things it does not tell of.
    pub(crate) fn expectation_contradictions(&self) -> Vec<String> {
        let Some(expected) = &self.expectation else { return Vec::new() };
        let mut found = Vec::new();
        if (expected.verdict == Verdict::None) != expected.situation.is_none() {
            found.push(format!("a verdict without a situation, or the reverse: {expected:?}"));
        }
        for role in expected.threads.iter().chain(&expected.missing) {
            if self.with_role(role).next().is_none() {
                found.push(format!("{role:?} is to be named, and no thread is called so"));
            }
        }
        for name in &expected.objects {
            if self.object(name).is_none() {
                found.push(format!("{name:?} is to be named, and there is no such object"));
            }
        }
        for name in &expected.tasks {
            let running = |kind: Kind| kind == Kind::Explicit;
            let runs = self.with_role(name).any(|thread| thread.task.as_ref().is_some_and(|task| running(task.kind)));
            if !runs && !self.tasks.iter().any(|task| task.function == *name) {
                found.push(format!("{name:?} is to be named, and there is no such task"));
            }
        }
        if expected.verdict == Verdict::Deadlock {
            for thread in &self.threads {
                if matches!(thread.wait, Wait::Pipe | Wait::Sleep | Wait::Yield) {
                    found.push(format!("{thread:?}: its wait is not the runtime's, so no deadlock is proven"));
                }
            }
        }
        found
    }
}

impl Truth {
    /// The task with this number.
    pub(crate) fn stack_task(&self, id: u32) -> Option<&StackTask> {
        self.stack_tasks.iter().find(|task| task.id == id)
    }

    /// The logical stack of the thread with this LWP.
    pub fn stack(&self, lwp: i32) -> Option<&Stack> {
        self.stacks.iter().find(|stack| stack.lwp == lwp)
    }

    /// The frames of a stack that are certain, innermost first.
    ///
    /// A region keeps the task that came to it where it is: all its frames are there, at these lines. The task that generated an
    /// explicit task is where it was, or where it came since, in one case only. It is suspended beneath, on the stack of the same
    /// thread, and the generated task is not over. Then its frames are those it has now. Otherwise only its outermost frame is
    /// certain, and what is outward of that. The function of that frame cannot have returned before the task ended.
    pub(crate) fn expected<'t>(&'t self, stack: &'t Stack) -> Vec<Expected<'t>> {
        let mut expected = Vec::new();
        let mut rest = stack.frames.as_slice();
        let mut beneath: Option<&StackTask> = None;
        while let Some(first) = rest.first() {
            let Some(task) = self.stack_task(first.task) else { return expected };
            let own = rest.iter().take_while(|frame| frame.task == task.id).count();
            let (mine, outward) = rest.split_at(own);
            rest = outward;
            let lwp = (!task.finished).then_some(task.lwp);
            let certain = |frame| Expected { frame, line: Line::Certain, lwp };
            match beneath {
                Some(inner) if inner.lwp == task.lwp && !inner.finished && !task.finished && !task.at.is_empty() => {
                    expected.extend(task.at.iter().map(certain));
                }
                Some(_) => {
                    expected.extend(mine.last().map(|frame| Expected { frame, line: Line::Anywhere, lwp }));
                }
                None => expected.extend(mine.iter().map(certain)),
            }
            beneath = (task.kind == Kind::Explicit).then_some(task);
        }
        expected
    }

    /// The frames a logical stack begins with, innermost first, which are on the stack of the thread itself.
    pub fn beginning<'t>(&'t self, stack: &'t Stack) -> Vec<&'t StackFrame> {
        let expected = self.expected(stack).into_iter();
        let own = expected.take_while(|frame| frame.lwp == Some(stack.lwp) && frame.line == Line::Certain);
        own.map(|expected| expected.frame).collect()
    }

    /// Everything in which the stacks contradict themselves or the rest of the truth.
    pub(crate) fn stack_contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut require = |holds: bool, what: &dyn Fn() -> String| {
            if !holds {
                found.push(what());
            }
        };
        let mut tasks = BTreeMap::new();
        for task in &self.stack_tasks {
            require(tasks.insert(task.id, task).is_none(), &|| format!("two tasks are number {}", task.id));
            require(task.at.iter().all(|frame| frame.task == task.id), &|| format!("task {} at another's", task.id));
        }
        for (index, stack) in self.stacks.iter().enumerate() {
            let of = format!("stack of LWP {}", stack.lwp);
            let earlier = self.stacks.get(..index).unwrap_or_default();
            require(earlier.iter().all(|other| other.lwp != stack.lwp), &|| format!("{of}: there are two"));
            require(self.thread(stack.lwp).is_some(), &|| format!("{of}: the thread is missing"));
            let innermost = stack.frames.first().and_then(|frame| tasks.get(&frame.task));
            require(innermost.is_some_and(|task| task.lwp == stack.lwp), &|| format!("{of}: begins on another thread"));
            require(innermost.is_some_and(|task| !task.finished), &|| format!("{of}: begins in a finished task"));
            let outermost = stack.frames.last().and_then(|frame| tasks.get(&frame.task));
            require(outermost.is_some_and(|task| task.kind == Kind::Initial), &|| format!("{of}: has no beginning"));
            for (frame, next) in stack.frames.iter().zip(stack.frames.iter().skip(1).map(Some).chain([None])) {
                let last = next.is_none_or(|next| next.task != frame.task);
                let initial = tasks.get(&frame.task).is_none_or(|task| task.kind == Kind::Initial);
                require(frame.construct.is_some() == (last && !initial), &|| format!("{of}: {frame:?}: construct"));
                let pragma = next.filter(|next| next.task != frame.task).and_then(|next| next.line);
                require(frame.construct_line == pragma, &|| format!("{of}: {frame:?}: not the line of {next:?}"));
                let explicit = frame.construct.as_ref().map(|construct| construct.starts_with("task"));
                let kind = tasks.get(&frame.task).map(|task| task.kind == Kind::Explicit);
                require(explicit.is_none() || explicit == kind, &|| format!("{of}: {frame:?}: kind of its task"));
            }
        }
        let api = |lwp: i32| self.thread(lwp).and_then(|thread| thread.api.as_ref());
        for stack in &self.stacks {
            // Each parallel region is a level, whatever its number of threads; a league is none.
            let constructs = stack.frames.iter().filter_map(|frame| frame.construct.as_deref());
            let levels = constructs.filter(|construct| construct.starts_with("parallel")).count();
            let told = api(stack.lwp).map(|api| usize::try_from(api.level).unwrap_or(usize::MAX));
            require(told.is_none_or(|level| level == levels), &|| {
                format!("stack of LWP {}: {levels} regions at level {told:?}", stack.lwp)
            });
        }
        found
    }
}
