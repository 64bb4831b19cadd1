//! The block: what lies where.

use std::ffi::CStr;
use std::sync::atomic::AtomicU64;

/// The data symbol that companions export: a word with the address of the block, zero as long as there is none.
pub const SYMBOL: &str = "ompt_companion_block";

/// What a block begins with.
pub const MAGIC: [u64; 2] = [u64::from_be_bytes(*b"OMPTcomp"), u64::from_be_bytes(*b"anion\0\0\x01")];

/// The layout that this crate describes. Readers refuse others: the meaning of words may have changed.
pub const VERSION: u64 = 2;

/// Bytes in a page: parts of the block begin on one, so that rings can be given memory one by one.
pub const PAGE: u64 = 4096;

/// Locks whose holding is remembered for each thread; those beyond are counted in [`Ring::held_beyond`].
pub const HELD: usize = 32;

/// In the place of [`Held::wait_id`] and [`Creation::id`] while an entry is changed: no lock's, region's or task's.
pub const CHANGING: u64 = u64::MAX;

/// Threads fetch numbers for tasks this many at a time, so that they do not wait for each other.
pub const TASK_NUMBERS: u64 = 64;

/// Declares a struct of words twice: as words that the companion writes, atomic ones but for models of it, and as numbers, which a
/// reader got.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $values:ident { $($(#[$field_doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        #[repr(C)]
        pub struct $name<W = AtomicU64> {
            $($(#[$field_doc])* pub $field: W,)*
        }

        #[doc = concat!("What a [`", stringify!($name), "`] held when it was read.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $values {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl $name {
            /// How many words it has.
            pub const WORDS: usize = size_of::<Self>() / size_of::<u64>();
        }

        impl<W> $name<W> {
            /// Its words, in the order of the block.
            pub fn words(&self) -> impl Iterator<Item = &W> {
                [$(&self.$field),*].into_iter()
            }
        }

        impl $values {
            /// Takes them from words in the order of the block; `None` if there are too few.
            pub fn from_words(words: &[u64]) -> Option<Self> {
                let mut words = words.iter().copied();
                $(let $field = words.next()?;)*
                Some(Self { $($field),* })
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The beginning of the block.
    Header, HeaderValues {
        /// First half of [`MAGIC`].
        magic_first,
        /// Second half of [`MAGIC`].
        magic_second,
        /// [`VERSION`].
        version,
        /// Where the block is, as an address of the process: a copy of a block somewhere else is none.
        address,
        /// Rings ([`Shape::rings`]).
        rings,
        /// Events in a ring ([`Shape::events`]).
        events,
        /// Entries of the table of regions ([`Shape::regions`]).
        regions,
        /// Entries of the table of tasks ([`Shape::tasks`]).
        tasks,
        /// Rings that were ever given to a thread: those from this one on have no memory.
        rings_used,
        /// Process id, of the process that writes: another one in the child of a fork.
        pid,
        /// How many forks lie between the process that began the block and this one.
        forks,
        /// [`State`].
        state,
        /// Goes up with each pause: what was remembered as held or not over before it may have ended unseen.
        epoch,
        /// When the block was begun: nanoseconds of `CLOCK_MONOTONIC`, as all times in it.
        began,
        /// The same moment in nanoseconds of `CLOCK_REALTIME`, since 1970.
        began_realtime,
        /// Threads and devices that got no ring, since none was left.
        threads_beyond,
        /// Regions that got no entry in the table.
        regions_beyond,
        /// Tasks that got no entry in the table.
        tasks_beyond,
        /// What the runtime gave `ompt_start_tool` as version of OpenMP (`_OPENMP`, such as 201611).
        omp_version,
        /// An address in the code of the runtime that has started the companion: its look-up function. Other runtimes of the process
        /// know nothing of it: see `runtimes_beyond`.
        lookup,
        /// Bit n is set if the n-th of [`ompt::ENTRY_POINTS`](crate::ompt::ENTRY_POINTS) was found.
        entry_points,
        /// Last command of `omp_control_tool`, 0 as long as there was none.
        command,
        /// Its modifier.
        command_modifier,
        /// How many commands there were.
        commands,
        /// How many records of devices were written by the device tracing, in the rings of the devices.
        device_records,
        /// What `ompt_set_callback` answered for callbacks 1 to 16, a nibble each, number 1 in the lowest; 15: it was not asked.
        results_first,
        /// The same for 17 to 32.
        results_second,
        /// The same for 33 to 48.
        results_third,
        /// Devices that got no place in the table ([`device::TABLE_AT`](crate::device::TABLE_AT)).
        devices_beyond,
        /// Further runtimes of the process that tried to start the companion and were refused. Regions, tasks and threads of two
        /// runtimes could not be told apart.
        runtimes_beyond,
    }
}

impl HeaderValues {
    /// What `ompt_set_callback` answered for a callback (`ompt_set_result_t`); `None` if it was not asked.
    pub fn result(&self, callback: u8) -> Option<u8> {
        crate::device::result([self.results_first, self.results_second, self.results_third], callback)
    }
}

/// Bytes for the runtime's name of itself, directly behind the [`Header`] and in the same page; it ends at the first zero.
pub const RUNTIME_NAME: usize = 256;

/// What the companion does. The numbers are those of [`Header::state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    /// It writes what happens.
    Recording = 1,
    /// It was told to pause, by the program or by `OMPT_COMPANION_START=paused`.
    Paused = 2,
    /// It was told to end, or the runtime has ended.
    Ended = 3,
}

impl State {
    /// The state with this number.
    pub fn from_number(number: u64) -> Option<State> {
        [State::Recording, State::Paused, State::Ended].into_iter().find(|state| *state as u64 == number)
    }
}

/// In [`Creation::flags`]: a thread has begun to execute the task.
pub const TASK_BEGUN: u64 = 1 << 63;

words! {
    /// Where a region or a task that is not over comes from. It lies at the entry of its table that its number has, modulo the
    /// size of the table.
    Creation, CreationValues {
        /// The number of the region or task, which it also has as tool data; 0 while the entry is free, [`CHANGING`] while it is
        /// being changed.
        id,
        /// The code that created it: a return address.
        codeptr_ra,
        /// The task that created it.
        encountering_task,
        /// When.
        time,
        /// For a region what was requested as its size; for a task 1 if it has dependences.
        detail,
        /// `flags` of the callback; for a task [`TASK_BEGUN`] as well, where the companion calls stop points.
        flags,
        /// The thread that created it: its number in the block.
        thread,
        /// [`Header::epoch`] then.
        epoch,
    }
}

words! {
    /// A lock, critical section or the like that a thread has.
    Held, HeldValues {
        /// What it is called by the runtime (`ompt_wait_id_t`); 0 while the entry is free, [`CHANGING`] while it is being changed.
        wait_id,
        /// Where it was acquired: a return address.
        codeptr_ra,
        /// When it was acquired.
        time,
        /// `ompt_mutex_t` in the lower half; how many times over it is held, for nestable locks, in the upper one.
        kind,
        /// [`Header::epoch`] then.
        epoch,
    }
}

words! {
    /// The beginning of a ring: the thread whose events are in it.
    Ring, RingValues {
        /// [`RingState`].
        state,
        /// The thread's number in the block, from 1, which it also has as tool data. Numbers are never given twice.
        id,
        /// The kernel's id of it.
        lwp,
        /// `pthread_self()`.
        pthread,
        /// `ompt_thread_t`; or, with the bit [`DEVICE_RING`], the number of a device, whose records are in the ring. No thread has
        /// that: `lwp`, `pthread` and what is held are zero.
        kind,
        /// When it began.
        began,
        /// When it ended; 0 as long as it has not.
        ended,
        /// How many events were ever begun in the ring: the next has this position.
        head,
        /// The position of this thread's first event: those before it are of another one, that has ended.
        first,
        /// Locks it acquired when [`HELD`] others were remembered.
        held_beyond,
        /// The number its next task gets, or a multiple of [`TASK_NUMBERS`] if it has to fetch more of them.
        next_task,
    }
}

/// In [`Ring::kind`]: the ring is a device's, and the lower half is its number.
pub const DEVICE_RING: u64 = 1 << 32;

/// Whose a ring is. The numbers are those of [`Ring::state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum RingState {
    /// Nobody's, and it has no memory yet.
    Free = 0,
    /// A thread's.
    Used = 1,
    /// A thread's that has ended, until another one needs the ring.
    Ended = 2,
    /// It is being given to a thread.
    Changing = 3,
}

