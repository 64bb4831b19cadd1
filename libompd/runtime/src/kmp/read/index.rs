//! What is read of all threads before the first question: where their descriptors are. And what the runtime itself says of the state
//! of one of them.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, NativeThread, Target, TargetExt};

use super::focus::is_in_table;
use super::{Context, Notes, threads};
use crate::bind::StructData;
use crate::excerpt::Known;
use crate::kmp::{Kmp, schema};
use crate::limits;

/// See [`Runtime::index`](crate::Runtime::index).
pub(in crate::kmp) fn index(kmp: &Kmp, target: &dyn Target, natives: &[NativeThread]) -> Option<Vec<Known>> {
    let (context, mut notes) = (Context::new(kmp, target), Notes::default());
    let s = &kmp.structs.info;
    let table = target.read_ptr(context.global(schema::THREADS).ok()?).ok()?;
    if table.is_null() {
        return None;
    }
    let all = u64::from(target.read_u32(context.global(schema::ALL_NTH).ok()?).ok()?);
    let capacity = u64::from(target.read_u32(context.global(schema::THREADS_CAPACITY).ok()?).ok()?);
    let entries = threads::entries(&context, &mut notes, table, capacity.min(limits::THREADS), all);
    let lwps: HashMap<Addr, i32> = natives.iter().map(|native| (native.pthread, native.lwp)).collect();
    let roots = roots(&context, table.offset(capacity * width(target)), &entries);
    let mut found = Vec::with_capacity(entries.len());
    for (gtid, descriptor) in entries {
        let view = StructData::read_fields(target, descriptor, s.size, &[&s.ds_thread, &s.ds_gtid], &[]).ok()?;
        if view.uint(&s.ds_gtid).ok()? != gtid {
            return None;
        }
        let pthread = view.ptr(&s.ds_thread).ok()?;
        // One that begins or ends has no kernel thread.
        if let Some(lwp) = lwps.get(&pthread) {
            let is_worker = roots.as_ref().is_some_and(|roots| !roots.contains(&gtid));
            found.push(Known { descriptor, lwp: *lwp, pthread, is_worker });
        }
    }
    (notes.is_clean() && !found.is_empty()).then_some(found)
}

fn width(target: &dyn Target) -> u64 {
    target.arch().pointer_bytes.into()
}

/// Numbers of the threads that the runtime has not made: each has a root. The table of roots follows that of threads
/// (`__kmp_do_serial_initialize`, `__kmp_expand_threads`). Nothing if it is not there.
fn roots(context: &Context<'_>, table: Addr, entries: &[(u64, Addr)]) -> Option<HashSet<u64>> {
    let count = entries.last()?.0 + 1;
    let roots = context.read_pointers(table, 0, count).ok()?;
    let found: Vec<(u64, Addr)> = (0..).zip(roots).filter(|(_, root)| !root.is_null()).collect();
    let is_of = |(gtid, root): &(u64, Addr)| {
        let thread = entries.iter().find(|(number, _)| number == gtid)?.1;
        let own = context.target.read_ptr(thread.offset(context.kmp.structs.info.root.offset().ok()?)).ok()?;
        (own == *root).then_some(*gtid)
    };
    // The thread that began the runtime has the first.
    let first = found.first()?.0 == entries.first()?.0;
    found.iter().map(is_of).collect::<Option<_>>().filter(|_| first)
}

/// States that the runtime keeps and that leave nothing to derive: at the end of a region, at an explicit barrier, idle.
const PLAIN: [u32; 3] = [0x011, 0x014, 0x100];

/// See [`Runtime::kept_state`](crate::Runtime::kept_state).
pub(in crate::kmp) fn kept_state(
    kmp: &Kmp,
    target: &dyn Target,
    thread: Known,
    alive: &dyn Fn(Known) -> bool,
) -> Option<u32> {
    let context = Context::new(kmp, target);
    let s = &kmp.structs.info;
    let state = s.ompt_state.field().ok()?;
    let state = target.read_uint(thread.descriptor.offset(state.offset), state.size).ok()?;
    let state = u32::try_from(state).ok().filter(|state| PLAIN.contains(state))?;
    let fields = [&s.ds_thread, &s.ds_gtid];
    let view = StructData::read_fields(target, thread.descriptor, s.size, &fields, &[]).ok()?;
    let same = view.ptr(&s.ds_thread).ok()? == thread.pthread && alive(thread);
    (same && (thread.is_worker || is_in_table(&context, &view).is_ok())).then_some(state)
}
