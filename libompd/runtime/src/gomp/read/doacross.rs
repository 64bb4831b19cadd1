//! How far doacross loops are.
//!
//! As one number made of the counters of the nest, libgomp keeps the iteration posted last, plus one. There is one such
//! number for each member (`static`), each chunk (`dynamic`) or each iteration of the outermost loop (`guided`). See
//! `gomp_doacross_init`, `GOMP_doacross_post` and `GOMP_doacross_wait` in ordered.c. A doacross loop always goes from 0
//! on in steps of 1.

use ompd_process::{Addr, TargetExt};

use super::Context;
use super::loops::Extent;
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::limits;
use crate::model::*;

/// Elements of the array begin at multiples of this, and so does the array.
const CACHE_LINE: u64 = 64;
/// Bits of the number that stands for an iteration.
const BITS: u32 = 64;

/// Which iterations of the outermost loop are a member's, in a `static` loop.
enum Dealt {
    /// Chunks of a size, in turn.
    Chunks(u64),
    /// One share: `q + 1` iterations for the first `t` members, which are `boundary` in all, `q` for the others.
    Shares { q: u64, t: u64, boundary: u64 },
}

impl Dealt {
    /// The member's first iteration from `at` on; `None` if it has none before `end`.
    fn next(&self, at: u64, member: u64, members: u64, end: u64) -> Option<u64> {
        let found = match *self {
            Dealt::Chunks(size) => {
                let chunk = at.checked_div(size)?;
                let turns = (member + members - chunk % members) % members;
                if turns == 0 { at } else { chunk.checked_add(turns)?.checked_mul(size)? }
            }
            Dealt::Shares { q, t, boundary } => {
                let (first, count) = if member < t {
                    (member.checked_mul(q.checked_add(1)?)?, q + 1)
                } else {
                    (boundary.checked_add((member - t).checked_mul(q)?)?, q)
                };
                let found = at.max(first);
                (found < first.checked_add(count)?).then_some(found)?
            }
        };
        (found < end).then_some(found)
    }
}

/// How the counters of a nest are packed into one number.
struct Packed(Vec<u32>);

impl Packed {
    /// The counters of an iteration.
    fn counters(&self, number: u64) -> Vec<u64> {
        let mut above = BITS;
        let counter = |shift: &u32| {
            let bits = std::mem::replace(&mut above, *shift) - shift;
            let mask = 1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
            (number >> shift) & mask
        };
        self.0.iter().map(counter).collect()
    }
}