/// Words of an event.
pub const EVENT_WORDS: usize = 8;

/// A stop point of OMPD (OpenMP 5.2, 20.6) that the companion calls. The numbers are those at [`in_ring::STOP_AT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Stop {
    /// `ompd_bp_parallel_begin`
    ParallelBegin = 1,
    /// `ompd_bp_parallel_end`
    ParallelEnd = 2,
    /// `ompd_bp_task_begin`
    TaskBegin = 3,
    /// `ompd_bp_task_end`
    TaskEnd = 4,
    /// `ompd_bp_thread_begin`
    ThreadBegin = 5,
    /// `ompd_bp_thread_end`
    ThreadEnd = 6,
}

impl Stop {
    /// All of them, in the order of their numbers.
    pub const ALL: [Stop; 6] =
        [Stop::ParallelBegin, Stop::ParallelEnd, Stop::TaskBegin, Stop::TaskEnd, Stop::ThreadBegin, Stop::ThreadEnd];

    /// The stop point with this number.
    pub fn from_number(number: u64) -> Option<Stop> {
        Stop::ALL.into_iter().find(|stop| *stop as u64 == number)
    }

    /// Its symbol.
    pub fn symbol(self) -> &'static CStr {
        match self {
            Stop::ParallelBegin => c"ompd_bp_parallel_begin",
            Stop::ParallelEnd => c"ompd_bp_parallel_end",
            Stop::TaskBegin => c"ompd_bp_task_begin",
            Stop::TaskEnd => c"ompd_bp_task_end",
            Stop::ThreadBegin => c"ompd_bp_thread_begin",
            Stop::ThreadEnd => c"ompd_bp_thread_end",
        }
    }
}

