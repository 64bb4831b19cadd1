//! Which fields of which structs a look reads.

use std::cell::{Cell, RefCell};

use ompd_process::Addr;

/// A field of a struct of a runtime, or a variable, that was read or looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// Where its struct begins; of a variable where it lies.
    pub of: Addr,
    /// Bytes from there to the field.
    pub offset: u64,
    /// Bytes of the field; 0 if they are not known.
    pub size: u64,
    /// The field as the runtime calls it, with the name of its struct, as `gomp_team.nthreads`.
    pub name: &'static str,
}

thread_local! {
    static WANTED: Cell<bool> = const { Cell::new(false) };
    static NOTED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
}

/// So many reads are noted. Fields beyond have no name in what is shown.
const MOST: usize = 1 << 20;

/// Calls `what`, and returns its result and the fields that it read. Each is listed once, in the order of addresses.
pub fn noting<T>(what: impl FnOnce() -> T) -> (T, Vec<Noted>) {
    NOTED.with_borrow_mut(Vec::clear);
    WANTED.set(true);
    let result = what();
    WANTED.set(false);
    let mut noted = NOTED.take();
    noted.sort_unstable_by_key(|noted| (noted.of.0.wrapping_add(noted.offset), noted.of, noted.name));
    noted.dedup();
    (result, noted)
}

/// Notes that a field is read.
pub(crate) fn note(of: Addr, offset: u64, size: u64, name: &'static str) {
    if WANTED.get() {
        NOTED.with_borrow_mut(|noted| {
            if noted.len() < MOST {
                noted.push(Noted { of, offset, size, name });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_noted_once_in_the_order_of_addresses() {
        note(Addr(1), 0, 4, "before");
        let (result, noted) = noting(|| {
            note(Addr(0x20), 8, 4, "b");
            note(Addr(0x10), 8, 4, "a");
            note(Addr(0x20), 8, 4, "b");
            note(Addr(0x20), 0, 8, "c");
            7
        });
        note(Addr(1), 0, 4, "after");
        let names: Vec<_> = noted.iter().map(|noted| noted.name).collect();
        assert_eq!((result, &names[..]), (7, &["a", "c", "b"][..]));
        assert_eq!(noting(|| ()).1, [], "nothing is left of the last time");
    }
}
