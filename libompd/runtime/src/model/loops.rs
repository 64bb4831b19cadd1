//! Worksharing regions: how far they are.

use super::{Fact, Reason, TeamId};

/// Which worksharing construct it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// A worksharing loop.
    Loop,
    /// `sections`.
    Sections,
    /// One of the two: the runtime treats them alike.
    LoopOrSections,
}

impl LoopKind {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            LoopKind::Loop => "loop",
            LoopKind::Sections => "sections",
            LoopKind::LoopOrSections => "loop or sections",
        }
    }
}

/// How iterations are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopSchedule {
    /// `static`: each member computes its own share.
    Static,
    /// `dynamic`.
    Dynamic,
    /// `guided`.
    Guided,
    /// Each member begins with a share of its own, and takes from others when it is through (`static_steal` of libomp).
    StaticSteal,
}

impl LoopSchedule {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            LoopSchedule::Static => "static",
            LoopSchedule::Dynamic => "dynamic",
            LoopSchedule::Guided => "guided",
            LoopSchedule::StaticSteal => "static, with stealing",
        }
    }
}

/// What a member has of a loop. Iterations are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Thread number.
    pub member: u32,
    /// First iteration that is its own and not begun as a chunk, and the one after the last.
    pub left: Option<(u64, u64)>,
}

/// One worksharing loop or `sections` that a team is in.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The team.
    pub team: TeamId,
    /// Which construct.
    pub kind: Fact<LoopKind>,
    /// How iterations are handed out.
    pub schedule: Fact<LoopSchedule>,
    /// Iterations in a chunk; 1 where none was asked for.
    pub chunk: Fact<u64>,
    /// All iterations.
    pub iterations: Fact<u64>,
    /// Iterations handed out to members: begun or over.
    pub handed_out: Fact<u64>,
    /// Value of the loop variable with which the next chunk begins, as the runtime keeps it. With libgomp these are the
    /// values of the source, with libomp those of the loop as the compiler normalised it. For an unsigned type it is
    /// the value modulo 2^64.
    pub next: Fact<i64>,
    /// The value at which it ends, exclusive, of the same kind.
    pub end: Fact<i64>,
    /// Its step.
    pub step: Fact<i64>,
    /// All iterations have been handed out.
    pub exhausted: Fact<bool>,
    /// Members that are through with it.
    pub completed: Fact<u32>,
    /// Members that are in it, by number.
    pub members: Vec<u32>,
    /// Shares members have of their own, where the schedule gives them any.
    pub shares: Vec<Chunk>,
    /// For a loop with `ordered`: number of the member whose turn it is.
    pub ordered_turn: Fact<Option<u32>>,
    /// For a doacross loop: which iterations have let go those that wait for them.
    pub doacross: Fact<Option<Doacross>>,
}

impl Loop {
    /// A worksharing region of `team` of which nothing else is known, and no member.
    pub fn unknown(team: TeamId, why: impl Into<Reason>) -> Loop {
        let why = &why.into();
        Loop {
            team,
            kind: Fact::unknown(why),
            schedule: Fact::unknown(why),
            chunk: Fact::unknown(why),
            iterations: Fact::unknown(why),
            handed_out: Fact::unknown(why),
            next: Fact::unknown(why),
            end: Fact::unknown(why),
            step: Fact::unknown(why),
            exhausted: Fact::unknown(why),
            completed: Fact::unknown(why),
            members: Vec::new(),
            shares: Vec::new(),
            ordered_turn: Fact::unknown(why),
            doacross: Fact::unknown(why),
        }
    }
}

impl Loop {
    /// Iterations that are not handed out yet, by the loop variable.
    pub fn left(&self) -> Option<u64> {
        if self.exhausted.get() == Some(true) {
            return Some(0);
        }
        let (next, end, step) = (self.next.get()?, self.end.get()?, self.step.get()?);
        left(next, end, step, self.chunk.get().unwrap_or(1).saturating_mul(step.unsigned_abs()))
    }
}

