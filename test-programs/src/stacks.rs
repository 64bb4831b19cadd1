//! What a program says of its logical stacks: `programs/truth_stack.h`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Address;
use crate::{Kind, Truth};

/// One frame, as the source has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFrame {
    /// The [`StackTask::id`] of the task it belongs to.
    pub task: u32,
    /// The function; for the body of a construct the one that contains the construct. In C++ with its namespaces,
    /// classes and template arguments, without its arguments.
    pub function: String,
    /// The base name of the source file.
    pub file: String,
    /// The line of the call, of the wait or of the pragma the frame is at; of a frame that has gone on, where it was
    /// when it made the task further in. None in the end of a construct, when its body is over.
    pub line: Option<u32>,
    /// The construct whose body the frame executes: it is the outermost frame of its task then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub construct: Option<String>,
    /// The line of the construct's pragma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub construct_line: Option<u32>,
    /// It is inlined at every level of optimisation.
    #[serde(default)]
    pub inlined: bool,
    /// The call or the wait is the last thing it does: optimised code may have no frame of it then.
    #[serde(default)]
    pub tail: bool,
}

impl StackFrame {
    /// Whether a function that somebody names so is this frame's.
    ///
    /// The name may have an argument list, and what follows that, and what precedes it: of `void
    /// solver::Grid<double>::relax(int) const` counts `solver::Grid<double>::relax`, all of it. Compilers and
    /// demanglers do not agree on names of lambdas: `solver::run::{lambda}` is `operator()`, alone or with anything
    /// that begins with the enclosing function or with the class's own name (`<lambda(int)>::operator()`);
    /// `solver::apply<{lambda}>` may have anything in its brackets. A Fortran procedure `bar::relax` is also plainly
    /// `relax`.
    pub fn has_name(&self, name: &str) -> bool {
        let plain = without_arguments(name);
        let told = self.function.as_str();
        if name == told {
            return true;
        }
        if let Some(template) = told.strip_suffix("<{lambda}>") {
            return plain.strip_prefix(template).is_some_and(|rest| rest.starts_with('<') && rest.ends_with('>'));
        }
        if let Some(enclosing) = told.strip_suffix("::{lambda}") {
            return plain.strip_suffix("operator()").is_some_and(|class| {
                let inside =
                    class.strip_prefix(enclosing).is_some_and(|rest| rest.starts_with("::") || rest.starts_with('('));
                class.is_empty() || inside || class.starts_with("<lambda") || class.starts_with("{lambda")
            });
        }
        let unqualified = told.rsplit("::").next().filter(|_| self.is_fortran());
        plain == told || unqualified == Some(name)
    }

    pub(crate) fn is_fortran(&self) -> bool {
        self.file.ends_with(".f90")
    }
}

/// `void a::b<int(*)(int)>::c(int) const` without its return type, its argument list and what follows that. The
/// arguments of templates, and of functions that contain a lambda, stay.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_suffix(" const").unwrap_or(name);
    let inner = match name.strip_suffix(')') {
        Some(inner) if !name.ends_with("operator()") => inner,
        _ => return without_return_type(name),
    };
    let mut depth = 1usize;
    for (at, c) in inner.char_indices().rev() {
        match c {
            ')' | '>' => depth += 1,
            '(' | '<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return without_return_type(inner.get(..at).unwrap_or(name));
        }
    }
    name
}

/// Only templates have one: what is before the last space that stands in no brackets.
fn without_return_type(name: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' | '>' | '}' => depth += 1,
            '(' | '<' | '{' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => return name.get(at + 1..).unwrap_or(name),
            _ => {}
        }
    }
    name
}

fn unknown_address() -> Address {
    Address(0)
}

/// A task that frames belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackTask {
    /// A number of the program's own.
    pub id: u32,
    /// What the stack pointer was before the function was called that the compiler made of its body; 0 if it is not known.
    #[serde(default = "unknown_address")]
    pub cfa: Address,
    /// Its kind. The initial task stands for any thread that no construct made.
    pub kind: Kind,
    /// The LWP that executes it, or executed it.
    pub lwp: i32,
    /// Nothing of its body is left to execute.
    pub finished: bool,
    /// Its own frames where it waits or came to a construct last, innermost first; none when nothing was noted or it is
    /// finished.
    pub at: Vec<StackFrame>,
}

