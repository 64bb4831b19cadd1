//! Many stacks as few: those that read the same as one row.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use crate::logical::{LogicalFrame, LogicalStack};

/// Threads whose stacks read the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Index of one of them.
    pub stack: usize,
    /// Indices of all of them, in order.
    pub threads: Vec<usize>,
}

/// True if two frames read the same: where in memory they are matters only where nothing better is known.
pub fn same_reading(one: &LogicalFrame, other: &LogicalFrame) -> bool {
    Reading(one) == Reading(other)
}

/// What two frames have in common that read the same: where in memory they are does not matter.
struct Reading<'s>(&'s LogicalFrame);

impl Reading<'_> {
    fn parts(&self) -> impl Eq + Hash + '_ {
        let frame = self.0;
        // Without a name or line an address is all there is.
        let module = if frame.function.is_none() || frame.line.is_none() { frame.module.as_ref() } else { None };
        let addr = if frame.function.is_none() && frame.module.is_none() { frame.addr } else { None };
        (
            &frame.function,
            &frame.construct,
            &frame.file,
            frame.line,
            frame.inlined,
            frame.via,
            frame.language,
            module,
            addr,
        )
    }
}

impl PartialEq for Reading<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Reading<'_> {}

impl Hash for Reading<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// Puts together the threads whose stacks read the same and that do the same: `doing` says what, in words. In the order of
/// the first of each.
pub fn fold(stacks: &[LogicalStack], doing: impl Fn(usize) -> String) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut known: HashMap<(Vec<Reading<'_>>, String, Option<&str>), usize> = HashMap::new();
    for (index, stack) in stacks.iter().enumerate() {
        let key = (stack.frames.iter().map(Reading).collect(), doing(index), stack.gap.as_deref());
        match known.get(&key) {
            Some(row) => rows[*row].threads.push(index),
            None => {
                known.insert(key, rows.len());
                rows.push(Row { stack: index, threads: vec![index] });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use ompd_process::Addr;

    use super::{Row, fold, same_reading};
    use crate::frame::End;
    use crate::logical::{Language, LogicalFrame, LogicalStack, Via};

    fn frame(addr: u64, module: Option<(&str, u64)>) -> LogicalFrame {
        LogicalFrame {
            function: None,
            construct: None,
            file: None,
            line: None,
            inlined: false,
            lwp: None,
            addr: Some(Addr(addr)),
            module: module.map(|(name, offset)| (name.into(), offset)),
            via: Via::Call,
            language: Language::Compiled,
            place: None,
        }
    }

    fn named(function: &str, line: Option<u32>) -> LogicalFrame {
        LogicalFrame { function: Some(function.into()), line, ..frame(1, Some(("a", 1))) }
    }

    #[test]
    fn frames_without_a_name_are_told_apart_by_their_address() {
        assert!(same_reading(&frame(1, Some(("a", 1))), &frame(1, Some(("a", 1)))));
        assert!(!same_reading(&frame(1, Some(("a", 1))), &frame(2, Some(("a", 2)))));
        assert!(!same_reading(&frame(1, None), &frame(2, None)));
        // The place in a file is better than the address at which it is mapped.
        assert!(same_reading(&frame(1, Some(("a", 1))), &frame(9, Some(("a", 1)))));
    }

    #[test]
    fn frames_with_a_name_and_a_line_read_the_same_wherever_they_are() {
        let elsewhere =
            |frame: LogicalFrame| LogicalFrame { module: Some(("b".into(), 9)), addr: Some(Addr(9)), ..frame };
        assert!(same_reading(&named("f", Some(1)), &elsewhere(named("f", Some(1)))));
        // Without a line the place in the file is all there is.
        assert!(!same_reading(&named("f", None), &elsewhere(named("f", None))));
        for other in [named("g", Some(1)), named("f", Some(2)), LogicalFrame { inlined: true, ..named("f", Some(1)) }] {
            assert!(!same_reading(&named("f", Some(1)), &other));
        }
    }

    #[test]
    fn threads_that_read_the_same_and_do_the_same_are_one_row() {
        let stack = |functions: &[&str], gap: Option<&str>| LogicalStack {
            frames: functions.iter().map(|function| named(function, Some(1))).collect(),
            gap: gap.map(str::to_owned),
            lwp: 1,
            in_call: None,
            idle: false,
            end: End::Root,
        };
        let stacks = [
            stack(&["f", "main"], None),
            stack(&["g", "main"], None),
            stack(&["f", "main"], None),
            stack(&["f"], None),
            stack(&["f", "main"], Some("torn")),
            stack(&["f", "main"], None),
            stack(&["g", "main"], None),
        ];
        let row = |threads: &[usize]| Row { stack: threads[0], threads: threads.to_vec() };
        let rows = fold(&stacks, |index| if index == 5 { "waits".to_owned() } else { String::new() });
        assert_eq!(rows, [row(&[0, 2]), row(&[1, 6]), row(&[3]), row(&[4]), row(&[5])]);
        assert_eq!(fold(&[], |_| String::new()), []);
    }
}