/// The library that has these symbols, and that the companion loads where the runtime has none.
pub const STOPS_LIBRARY: &str = "libompt_companion_stops.so";

/// What lies where in a ring, in bytes from its beginning.
pub mod in_ring {
    use super::{HELD, Held, PAGE, Ring};

    /// [`HELD`] times a [`Held`].
    pub const HELD_AT: u64 = size_of::<Ring>() as u64;
    /// Free, up to the events. A library for tests writes a [`snapshot`](crate::snapshot) here.
    pub const SNAPSHOT_AT: u64 = HELD_AT + (HELD * size_of::<Held>()) as u64;
    /// A word: the stop point ([`Stop`](super::Stop)) that the thread is at, or 0. Companions without stop points leave 0 there.
    pub const STOP_AT: u64 = EVENTS_AT - size_of::<u64>() as u64;
    /// The events.
    pub const EVENTS_AT: u64 = PAGE;

    const _: () = assert!(SNAPSHOT_AT <= STOP_AT);
}

const _: () = assert!(size_of::<Header>() + RUNTIME_NAME <= PAGE as usize);

/// How large the parts of a block are, and thereby where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rings, and thereby threads at a time.
    pub rings: u64,
    /// Events in each; a power of two.
    pub events: u64,
    /// Entries in the table of regions; a power of two.
    pub regions: u64,
    /// Entries in the table of tasks; a power of two.
    pub tasks: u64,
}

impl Shape {
    /// A block of these parts, or `None` if there is none: of what a damaged header says, nothing absurd is taken.
    pub fn new(rings: u64, events: u64, regions: u64, tasks: u64) -> Option<Shape> {
        let power = |n: u64, most: u64| n.is_power_of_two() && n >= PAGE / 64 && n <= most;
        let sound = (1..=1 << 16).contains(&rings) && power(events, 1 << 20) && power(regions, 1 << 20);
        (sound && power(tasks, 1 << 24)).then_some(Shape { rings, events, regions, tasks })
    }

    /// Where the table of regions begins, in bytes from the beginning of the block.
    pub fn regions_at(self) -> u64 {
        PAGE
    }

    /// Where the table of tasks begins.
    pub fn tasks_at(self) -> u64 {
        self.regions_at() + self.regions * size_of::<Creation>() as u64
    }

    /// Where the first ring begins.
    pub fn rings_at(self) -> u64 {
        self.tasks_at() + self.tasks * size_of::<Creation>() as u64
    }

    /// Bytes of a ring.
    pub fn ring_size(self) -> u64 {
        in_ring::EVENTS_AT + self.events * (EVENT_WORDS * size_of::<u64>()) as u64
    }

    /// Where the ring with this index begins.
    pub fn ring_at(self, index: u64) -> u64 {
        self.rings_at() + index * self.ring_size()
    }

    /// Bytes of the block.
    pub fn size(self) -> u64 {
        self.ring_at(self.rings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_on_pages() {
        let shape = Shape::new(3, 64, 64, 128).expect("a shape");
        let parts = [shape.regions_at(), shape.tasks_at(), shape.ring_at(0), shape.ring_at(2), shape.size()];
        assert_eq!(parts, [4096, 8192, 16384, 32768, 40960]);
        assert!(parts.iter().all(|at| at % PAGE == 0));
    }

    #[test]
    fn each_callback_has_its_own_answer() {
        let words = [0x0f21, 0x3000_0000_0000_0004, 0x5];
        let header = HeaderValues {
            results_first: words[0],
            results_second: words[1],
            results_third: words[2],
            ..HeaderValues::default()
        };
        let answers = [0, 1, 2, 3, 4, 17, 32, 33, 48, 49].map(|callback| header.result(callback));
        let expected = [None, Some(1), Some(2), None, Some(0), Some(4), Some(3), Some(5), Some(0), None];
        assert_eq!(answers, expected);
    }

    #[test]
    fn absurd_shapes_are_none() {
        for (rings, events, regions, tasks) in [
            (0, 64, 64, 64),
            (1 << 17, 64, 64, 64),
            (1, 65, 64, 64),
            (1, 64, 0, 64),
            (1, 64, 64, 1 << 25),
            (1, 32, 64, 64),
            (1, 1 << 21, 64, 64),
            (1, 64, 1 << 21, 64),
        ] {
            assert_eq!(Shape::new(rings, events, regions, tasks), None, "{rings} {events} {regions} {tasks}");
        }
        let largest = Shape::new(1 << 16, 1 << 20, 1 << 20, 1 << 24).expect("the largest shape");
        assert!(largest.size() < 1 << 47, "sizes do not overflow");
    }
}
