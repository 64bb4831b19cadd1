//! Reading a block that may be damaged, or that is being written at the same time.
//!
//! The reader believes nothing in a block that could make it go elsewhere, take much memory or walk for long. Four numbers say
//! where things are, and they are checked ([`Shape::new`]). An event counts only if it is whole.

use crate::block::{
    CHANGING, Creation, CreationValues, DEVICE_RING, EVENT_WORDS, HELD, Header, HeaderValues, Held, HeldValues, MAGIC,
    RUNTIME_NAME, Ring, RingState, RingValues, Shape, State, Stop, VERSION, in_ring,
};
use crate::event::{Event, Missing};

/// Where a block is read from: the memory of a process, a core, a file.
pub trait Memory {
    /// Why something cannot be read.
    type Error;

    /// `count` words from the address `at` on, in the byte order of the process.
    ///
    /// # Errors
    /// If not all of them can be read.
    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, Self::Error>;
}

/// Why there is no block to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBlock<E> {
    /// It cannot be read.
    #[error("the block at {at:#x} cannot be read: {why}")]
    Unreadable {
        /// Where it should be.
        at: u64,
        /// Why.
        why: E,
    },
    /// There is something else.
    #[error("at {at:#x} is no block of a companion")]
    NoMagic {
        /// Where it should be.
        at: u64,
    },
    /// It is of a companion that writes it in another way.
    #[error("the block has version {version}; this program reads version {VERSION}")]
    OtherVersion {
        /// The version.
        version: u64,
    },
    /// What it says of itself cannot be.
    #[error("the block at {at:#x} is damaged: {what}")]
    Damaged {
        /// Where it is.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// A block that was found.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where it is.
    pub at: u64,
    /// What its parts are.
    pub shape: Shape,
    /// What it began with when it was opened.
    pub header: HeaderValues,
    /// How the runtime called itself to `ompt_start_tool`.
    pub runtime: String,
}

/// A ring of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAt {
    /// Which.
    pub index: u64,
    /// Whose it is.
    pub values: RingValues,
}

/// The events of a thread, as far as they are still there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// Those that are whole, oldest first.
    pub events: Vec<Event>,
    /// How many were being written when they were read.
    pub torn: u64,
    /// How many of this thread's are not there any more, since later ones took their places.
    pub overwritten: u64,
}

impl Block {
    /// Opens the block at an address.
    ///
    /// # Errors
    /// If there is none, or none that this version can read.
    pub fn open<M: Memory>(memory: &M, at: u64) -> Result<Block, NoBlock<M::Error>> {
        let words = memory
            .words(at, Header::WORDS + RUNTIME_NAME / size_of::<u64>())
            .map_err(|why| NoBlock::Unreadable { at, why })?;
        let damaged = |what| NoBlock::Damaged { at, what };
        let (header, name) = words.split_at_checked(Header::WORDS).ok_or(damaged("it has no header"))?;
        let header = HeaderValues::from_words(header).ok_or(damaged("it has no header"))?;
        if [header.magic_first, header.magic_second] != MAGIC {
            return Err(NoBlock::NoMagic { at });
        }
        if header.version != VERSION {
            return Err(NoBlock::OtherVersion { version: header.version });
        }
        if header.address != at {
            return Err(damaged("it says that it is elsewhere"));
        }
        let shape = Shape::new(header.rings, header.events, header.regions, header.tasks);
        let shape = shape.ok_or(damaged("its parts have impossible sizes"))?;
        if at.checked_add(shape.size()).is_none() {
            return Err(damaged("it is larger than memory"));
        }
        if header.rings_used > shape.rings {
            return Err(damaged("it has more threads than rings"));
        }
        if State::from_number(header.state).is_none() {
            return Err(damaged("it is in no known state"));
        }
        Ok(Block { at, shape, header, runtime: text(name) })
    }

    /// Whether the companion writes everything that happens, so that what is not remembered has not happened.
    pub fn is_recording(&self) -> bool {
        self.header.state == State::Recording as u64
    }

    /// The rings that a thread has or had, and none of devices. Those that cannot be read are left out, and counted.
    pub fn rings<M: Memory>(&self, memory: &M) -> (Vec<RingAt>, u64) {
        let mut unreadable = 0;
        let mut rings = Vec::new();
        for index in 0..self.header.rings_used {
            match self.ring(memory, index) {
                Some(values) if values.kind & DEVICE_RING != 0 => {}
                Some(values) if values.state == RingState::Used as u64 || values.state == RingState::Ended as u64 => {
                    rings.push(RingAt { index, values });
                }
                // One that is being given to a thread has no events of it yet.
                Some(_) => {}
                None => unreadable += 1,
            }
        }
        (rings, unreadable)
    }

    /// What a ring begins with. While it is read it may be given to another thread, word by word: it counts if it says the same twice.
    fn ring<M: Memory>(&self, memory: &M, index: u64) -> Option<RingValues> {
        let mut last = None;
        let whose = || {
            let words = memory.words(self.at + self.shape.ring_at(index), Ring::WORDS)?;
            last = RingValues::from_words(&words);
            Ok(last.map(|RingValues { state, id, lwp, pthread, kind, began, first, .. }| {
                [state, id, lwp, pthread, kind, began, first]
            }))
        };
        let same = same_twice::<_, M::Error>(whose).ok()?;
        // One that goes from hand to hand: whose it is cannot be said.
        let state = |values: &RingValues| if same.is_some() { values.state } else { RingState::Changing as u64 };
        last.map(|values| RingValues { state: state(&values), ..values })
    }