impl Context<'_> {
    /// How far the loop with this record is, if it is a doacross loop.
    pub(super) fn doacross(
        &self,
        share: &StructData,
        schedule: LoopSchedule,
        extent: &Extent,
        team: &RawTeam,
    ) -> Result<Option<Doacross>, Reason> {
        let (s, d) = (&self.gomp.structs.work_share, &self.gomp.structs.doacross);
        let record = share.ptr(&s.doacross)?;
        // Every other loop has its queue for `ordered` in this place, most in the record itself.
        if record.is_null() || record == share.addr_of(&s.inline_ordered_team_ids)? {
            return Ok(None);
        }
        if extent.step != 1 {
            return Ok(None);
        }
        let members = u64::from(team.size.get().ok_or(Reason::NoLayout("gomp_team.nthreads"))?.max(1));
        // A queue that is not in the share itself has more than four entries, all of them numbers of members.
        let order = self.target.arch().byte_order;
        let begins = self.target.read_vec(record, 16)?;
        let is_queue = || match begins.chunks_exact(4).all(|number| order.uint(number) < members) {
            true => Ok(None),
            false => Err(Reason::from(Own::NeitherLoopNorQueue { record })),
        };
        if extent.end < 0 {
            return is_queue();
        }
        let view = StructData::read(self.target, record, d.size)?;
        let (array, dimensions) = (view.ptr(&d.array)?, view.u32(&d.ncounts)?);
        let (element, flat) = (view.uint(&d.elt_sz)?, view.uint(&d.flattened)?);
        // What tells it from such a queue elsewhere, which holds small numbers: it points to what follows it.
        let gap = array.0.wrapping_sub(view.addr_of(&d.shift_counts)?.0);
        let words = if flat == 1 { 1 } else { u64::from(dimensions) };
        if !(1..=limits::DOACROSS_LOOPS).contains(&dimensions)
            || flat > 1
            || array.0 % CACHE_LINE != 0
            || gap > 4 * u64::from(dimensions) + CACHE_LINE
            || element != (8 * words).next_multiple_of(CACHE_LINE)
        {
            return is_queue();
        }
        if flat == 0 {
            return Ok(Some(Doacross::unknown(dimensions, Own::CountersTooWide)));
        }
        let packed = self.packed(view.addr_of(&d.shift_counts)?, dimensions)?;
        let told = |cell: u64| cell.checked_sub(1).map(|number| packed.counters(number));
        let posted = Fact::unknown(Own::OnlyLastPosted);
        let inner = Own::InnerLoops;
        let end = extent.end as u64;
        if schedule == LoopSchedule::Static {
            let cells = self.cells(array, element, 0, members)?;
            let dealt = self.dealt(share, &view)?;
            let next = |(cell, member): (&u64, u64)| dealt.next(*cell, member, members, end);
            let missing = cells.iter().zip(0..).filter_map(next).min();
            return Ok(Some(Doacross {
                dimensions,
                posted,
                furthest: d.array.fact(Ok(cells.iter().max().copied().and_then(told))),
                missing: match dimensions {
                    1 => d.array.fact(Ok(missing.map(|number| vec![number]))),
                    _ => Fact::unknown(inner),
                },
                members: cells.iter().zip(0..).map(|(cell, member)| Posted { member, last: told(*cell) }).collect(),
            }));
        }
        let size = self.chunk_of_doacross(share, &view, schedule)?;
        let given = (extent.next.max(0) as u64).min(end);
        let chunks = given.div_ceil(size);
        let seen = chunks.min(limits::DOACROSS / element.max(1));
        let skipped = chunks - seen;
        let cells = self.cells(array, element, skipped, seen)?;
        // Later chunks are of later iterations.
        let furthest = cells.iter().rev().find(|cell| **cell > 0).copied();
        let next = |(cell, chunk): (&u64, u64)| {
            let (from, to) = (chunk * size, (chunk + 1).saturating_mul(size).min(end));
            Some((*cell).max(from)).filter(|next| *next < to)
        };
        // What nobody has got yet nobody has posted.
        let missing = cells.iter().zip(skipped..).find_map(next).or((given < end).then_some(given));
        let many = Own::TooManyChunks { skipped };
        Ok(Some(Doacross {
            dimensions,
            posted,
            furthest: match furthest {
                None if skipped > 0 => Fact::unknown(many.clone()),
                furthest => d.array.fact(Ok(furthest.and_then(told))),
            },
            missing: match dimensions {
                1 if skipped > 0 => Fact::unknown(many),
                1 => d.array.fact(Ok(missing.map(|number| vec![number]))),
                _ => Fact::unknown(inner),
            },
            members: Vec::new(),
        }))
    }

    fn packed(&self, at: Addr, dimensions: u32) -> Result<Packed, Reason> {
        let mut shifts = Vec::with_capacity(dimensions as usize);
        for k in 0..u64::from(dimensions) {
            shifts.push(self.target.read_u32(at.offset(4 * k))?);
        }
        let falls = shifts.windows(2).all(|pair| pair[0] >= pair[1]);
        if !falls || shifts.first().is_none_or(|first| *first >= BITS) || shifts.last() != Some(&0) {
            return Err(Reason::from(Own::ImplausibleShifts { shifts }));
        }
        Ok(Packed(shifts))
    }

    /// Iterations of the outermost loop that one element of the array is about, where they are handed out.
    fn chunk_of_doacross(&self, share: &StructData, view: &StructData, schedule: LoopSchedule) -> Result<u64, Reason> {
        let (s, d) = (&self.gomp.structs.work_share, &self.gomp.structs.doacross);
        if schedule == LoopSchedule::Guided {
            return Ok(1);
        }
        match (view.uint(&d.chunk_size)?, share.uint(&s.chunk_size)?) {
            (size @ 1.., asked) if size == asked => Ok(size),
            (size, asked) => Err(Reason::from(Own::ChunkSizesDiffer { size, asked })),
        }
    }

    fn dealt(&self, share: &StructData, view: &StructData) -> Result<Dealt, Reason> {
        let (s, d) = (&self.gomp.structs.work_share, &self.gomp.structs.doacross);
        Ok(match share.uint(&s.chunk_size)? {
            0 => Dealt::Shares { q: view.uint(&d.chunk_size)?, t: view.uint(&d.t)?, boundary: view.uint(&d.boundary)? },
            size => Dealt::Chunks(size),
        })
    }

    /// The numbers in `count` elements of the array from `first` on.
    fn cells(&self, array: Addr, element: u64, first: u64, count: u64) -> Result<Vec<u64>, Reason> {
        let bytes = element.checked_mul(count).filter(|bytes| *bytes <= limits::DOACROSS);
        let bytes = bytes.ok_or_else(|| Reason::from(Own::DoacrossMembers { count }))?;
        let read = self.target.read_vec(array.offset(element.wrapping_mul(first)), bytes)?;
        let order = self.target.arch().byte_order;
        let element = usize::try_from(element).unwrap_or(usize::MAX);
        Ok(read.chunks_exact(element).map(|cell| order.uint(&cell[..8])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The iterations that a member of a team of three executes of a loop of 20.
    fn of_member(dealt: &Dealt, member: u64) -> Vec<u64> {
        let next = |at: &u64| dealt.next(at + 1, member, 3, 20);
        std::iter::successors(dealt.next(0, member, 3, 20), next).collect()
    }

    #[test]
    fn chunks_are_dealt_to_the_members_in_turn() {
        let chunks = Dealt::Chunks(4);
        assert_eq!(of_member(&chunks, 0), [0, 1, 2, 3, 12, 13, 14, 15]);
        assert_eq!(of_member(&chunks, 1), [4, 5, 6, 7, 16, 17, 18, 19]);
        assert_eq!(of_member(&chunks, 2), [8, 9, 10, 11]);
        assert_eq!(Dealt::Chunks(0).next(0, 0, 3, 20), None);
        assert_eq!(Dealt::Chunks(u64::MAX / 2).next(1, 2, 3, u64::MAX), Some(u64::MAX / 2 * 2));
        assert_eq!(Dealt::Chunks(u64::MAX).next(0, 2, 3, u64::MAX), None, "there are no such numbers");
    }

    #[test]
    fn shares_follow_each_other_the_longer_ones_first() {
        let shares = Dealt::Shares { q: 6, t: 2, boundary: 14 };
        assert_eq!(of_member(&shares, 0), (0..7).collect::<Vec<_>>());
        assert_eq!(of_member(&shares, 1), (7..14).collect::<Vec<_>>());
        assert_eq!(of_member(&shares, 2), (14..20).collect::<Vec<_>>());
        // More members than iterations: the last has none.
        let few = Dealt::Shares { q: 0, t: 2, boundary: 2 };
        assert_eq!([0, 1, 2].map(|member| of_member(&few, member)), [vec![0], vec![1], vec![]]);
        // A loop that ends before the share does.
        assert_eq!(shares.next(3, 0, 3, 3), None);
        assert_eq!(shares.next(2, 0, 3, 3), Some(2));
        for absurd in [
            Dealt::Shares { q: u64::MAX, t: 3, boundary: 0 },
            Dealt::Shares { q: u64::MAX, t: 0, boundary: u64::MAX },
            Dealt::Shares { q: 1, t: 0, boundary: u64::MAX },
        ] {
            assert_eq!(absurd.next(0, 2, 3, u64::MAX), None);
        }
    }

    #[test]
    fn counters_of_a_nest_are_the_parts_of_one_number() {
        let packed = Packed(vec![40, 8, 0]);
        assert_eq!(packed.counters((5 << 40) | (3 << 8) | 0xfe), [5, 3, 0xfe]);
        assert_eq!(packed.counters(u64::MAX), [(1 << 24) - 1, u64::from(u32::MAX), 0xff]);
        assert_eq!(Packed(vec![0]).counters(u64::MAX), [u64::MAX], "one loop has all of it");
        assert_eq!(Packed(vec![7, 7, 0]).counters(0x1ff), [3, 0, 0x7f], "a loop of one iteration");
    }
}
