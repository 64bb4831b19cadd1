//! Worksharing regions.

use ompd_runtime::model;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Known, copied, known};

/// A worksharing loop, or `sections`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Loop {
    /// Index of the team.
    pub team: usize,
    /// `loop`, `sections`, or `loop or sections`.
    pub kind: Known<&'static str>,
    /// How iterations are handed out.
    pub schedule: Known<&'static str>,
    /// Iterations in a chunk.
    pub chunk: Known<u64>,
    /// All iterations.
    pub iterations: Known<u64>,
    /// Iterations handed out.
    pub handed_out: Known<u64>,
    /// Loop variable with which the next chunk begins, as the runtime keeps it.
    pub next: Known<i64>,
    /// Its end, exclusive.
    pub end: Known<i64>,
    /// Its step.
    pub step: Known<i64>,
    /// Members that are through with it.
    pub completed: Known<u32>,
    /// Numbers of the members in it.
    pub members: Vec<u32>,
    /// Shares members have of their own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shares: Vec<Share>,
    /// Number of the member whose turn it is in `ordered`; `null` as value: nobody's.
    pub ordered_turn: Known<Option<u32>>,
    /// How far a doacross loop is; `null` as value: it is none.
    pub doacross: Known<Option<Doacross>>,
}

/// Progress of a doacross loop, which is a loop with `ordered(n)`. Its iterations wait for others to be posted. An iteration is
/// a list of counters, one for each nested loop, outermost first, each from 0.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Doacross {
    /// Nested loops.
    pub dimensions: u32,
    /// Iterations that have been posted.
    pub posted: Known<u64>,
    /// The last in sequential order of those; `null` as value: there is none.
    pub furthest: Known<Option<Vec<u64>>>,
    /// The first in sequential order that has not been posted; `null` as value: there is none.
    pub missing: Known<Option<Vec<u64>>>,
    /// What members have posted last, where the runtime keeps it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub members: Vec<Posted>,
}

/// What one member has posted last.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Posted {
    /// Thread number.
    pub member: u32,
    /// The iteration; absent: it has posted nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Vec<u64>>,
}

impl From<&model::Doacross> for Doacross {
    fn from(of: &model::Doacross) -> Doacross {
        Doacross {
            dimensions: of.dimensions,
            posted: copied(&of.posted),
            furthest: known(&of.furthest, Clone::clone),
            missing: known(&of.missing, Clone::clone),
            members: of.members.iter().map(|m| Posted { member: m.member, last: m.last.clone() }).collect(),
        }
    }
}

/// What one member has left of its own.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Share {
    /// Thread number.
    pub member: u32,
    /// First iteration and the one after the last, counted from 0; absent: none is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<(u64, u64)>,
}

pub fn of(of: &model::Loop) -> Loop {
    Loop {
        team: of.team.0,
        kind: known(&of.kind, |k| k.word()),
        schedule: known(&of.schedule, |s| s.word()),
        chunk: copied(&of.chunk),
        iterations: copied(&of.iterations),
        handed_out: copied(&of.handed_out),
        next: copied(&of.next),
        end: copied(&of.end),
        step: copied(&of.step),
        completed: copied(&of.completed),
        members: of.members.clone(),
        shares: of.shares.iter().map(|c| Share { member: c.member, left: c.left }).collect(),
        ordered_turn: copied(&of.ordered_turn),
        doacross: known(&of.doacross, |doacross| doacross.as_ref().map(Doacross::from)),
    }
}
