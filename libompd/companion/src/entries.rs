//! The runtime's entry points, by which the tool asks it.

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use ompt_record::ompt::ENTRY_POINTS;

use crate::ompt::{EntryPoint, GetParallelInfo, GetState, GetTaskInfo, GetThreadData, Lookup, SetCallback};

/// Those that are used, and which there are.
#[derive(Debug, Default)]
pub struct Entries {
    /// Bit n is set if the n-th of [`ENTRY_POINTS`] was found.
    pub found: u64,
    pub set_callback: Option<SetCallback>,
    pub get_state: Option<GetState>,
    pub get_thread_data: Option<GetThreadData>,
    pub get_parallel_info: Option<GetParallelInfo>,
    pub get_task_info: Option<GetTaskInfo>,
}

/// Those of the runtime that is recorded; null before there is one.
static ENTRIES: AtomicPtr<Entries> = AtomicPtr::new(null_mut());

impl Entries {
    /// Asks the runtime for all of them.
    pub fn look_up(lookup: Lookup) -> &'static Entries {
        let ask = |name: &str| {
            let name = CString::new(name).ok()?;
            // SAFETY: the runtime's look-up, which takes a string of C's and may be called at any time (OpenMP 5.2, 19.6.3).
            unsafe { lookup(name.as_ptr()) }
        };
        let found = ENTRY_POINTS.iter().enumerate().filter(|(_, name)| ask(name).is_some());
        let found = found.fold(0, |bits, (n, _)| bits | 1 << n);
        macro_rules! typed {
            ($name:literal as $type:ty) => {
                // SAFETY: the entry point of this name has this type (OpenMP 5.2, 19.6).
                ask($name).map(|entry| unsafe { std::mem::transmute::<EntryPoint, $type>(entry) })
            };
        }
        let entries = Entries {
            found,
            set_callback: typed!("ompt_set_callback" as SetCallback),
            get_state: typed!("ompt_get_state" as GetState),
            get_thread_data: typed!("ompt_get_thread_data" as GetThreadData),
            get_parallel_info: typed!("ompt_get_parallel_info" as GetParallelInfo),
            get_task_info: typed!("ompt_get_task_info" as GetTaskInfo),
        };
        // A signal handler may be looking at those of a runtime that has gone: they stay.
        let entries: &'static Entries = Box::leak(Box::new(entries));
        ENTRIES.store(std::ptr::from_ref(entries).cast_mut(), Release);
        entries
    }

    /// Those that were looked up, if they were.
    pub fn get() -> Option<&'static Entries> {
        // SAFETY: null, or what `look_up` leaked.
        unsafe { ENTRIES.load(Acquire).as_ref() }
    }
}
