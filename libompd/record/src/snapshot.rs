//! What the runtime answers a thread that asks about itself. A library for tests writes it, which is no part of the companion.

use std::sync::atomic::AtomicU64;

use crate::block::{in_ring, words};
use crate::read::{Block, Memory, RingAt};

/// Nested tasks and regions of a thread that a [`Snapshot`] has.
pub const LEVELS: usize = 8;

/// Where the levels begin, in bytes from the beginning of the ring. The [`Snapshot`] lies before them.
pub const LEVELS_AT: u64 = in_ring::SNAPSHOT_AT + size_of::<Snapshot>() as u64;

const _: () = assert!(LEVELS_AT + (LEVELS * size_of::<Level>()) as u64 <= in_ring::STOP_AT);

words! {
    /// One level of a [`Snapshot`]: what `ompt_get_task_info` and `ompt_get_parallel_info` answered.
    Level, LevelValues {
        /// What `ompt_get_task_info` returned, and 3 if it was not called.
        task_result,
        /// Flags of the task.
        task_flags,
        /// The word of its tool data.
        task_data,
        /// Exit frame.
        exit_frame,
        /// Enter frame.
        enter_frame,
        /// Flags of the exit frame in the lower half, of the enter frame in the upper one.
        frame_flags,
        /// The word of tool data of the task's region.
        task_region_data,
        /// Number of the thread in the task's team.
        thread_num,
        /// What `ompt_get_parallel_info` returned, and 3 if it was not called.
        region_result,
        /// The word of tool data of the region of this level.
        region_data,
        /// Its team size.
        team_size,
    }
}

words! {
    /// What the runtime says of a thread when the thread itself asks it. Followed by [`LEVELS`] times a [`Level`].
    Snapshot, SnapshotValues {
        /// How many were taken; odd while one is.
        taken,
        /// What `ompt_get_state` returned.
        state,
        /// The wait id it gave.
        wait_id,
        /// The word of tool data of the thread.
        thread_data,
    }
}

impl Block {
    /// What the runtime last said of a ring's thread when the thread asked it; `None` if it never did.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn snapshot<M: Memory>(
        &self,
        memory: &M,
        ring: RingAt,
    ) -> Result<Option<(SnapshotValues, Vec<LevelValues>)>, M::Error> {
        let at = self.at + self.shape.ring_at(ring.index) + in_ring::SNAPSHOT_AT;
        let words = memory.words(at, Snapshot::WORDS + LEVELS * Level::WORDS)?;
        let values = SnapshotValues::from_words(&words).filter(|values| values.taken != 0 && values.taken % 2 == 0);
        let levels = words.get(Snapshot::WORDS..).unwrap_or_default().chunks(Level::WORDS);
        Ok(values.map(|values| (values, levels.filter_map(LevelValues::from_words).collect())))
    }
}
