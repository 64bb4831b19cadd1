//! How far doacross loops are.
//!
//! Each member in such a loop has an array that describes the nest. It begins with the number of loops and the address
//! of the count of members that are through. Then it has for each loop how many iterations it has, its bounds and its
//! step; the outermost loop lacks the first of these. All members share a set of bits, one for each iteration of the
//! nest. A bit is set when its iteration is posted (`__kmpc_doacross_init`, `_post` and `_fini` in kmp_csupport.cpp).
//!
//! For each loop, clang reports to the runtime one iteration more than there is. GCC reports as many as there are. The
//! runtime does not record which of the two it was.

use std::collections::BTreeMap;

use ompd_process::{Addr, TargetExt};

use super::Context;
use crate::bind::StructData;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::owner::CodeOwner;

/// A doacross loop and who is in it.
pub(super) struct Nest {
    pub(super) flags: Addr,
    /// Members in it by number.
    pub(super) members: Vec<u32>,
    info: Addr,
}

/// What a member's array says.
struct Described {
    dimensions: u32,
    /// Iterations of each loop that the runtime has bits for.
    ranges: Vec<u64>,
    num_done: Addr,
}

impl Described {
    /// The counters of the iteration a bit is for.
    fn counters(&self, mut bit: u64) -> Vec<u64> {
        let mut counters: Vec<u64> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.iter().skip(1).rev() {
            counters.push(bit % range);
            bit /= range;
        }
        counters.push(bit);
        counters.reverse();
        counters
    }

    /// There is such an iteration, whoever has compiled the loop.
    fn surely(&self, counters: &[u64]) -> bool {
        counters.iter().zip(&self.ranges).all(|(counter, range)| counter + 1 < *range)
    }
}

/// The doacross loops of a team, from what its members are in.
#[derive(Default)]
pub(super) struct Nests(BTreeMap<Addr, Nest>);

impl Nests {
    /// Notes where a member is, if it is in such a loop and has begun it.
    pub(super) fn note(&mut self, member: u32, info: Addr, flags: Addr) {
        if !info.is_null() && !flags.is_null() {
            self.0.entry(flags).or_insert(Nest { flags, members: Vec::new(), info }).members.push(member);
        }
    }

    pub(super) fn all(self) -> impl Iterator<Item = Nest> {
        self.0.into_values()
    }
}

impl Context<'_> {
    /// True if members of this team forget a doacross loop when they leave it. Code compiled by GCC never leaves loops
    /// of type `unsigned long long`: `GOMP_loop_ull_*_next` does not call `__kmpc_doacross_fini`. But with GCC the
    /// runtime hands out the iterations of all doacross loops, and the record of that is forgotten.
    pub(super) fn ends_doacross_loops(&self, team: &StructData) -> Result<bool, Reason> {
        let microtask = team.ptr(&self.kmp.structs.team.pkfn)?;
        Ok(matches!(self.kmp.own_code.owner(self.target, microtask), CodeOwner::Other))
    }

    /// What is known of a doacross loop beside its worksharing: how far it is, and how many members are through.
    pub(super) fn doacross(&self, nest: &Nest) -> Result<(Doacross, u32), Reason> {
        let described = self.described(nest.info)?;
        let through = self.target.read_u32(described.num_done)?;
        let dimensions = described.dimensions;
        let words = match self.bits(nest.flags, &described) {
            Ok(words) => words,
            Err(why) => return Ok((Doacross::unknown(dimensions, why), through)),
        };
        let total = described.ranges.iter().product::<u64>();
        let count: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let last = words.iter().enumerate().rfind(|(_, word)| **word != 0);
        let furthest = last.map(|(at, word)| at as u64 * 32 + u64::from(31 - word.leading_zeros()));
        let first = words.iter().enumerate().find(|(_, word)| **word != u32::MAX);
        let missing = first.map(|(at, word)| at as u64 * 32 + u64::from(word.trailing_ones()));
        let missing = missing.filter(|bit| *bit < total).map(|bit| described.counters(bit));
        let slot = &self.kmp.structs.disp.doacross_flags;
        let doacross = Doacross {
            dimensions,
            posted: slot.fact(Ok(count)),
            furthest: slot.fact(Ok(furthest.map(|bit| described.counters(bit)))),
            missing: match missing {
                Some(counters) if !described.surely(&counters) => Fact::unknown(Own::MoreIterationsTold),
                missing => slot.fact(Ok(missing)),
            },
            members: Vec::new(),
        };
        Ok((doacross, through))
    }

    fn described(&self, info: Addr) -> Result<Described, Reason> {
        let word = |index: u64| self.target.read_u64(info.offset(8 * index));
        let told = word(0)?;
        let dimensions = u32::try_from(told).ok().filter(|n| (1..=limits::DOACROSS_LOOPS).contains(n));
        let dimensions = dimensions.ok_or(Own::ImplausibleNest { count: told })?;
        let num_done = Addr(word(1)?);
        let (lower, upper, step) = (word(2)? as i64, word(3)? as i64, word(4)? as i64);
        let outermost = match step {
            0 => None,
            1.. => upper.checked_sub(lower).map(|all| all / step),
            _ => lower.checked_sub(upper).map(|all| (all as u64 / step.unsigned_abs()) as i64),
        };
        let outermost = outermost.and_then(|count| u64::try_from(count).ok()?.checked_add(1));
        let mut ranges = vec![outermost.unwrap_or(0)];
        for k in 1..u64::from(dimensions) {
            ranges.push(word(4 * k + 1)?);
        }
        let total = ranges.iter().try_fold(1u64, |all, range| all.checked_mul(*range));
        match total {
            Some(1..) => Ok(Described { dimensions, ranges, num_done }),
            _ => Err(Reason::from(Own::ImplausibleRanges { ranges })),
        }
    }

    /// The bits of all iterations, in the words the runtime keeps them in.
    fn bits(&self, flags: Addr, of: &Described) -> Result<Vec<u32>, Reason> {
        let total = of.ranges.iter().product::<u64>();
        let bytes = total.div_ceil(32).saturating_mul(4);
        if bytes > limits::DOACROSS {
            return Err(Reason::from(Own::TooManyIterations { count: total }));
        }
        let order = self.target.arch().byte_order;
        Ok(self.target.read_vec(flags, bytes)?.chunks_exact(4).map(|word| order.uint(word) as u32).collect())
    }

    /// A doacross loop of which the runtime has no record as a worksharing loop: the members' shares are the compiler's
    /// work.
    pub(super) fn plain_doacross(&self, team: TeamId, nest: &Nest, doacross: Doacross, through: u32) -> Loop {
        let slot = &self.kmp.structs.disp.doacross_info;
        Loop {
            kind: slot.fact(Ok(LoopKind::Loop)),
            completed: slot.fact(Ok(through)),
            members: nest.members.clone(),
            ordered_turn: slot.fact(Ok(None)),
            doacross: slot.fact(Ok(Some(doacross))),
            ..Loop::unknown(team, Own::NoStaticRecord)
        }
    }
}
