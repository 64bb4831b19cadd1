//! Threads: those in the table of the runtime, and what is told of each in the end.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, Registers, TargetExt};

use super::idle::Idle;
use super::tasks::Tasks;
use super::teams::Teams;
use super::{Context, Notes};
use crate::bind::{Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::reason::Own;
use crate::kmp::schema::{self, KmpInfo};
use crate::limits;
use crate::model::*;

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
    /// Members of the team of a single thread, as that lists them.
    pub(super) members: Vec<Addr>,
}

impl Threads {
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
        let members = self.members.iter().copied();
        known.into_iter().chain(members).find(|addr| word.0.checked_sub(addr.0).is_some_and(|at| at < size))
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

/// `__kmp_threads` is indexed by gtid and has holes. Its length is `__kmp_threads_capacity`; where that is not
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
fn entries(context: &Context<'_>, notes: &mut Notes, table: Addr, capacity: u64, all: u64) -> Vec<(u64, Addr)> {
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

/// What is told of threads, each with what it waits for.
pub(super) fn raw(
    context: &Context<'_>,
    threads: &Threads,
    teams: &Teams,
    tasks: &Tasks,
    waits: Vec<Fact<Option<Wait>>>,
) -> Vec<RawThread> {
    let each = threads.list.iter().zip(waits);
    let mut raw: Vec<RawThread> = each.map(|(thread, wait)| raw_one(context, thread, teams, tasks, wait)).collect();
    raw.sort_by_key(|t| (t.lwp.is_none(), t.lwp, t.gtid));
    raw
}

/// What is told of a thread.
fn raw_one(
    context: &Context<'_>,
    raw: &KmpThread,
    teams: &Teams,
    tasks: &Tasks,
    wait: Fact<Option<Wait>>,
) -> RawThread {
    let s = &context.kmp.structs;
    let why_none = match &raw.idle {
        Idle::No => None,
        Idle::Yes(_) => Some(Common::IdleWithoutEither.into()),
        Idle::Unsure(why) => Some(why.clone()),
    };
    let role = match (&raw.idle, raw.uber) {
        (_, Some(true)) => s.root.root_team.fact(Ok(Role::Initial)),
        (Idle::Yes(wait), _) => Fact::known(Role::IdleWorker, wait.origin),
        (Idle::No, Some(false)) => s.root.root_team.fact(Ok(Role::Worker)),
        (Idle::No, None) if !context.reach.is_whole() => Fact::unknown(NOT_LOOKED_FOR),
        (Idle::No, None) => Fact::unknown(Own::ContentionGroup),
        (Idle::Unsure(why), _) => Fact::unknown(why),
    };
    let team = match &raw.idle {
        Idle::Yes(wait) => Fact::known(None, wait.origin),
        Idle::No => teams.team_at(raw.team, &s.info.team),
        Idle::Unsure(why) => Fact::unknown(why),
    };
    let task = match (raw.view.ptr(&s.info.current_task), &why_none) {
        (_, Some(why)) => Fact::unknown(why),
        (Ok(task), None) if task.is_null() => Fact::unknown(Own::NoTaskYet),
        (Ok(task), None) => match tasks.ids.get(&task) {
            Some(id) => s.info.current_task.fact(Ok(*id)),
            None if !context.reach.is_whole() => Fact::unknown(NOT_LOOKED_FOR),
            None => Fact::unknown(Common::TaskAtUnreadable { task }),
        },
        (Err(why), None) => why.into(),
    };
    let thread_num = match (&why_none, &team) {
        (Some(why), _) => Fact::unknown(why),
        // In the root team an initial thread is alone.
        (None, Fact::Known { value: None, .. }) => s.info.team.fact(Ok(0)),
        (None, _) => s.info.ds_tid.fact(raw.view.count(&s.info.ds_tid)),
    };
    let icvs = match &why_none {
        Some(why) => Icvs::unknown(why),
        None => context.icvs_of(&raw.view, task.get().and_then(|id| tasks.views.get(id.0)), teams.found.get(&raw.team)),
    };
    let placement = match &why_none {
        Some(why) => Placement::unknown(why),
        None => context.placement_of(&raw.view),
    };
    RawThread {
        tool_data: s.info.thread_tool_data.fact(raw.view.uint(&s.info.thread_tool_data)),
        outermost_tool_data: outermost_tool_data(context, raw),
        ompt_state: ompt_state(&s.info, &raw.view),
        placement,
        lwp: raw.lwp,
        descriptor: raw.view.addr(),
        gtid: Some(raw.gtid),
        role,
        thread_num,
        team,
        task,
        wait,
        icvs,
    }
}

/// What a tool has filed with the root team of an initial thread.
fn outermost_tool_data(context: &Context<'_>, raw: &KmpThread) -> Fact<u64> {
    let s = &context.kmp.structs;
    if raw.uber != Some(true) {
        return Fact::unknown(Own::NotInitial);
    }
    let read = || {
        let root = raw.view.ptr(&s.info.root)?;
        let team = StructData::read(context.target, root, s.root.size)?.ptr(&s.root.root_team)?;
        Ok(context.target.read_u64(team.offset(s.team.parallel_tool_data.offset()?))?)
    };
    s.team.parallel_tool_data.fact(read())
}

/// What the runtime keeps of the thread's state. Without a tool it keeps none, although there is one: zero, which is the number of a state
/// as well, or, for an initial thread of libomp 14, that it works in parallel. So it counts only where a tool has filed something.
fn ompt_state(s: &KmpInfo, thread: &StructData) -> Fact<OmptState> {
    let read = || {
        if thread.uint(&s.thread_tool_data)? == 0 {
            return Ok(None);
        }
        let (number, wait_id) = (thread.count(&s.ompt_state)?, thread.uint(&s.ompt_wait_id)?);
        Ok::<_, Reason>(Some(OmptState { number, wait_id }))
    };
    match read() {
        Ok(Some(state)) => s.ompt_state.fact(Ok(state)),
        Ok(None) => Fact::unknown(Own::NoState),
        Err(why) => why.into(),
    }
}
