//! Answers that say whether they are final.

use crate::types::Rc;

/// An answer from what was read, or why there is none.
pub(crate) type Answer<T> = Result<T, NoAnswer>;

/// Why there is no answer, and whether more reading may give one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// A look at the whole process gives none either.
    Final(Rc),
    /// A look at the whole process may give one.
    NeedsMore(Rc),
}

impl From<Rc> for NoAnswer {
    fn from(rc: Rc) -> NoAnswer {
        NoAnswer::NeedsMore(rc)
    }
}

impl From<NoAnswer> for Rc {
    fn from(why: NoAnswer) -> Rc {
        match why {
            NoAnswer::Final(rc) | NoAnswer::NeedsMore(rc) => rc,
        }
    }
}
