//! What a stripped libgomp gives away: the accessor functions it exports read the very fields that are wanted.
//!
//! Each recipe names the C it recognises, from `libgomp/{parallel.c,icv.c,critical.c,atomic.c}`. Only what the code
//! computes counts, not its instructions.

use ompd_layout::code::{Chain, Expr, Kind, TlsSlot};
use ompd_target::elf::ElfFile;

use super::schema::{ATOMIC_LOCK, DEFAULT_LOCK, GLOBAL_ICV, MAX_ACTIVE_LEVELS, TLS_SLOT};
use crate::recover::{Decoder, Recovered, values};

pub(super) fn recover(image: &ElfFile) -> Recovered {
    let mut decoder = Decoder::new(image);
    thread_numbers(&mut decoder);
    team(&mut decoder);
    icvs(&mut decoder);
    locks(&mut decoder);
    decoder.finish()
}

/// `return gomp_thread ()->ts.FIELD;`
fn thread_numbers(decoder: &mut Decoder<'_>) {
    let recipes = [
        ("omp_get_thread_num", "ts.team_id"),
        ("omp_get_level", "ts.level"),
        ("omp_get_active_level", "ts.active_level"),
    ];
    for (function, field) in recipes {
        let Some(run) = decoder.run(function) else { continue };
        let found = run.returned().find_map(|value| {
            let chain = value.chain()?;
            let [offset] = chain.offsets([4])?;
            Some((tls_slot(&chain)?, offset))
        });
        match found {
            Some((slot, offset)) => {
                decoder.global(TLS_SLOT, slot);
                decoder.field("gomp_thread", field, offset, 4);
            }
            None => decoder.not_found(function, field, &run),
        }
    }
}

/// `struct gomp_team *team = gomp_thread ()->ts.team; return team ? team->nthreads : 1;`
fn team(decoder: &mut Decoder<'_>) {
    let function = "omp_get_num_threads";
    let Some(run) = decoder.run(function) else { return };
    let found = run.returned().find_map(|value| {
        let chain = value.chain()?;
        tls_slot(&chain)?;
        chain.offsets([8, 4])
    });
    match found {
        Some([team, nthreads]) => {
            decoder.field("gomp_thread", "ts.team", team, 8);
            decoder.field("gomp_team", "nthreads", nthreads, 4);
        }
        None => decoder.not_found(function, "ts.team", &run),
    }
}

/// `struct gomp_task_icv *icv = gomp_icv (false); return icv->FIELD;` where `gomp_icv` is
/// `task ? &task->icv : &gomp_global_icv`. `nthreads_var` is the first member in every release.
fn icvs(decoder: &mut Decoder<'_>) {
    let Some(run) = decoder.run("omp_get_max_threads") else { return };
    let own = values(&run).find_map(|value| {
        let chain = value.chain()?;
        tls_slot(&chain)?;
        let [task, icv] = offsets2(&chain)?;
        Some((task, icv))
    });
    let global = values(&run).find_map(|value| value.as_any_load()?.as_const());
    let (Some((task, icv)), Some(global)) = (own, global) else {
        return decoder.not_found("omp_get_max_threads", "gomp_thread.task", &run);
    };
    decoder.field("gomp_thread", "task", task, 8);
    decoder.field("gomp_task", "icv", icv, 0);
    decoder.field("gomp_task_icv", "nthreads_var", 0, 0);
    decoder.global(GLOBAL_ICV, global);

    let recipes = [
        ("omp_get_dynamic", "dyn_var"),
        ("omp_get_thread_limit", "thread_limit_var"),
        ("omp_get_max_active_levels", "max_active_levels_var"),
        ("omp_get_proc_bind", "bind_var"),
    ];
    for (function, field) in recipes {
        let Some(run) = decoder.run(function) else { continue };
        let found = values(&run).find_map(|value| {
            let chain = value.chain()?;
            tls_slot(&chain)?;
            let size = chain.steps.last()?.size;
            let [own_task, offset] = offsets2(&chain)?;
            (own_task == task).then_some((offset - icv, size))
        });
        match found {
            Some((offset, size)) => decoder.field("gomp_task_icv", field, offset, size),
            // Before GCC 11 `max-active-levels-var` is one variable for the whole process.
            None if function == "omp_get_max_active_levels" => {
                match values(&run).find_map(|value| value.as_any_load()?.as_const()) {
                    Some(addr) => {
                        decoder.global(MAX_ACTIVE_LEVELS, addr);
                    }
                    None => decoder.not_found(function, field, &run),
                }
            }
            None => decoder.not_found(function, field, &run),
        }
    }
}

/// `gomp_mutex_lock (&default_lock);` and `gomp_mutex_lock (&atomic_lock);`
fn locks(decoder: &mut Decoder<'_>) {
    for (function, lock) in [("GOMP_critical_start", DEFAULT_LOCK), ("GOMP_atomic_start", ATOMIC_LOCK)] {
        let Some(run) = decoder.run(function) else { continue };
        let stored = run.stores().find_map(|store| store.addr.as_const());
        // Where the whole lock operation is a call (outline atomics, a slow path), the lock is its argument.
        let passed = || run.calls().find_map(|call| call.args.iter().find_map(Expr::as_const).filter(|a| *a > 1));
        match stored.or_else(passed) {
            Some(addr) => {
                decoder.global(lock, addr);
            }
            None => decoder.not_found(function, lock, &run),
        }
    }
}

/// The GOT slot through which a chain of loads reaches thread-local storage.
fn tls_slot(chain: &Chain) -> Option<u64> {
    match chain.root.kind() {
        Kind::Tls(slot @ TlsSlot::Offset(_)) => Some(slot.address()),
        _ => None,
    }
}

/// A pointer followed, then a member of any size.
fn offsets2(chain: &Chain) -> Option<[i64; 2]> {
    match chain.steps.as_slice() {
        [first, second] if first.size == 8 => Some([first.offset, second.offset]),
        _ => None,
    }
}
