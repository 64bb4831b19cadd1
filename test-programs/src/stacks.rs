//! What a program says of its logical stacks: `programs/truth_stack.h`.

use serde::{Deserialize, Serialize};

use crate::basics::{Address, Kind};

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
    /// The line of the call, of the wait or of the pragma that the frame is at. For a frame that has continued, it is where it
    /// generated the task further in. None in the end of a construct, when its body is over.
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

/// The logical stack of a thread, as it came about. The frames outward of a construct are those at the time when the construct
/// was reached.
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
    /// It may have continued.
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