/// The logical stack of a thread, as it came about: the frames outward of a construct are those that were there when
/// the construct was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The thread.
    pub lwp: i32,
    /// Innermost first, to the outermost frame of an initial task.
    pub frames: Vec<StackFrame>,
}

/// What has to be known of the line of an expected frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is at this line.
    Certain,
    /// It may have gone on.
    Anywhere,
}

/// A frame that a report has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected<'t> {
    pub(crate) frame: &'t StackFrame,
    pub(crate) line: Line,
    /// The thread it executes on; none when its task is finished.
    pub(crate) lwp: Option<i32>,
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
    /// A region keeps the task that came to it where it is: all its frames are there, at these lines. The task that
    /// generated an explicit task is where it was, or where it came since, only if it is suspended beneath, on the
    /// stack of the same thread, and the generated one is not over: then its frames are those it has now. Otherwise
    /// nothing of it is certain but its outermost frame, the one whose function cannot have returned before the task
    /// ended; and what is outward of that.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str) -> StackFrame {
        let (function, file) = (function.to_owned(), file.to_owned());
        let line = Some(1);
        StackFrame { task: 0, function, file, line, construct: None, construct_line: None, inlined: false, tail: false }
    }

    #[test]
    fn names_are_compared_without_arguments() {
        let lambda = "solver::run::{lambda}";
        for (told, found) in [
            ("relax", "relax"),
            ("solver::relax", "solver::relax(int)"),
            ("solver::(anonymous namespace)::hold", "solver::(anonymous namespace)::hold"),
            ("solver::(anonymous namespace)::hold", "solver::(anonymous namespace)::hold(char const*)"),
            ("solver::Grid<double>::relax", "solver::Grid<double>::relax(int) const"),
            ("solver::sweep<int (*)(int)>", "void solver::sweep<int (*)(int)>(int (*)(int))"),
            ("solver::apply<{lambda}>", "solver::apply<solver::run(int)::<lambda(int)> >(int, struct {...})"),
            ("solver::apply<{lambda}>", "void solver::apply<solver::run(int)::{lambda(int)#1}>(int)"),
            (lambda, "operator()"),
            (lambda, "operator()(int) const"),
            (lambda, "<lambda(int)>::operator()(int) const"),
            (lambda, "solver::run(int)::$_0::operator()(int) const"),
            (lambda, "solver::run(int)::{lambda(int)#1}::operator()(int) const"),
            (lambda, "auto solver::run(int)::{lambda(auto:1 const&)#1}::operator()(d) const"),
        ] {
            assert!(frame(told, "a.cc").has_name(found), "{told}: {found}");
        }
        for (told, found) in [
            ("solver::Grid<double>::relax", "Grid<double>::relax(int)"),
            ("solver::Grid<double>::relax", "solver::Grid<float>::relax(int)"),
            ("relax", "solver::relax"),
            ("solver::relax", "relax"),
            ("solver::relax", "solver::relax._omp_fn.0"),
            ("solver::apply<{lambda}>", "solver::apply"),
            ("solver::apply<{lambda}>", "solver::apply2<int>"),
            (lambda, "solver::run"),
            (lambda, "solver::runs(int)::{lambda(int)#1}::operator()(int) const"),
            (lambda, "solver::walk(int)::{lambda(int)#1}::operator()(int) const"),
            ("f", "f("),
            ("f", ")"),
            ("f", "a>)f(c)"),
            ("f", ""),
        ] {
            assert!(!frame(told, "a.cc").has_name(found), "{told}: {found}");
        }
        let fortran = frame("bar::relax", "a.f90");
        assert!(fortran.has_name("bar::relax") && fortran.has_name("relax") && !fortran.has_name("foo::relax"));
    }
}
