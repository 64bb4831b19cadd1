//! Threads: those in the table of the runtime.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, Registers, TargetExt};

use super::{Context, Notes};
use crate::bind::{Slot, StructData};
use crate::kmp::reason::Own;
use crate::kmp::schema;
use crate::limits;
use crate::model::*;

/// Whether a thread waits for its next region.
pub(super) enum Idle {
    No,
    Yes(Wait),
    /// What would tell could not be read: nothing may be said about its team either.
    Unsure(Reason),
}

/// One entry of `__kmp_threads`.
pub(super) struct KmpThread {
    pub(super) gtid: u32,
    pub(super) view: StructData,
    pub(super) lwp: Option<i32>,
    pub(super) team: Addr,
    pub(super) idle: Idle,
    /// It is the initial thread of its root.
    pub(super) uber: Option<bool>,
    pub(super) registers: Option<Result<Registers, String>>,
}

/// The threads of the runtime.
#[derive(Default)]
pub(super) struct Threads {
    pub(super) list: Vec<KmpThread>,
    pub(super) by_addr: BTreeMap<Addr, usize>,
    pub(super) by_gtid: HashMap<u32, usize>,
    /// Every thread of the runtime, and of the process, was found.
    complete: bool,
    /// The team of a single thread, and its members, which are read when they are asked for.
    pub(super) team_of_one: Option<StructData>,
    members: OnceCell<Vec<Addr>>,
    /// Those of its members that were met, by number.
    pub(super) members_of_one: BTreeMap<u64, Addr>,
}

impl Threads {
    /// An OMPT tool has filed something with a thread: so there is one.
    pub(super) fn have_tool_data(&self, context: &Context<'_>) -> bool {
        let slot = &context.kmp.structs.info.thread_tool_data;
        self.list.iter().any(|thread| thread.view.uint(slot).is_ok_and(|data| data != 0))
    }

    /// A thread by its number plus one, as locks name their owners. One that is not found has ended only if all were.
    pub(super) fn owner(&self, number: u64) -> Result<Owner, Reason> {
        let gtid = number.wrapping_sub(1);
        let thread = u32::try_from(gtid).ok().and_then(|gtid| self.by_gtid.get(&gtid));
        match thread.and_then(|index| self.list[*index].lwp) {
            Some(lwp) => Ok(Owner::Thread(lwp)),
            None if self.complete => Ok(Owner::Gone(gtid)),
            None => Err(Reason::from(Own::OwnerNotFound { gtid })),
        }
    }

    /// The thread that has the word at this address in its descriptor, as far as threads are known.
    pub(super) fn around(&self, context: &Context<'_>, word: Addr) -> Option<Addr> {
        let size = context.kmp.structs.info.size.get().ok()?;
        let known = self.by_addr.range(..=word).next_back().map(|(addr, _)| *addr);
        let is_in = |addr: &Addr| word.0.checked_sub(addr.0).is_some_and(|at| at < size);
        known.filter(is_in).or_else(|| {
            let team = self.team_of_one.as_ref()?;
            let members = self.members.get_or_init(|| context.members(team).unwrap_or_default());
            members.iter().copied().find(is_in)
        })
    }
}

/// All threads; which of them are idle is not known yet.
pub(super) fn read(context: &Context<'_>, notes: &mut Notes) -> Threads {
    let mut threads = Threads::default();
    if let Err(why) = read_table(context, &mut threads, notes) {
        notes.issue("threads", why);
    }
    // Whatever goes wrong with a thread leaves an issue.
    let found = context.target.threads().iter().all(|t| t.thread_pointer().is_some());
    threads.complete = notes.issues.is_empty() && found;
    threads
}