    /// The stop point that a ring's thread is at, if the companion has called one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn stop<M: Memory>(&self, memory: &M, ring: RingAt) -> Result<Option<Stop>, M::Error> {
        let words = memory.words(self.at + self.shape.ring_at(ring.index) + in_ring::STOP_AT, 1)?;
        Ok(words.first().copied().and_then(Stop::from_number))
    }

    /// The last events of a ring's thread, at most `most` of them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn events<M: Memory>(&self, memory: &M, ring: RingAt, most: u64) -> Result<Events, M::Error> {
        let size = self.shape.events;
        // `first` is the thread's own word for where it began, and may be damaged as anything else.
        let begun = ring.values.head.saturating_sub(ring.values.first);
        let there = begun.min(size);
        let wanted = there.min(most);
        let mut all = Events { overwritten: begun - there, ..Events::default() };
        let events_at = self.at + self.shape.ring_at(ring.index) + in_ring::EVENTS_AT;
        let from = ring.values.head - wanted;
        // In two pieces where the ring begins anew.
        let before_end = wanted.min(size - from % size);
        for (position, count) in [(from, before_end), (from + before_end, wanted - before_end)] {
            if count == 0 {
                continue;
            }
            let count = usize::try_from(count).unwrap_or(0);
            let bytes = (EVENT_WORDS * size_of::<u64>()) as u64;
            let words = memory.words(events_at + position % size * bytes, count * EVENT_WORDS)?;
            for (n, words) in words.as_chunks().0.iter().enumerate() {
                // A damaged head may be the largest number there is.
                match Event::from_words(*words, position.wrapping_add(n as u64)) {
                    Ok(event) => all.events.push(event),
                    Err(Missing::Torn) => all.torn += 1,
                    Err(Missing::Replaced) => all.overwritten += 1,
                }
            }
        }
        Ok(all)
    }

    /// The locks that a ring's thread has, as far as they are remembered since the last pause.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn held<M: Memory>(&self, memory: &M, ring: RingAt) -> Result<Vec<HeldValues>, M::Error> {
        if !self.is_recording() || ring.values.state != RingState::Used as u64 {
            return Ok(Vec::new());
        }
        let at = self.at + self.shape.ring_at(ring.index) + in_ring::HELD_AT;
        let read = || memory.words(at, HELD * Held::WORDS);
        // While they are read a lock may be let go of, and another one be noted in its place: what counts is the same twice.
        let (before, now) = (read()?, read()?);
        let same = before.chunks(Held::WORDS).zip(now.chunks(Held::WORDS)).filter(|(before, now)| before == now);
        let held = same.filter_map(|(_, now)| HeldValues::from_words(now));
        Ok(held.filter(|held| ![0, CHANGING].contains(&held.wait_id) && held.epoch == self.header.epoch).collect())
    }

    /// Where the region with this number comes from; `None` if it is over, or nothing is remembered of it.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn region<M: Memory>(&self, memory: &M, id: u64) -> Result<Option<CreationValues>, M::Error> {
        self.creation(memory, self.shape.regions_at(), self.shape.regions, id)
    }

    /// Where the task with this number comes from; `None` if it is over, or nothing is remembered of it.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn task<M: Memory>(&self, memory: &M, id: u64) -> Result<Option<CreationValues>, M::Error> {
        self.creation(memory, self.shape.tasks_at(), self.shape.tasks, id)
    }

    fn creation<M: Memory>(
        &self,
        memory: &M,
        table: u64,
        entries: u64,
        id: u64,
    ) -> Result<Option<CreationValues>, M::Error> {
        if id == 0 {
            return Ok(None);
        }
        let at = self.at + table + id % entries * size_of::<Creation>() as u64;
        let read = || memory.words(at, Creation::WORDS).map(|words| CreationValues::from_words(&words));
        // While it is read it may be over, and another one be noted in its place.
        Ok(same_twice(read)?.flatten().filter(|values| values.id == id))
    }
}

/// What is read twice with the same result, within some tries; else `None`. Nothing says that words belong together which another
/// process writes meanwhile.
fn same_twice<T: PartialEq, E>(mut read: impl FnMut() -> Result<T, E>) -> Result<Option<T>, E> {
    const TRIES: usize = 8;
    let mut before = read()?;
    for _ in 0..TRIES {
        let now = read()?;
        if now == before {
            return Ok(Some(now));
        }
        before = now;
    }
    Ok(None)
}

/// Text that ends at the first zero. The companion runs on machines whose words begin with their lowest byte.
pub(crate) fn text(words: &[u64]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory in which every word is zero.
    struct Zeros;

    impl Memory for Zeros {
        type Error = std::convert::Infallible;

        fn words(&self, _at: u64, count: usize) -> Result<Vec<u64>, Self::Error> {
            Ok(vec![0; count])
        }
    }

    #[test]
    fn no_head_of_a_ring_is_too_large() {
        let shape = Shape::new(1, 64, 64, 64).expect("a shape");
        let block = Block { at: 4096, shape, header: HeaderValues::default(), runtime: String::new() };
        for head in [0, 1, 64, 65, u64::MAX - 1, u64::MAX] {
            for first in [0, head / 2, head, u64::MAX] {
                let ring = RingAt { index: 0, values: RingValues { head, first, ..RingValues::default() } };
                let Ok(events) = block.events(&Zeros, ring, u64::MAX);
                let begun = head - first.min(head);
                assert_eq!((events.events.len(), events.torn), (0, begun.min(64)), "{head} {first}");
                assert_eq!(events.overwritten, begun - begun.min(64), "{head} {first}");
            }
        }
    }
}