/// Members of which each may have gone one chunk past the end of a loop (`gomp_iter_dynamic_next`, `gomp_iter_ull_dynamic_next`).
const MOST_MEMBERS: u64 = 1 << 20;
/// No loop has gone further than that past its end: libgomp counts so only where it does not pass the end of the type.
const FURTHEST_PAST: u64 = 1 << 62;

/// Iterations from `next` to `end`, of a loop in which a chunk moves the variable by `moves`. Whether the variable is signed is
/// unknown, so only distances modulo 2^64 count. `None` if the step is 0, or if a signed loop would be past its end and an unsigned
/// one at its beginning.
pub(crate) fn left(next: i64, end: i64, step: i64, moves: u64) -> Option<u64> {
    let distance = (if step > 0 { end.wrapping_sub(next) } else { next.wrapping_sub(end) }) as u64;
    let past = distance.wrapping_neg();
    let is_past = past <= moves.max(1).saturating_mul(MOST_MEMBERS).min(FURTHEST_PAST);
    let is_open = is_past && past > 0 && (next < 0) != (end < 0);
    // The last step may lead beyond the end.
    (step != 0 && !is_open).then(|| if is_past { 0 } else { distance.div_ceil(step.unsigned_abs()) })
}

/// How far a doacross loop is: a loop nest with `ordered(n)`. Its iterations wait for earlier ones by `ordered
/// depend(sink)` until those are posted. An iteration is posted once it has passed its `ordered depend(source)`. From
/// OpenMP 5.2 on, `doacross` takes the place of `depend`.
///
/// An iteration is identified by the counters of the loops of the nest, each counted from 0, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doacross {
    /// Loops of the nest, `n`.
    pub dimensions: u32,
    /// Iterations that have been posted.
    pub posted: Fact<u64>,
    /// The last in sequential order of those; `None`: there is none.
    pub furthest: Fact<Option<Vec<u64>>>,
    /// The first in sequential order that has not been posted: who waits for it goes on waiting. `None`: there is none.
    pub missing: Fact<Option<Vec<u64>>>,
    /// What each member has posted last, where the runtime keeps that and the member's share is laid down beforehand.
    pub members: Vec<Posted>,
}

impl Doacross {
    /// A loop of which only that much is known.
    pub(crate) fn unknown(dimensions: u32, why: impl Into<Reason>) -> Doacross {
        let why = &why.into();
        Doacross {
            dimensions,
            posted: Fact::unknown(why),
            furthest: Fact::unknown(why),
            missing: Fact::unknown(why),
            members: Vec::new(),
        }
    }
}

/// What a member has posted last of a doacross loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Thread number.
    pub member: u32,
    /// The iteration; `None`: nothing yet.
    pub last: Option<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_left_are_counted_whatever_the_type_of_the_loop_variable() {
        assert_eq!(left(-91, 100, 1, 1), Some(191));
        assert_eq!((left(100, -91, -1, 1), left(7, 10, 2, 2)), (Some(191), Some(2)));
        // Each of four members has found the end, and gone a chunk past it.
        assert_eq!(
            (left(100, 100, 1, 1), left(140, 100, 1, 10), left(-140, -100, -1, 10)),
            (Some(0), Some(0), Some(0))
        );
        // `unsigned long long`, through the middle of its range, and further than a signed number reaches.
        assert_eq!(left(i64::MAX - 246, i64::MIN + 256, 1, 1), Some(503));
        assert_eq!(left(9, -(1 << 62), 1, 1), Some((3 << 62) - 9));
        assert_eq!((left(0, 0, 0, 1), left(0, 5, 0, 1)), (None, None));
        // Signed and past -1, or unsigned and on the way to the largest number.
        assert_eq!((left(0, -1, 1, 1), left(-1, 0, -1, 1)), (None, None));
    }
}