/// `__kmp_threads` is indexed by gtid and has holes. Its length is `__kmp_threads_capacity`. Where that is not
/// known, the walk ends once `__kmp_all_nth` threads have been met or an entry turns out not to be a thread.
fn read_table(context: &Context<'_>, threads: &mut Threads, notes: &mut Notes) -> Result<(), Reason> {
    let s = &context.kmp.structs.info;
    let table = context.target.read_ptr(context.global(schema::THREADS)?)?;
    if table.is_null() {
        // Loaded, but no OpenMP construct has been executed yet: __kmp_do_serial_initialize allocates the table.
        return Ok(());
    }
    let all = u64::from(context.target.read_u32(context.global(schema::ALL_NTH)?)?);
    let capacity = match context.global(schema::THREADS_CAPACITY) {
        Ok(addr) => u64::from(context.target.read_u32(addr)?),
        Err(_) => limits::THREADS,
    };
    let distance = context.target.pthread_distance();
    if distance.is_none() {
        notes.issue("threads", Trouble::DescriptorsUnknown);
    }
    let of = |t: &ompd_process::Thread| Some(t.thread_pointer()?.back(distance?));
    let by_pthread: HashMap<Addr, &ompd_process::Thread> =
        context.target.threads().iter().filter_map(|t| Some((of(t)?, t))).collect();
    let entries = entries(context, notes, table, capacity.min(limits::THREADS), all);
    StructData::prefetch(context.target, s.size, entries.iter().map(|(_, addr)| *addr));
    let mut found = 0;
    for (gtid, addr) in entries {
        // Each thread has a record of its own: the table has ended.
        if threads.by_addr.contains_key(&addr) {
            break;
        }
        let view = StructData::read(context.target, addr, s.size);
        // An entry that does not name its own index is no thread: the table has ended.
        // That index 0 is zero would prove nothing.
        if let Ok(own) = view.as_ref().map_err(Clone::clone).and_then(|v| v.uint(&s.ds_gtid))
            && gtid > 0
        {
            notes.check.note("the table of threads has entries that do not name their own index", own == gtid);
        }
        match view.as_ref().map(|v| v.uint(&s.ds_gtid)) {
            Ok(Ok(own)) if own == gtid => {}
            // Then the count alone says where the table ends.
            Ok(Err(why)) if why.is_layout() => {}
            Ok(Err(why)) => return Err(why),
            Err(why) => {
                notes.issue(format!("thread with gtid {gtid}"), why);
                continue;
            }
            Ok(Ok(_)) => break,
        }
        let view = view?;
        found += 1;
        let pthread = view.ptr(&s.ds_thread)?;
        let os = by_pthread.get(&pthread);
        threads.by_addr.insert(addr, threads.list.len());
        threads.by_gtid.insert(gtid as u32, threads.list.len());
        threads.list.push(KmpThread {
            gtid: gtid as u32,
            lwp: os.map(|t| t.lwp),
            team: view.ptr(&s.team)?,
            idle: Idle::No,
            uber: None,
            registers: os.map(|t| t.registers.clone()),
            view,
        });
    }
    prefetch_waits(context, &threads.list);
    if found < all {
        notes.issue("threads", Trouble::ThreadsMissing { all, found });
    }
    Ok(())
}

/// The first `all` entries of the table of threads that are in use.
pub(super) fn entries(
    context: &Context<'_>,
    notes: &mut Notes,
    table: Addr,
    capacity: u64,
    all: u64,
) -> Vec<(u64, Addr)> {
    let width = u64::from(context.target.arch().pointer_bytes);
    // There may be holes between them.
    context.target.prefetch(&[(table, all.min(capacity) * width)]);
    let mut entries = Vec::new();
    for gtid in 0..capacity {
        if entries.len() as u64 == all {
            break;
        }
        match context.target.read_ptr(table.offset(gtid * width)) {
            Ok(addr) if addr.is_null() => {}
            Ok(addr) => entries.push((gtid, addr)),
            Err(fault) => {
                notes.issue("threads", Trouble::ThreadTableEnds { fault });
                break;
            }
        }
    }
    entries
}

/// What the threads sleep on and execute is in as many places as there are threads.
fn prefetch_waits(context: &Context<'_>, threads: &[KmpThread]) {
    let s = &context.kmp.structs;
    let pointers = |slot: Slot| threads.iter().filter_map(move |t| t.view.ptr(&slot).ok());
    StructData::prefetch(context.target, s.flag64.size, pointers(s.info.sleep_loc));
    StructData::prefetch(context.target, s.taskdata.size, pointers(s.info.current_task));
}
