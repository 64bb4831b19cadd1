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

    use super::same_reading;
    use crate::logical::{Language, LogicalFrame, Via};

    #[test]
    fn frames_without_a_name_are_told_apart_by_their_address() {
        let frame = |addr: u64, module: Option<&str>| LogicalFrame {
            function: None,
            construct: None,
            file: None,
            line: None,
            inlined: false,
            lwp: None,
            addr: Some(Addr(addr)),
            module: module.map(|name| (name.into(), addr)),
            via: Via::Call,
            language: Language::Compiled,
            place: None,
        };
        assert!(same_reading(&frame(1, Some("a")), &frame(1, Some("a"))));
        assert!(!same_reading(&frame(1, Some("a")), &frame(2, Some("a"))));
        assert!(!same_reading(&frame(1, None), &frame(2, None)));
        // A named one is the same wherever it is.
        let named = |addr| LogicalFrame { function: Some("f".into()), line: Some(1), ..frame(addr, Some("a")) };
        assert!(same_reading(&named(1), &named(2)));
    }
}
