//! What a stripped libomp gives away: the accessor functions it exports start at the table of all threads.
//!
//! Each recipe names the C it recognises, from `openmp/runtime/src/{kmp_csupport.cpp,kmp_ftn_entry.h,kmp_lock.cpp}`.
//! Only what the code computes counts, not its instructions.

use ompd_layout::code::{Expr, Op};
use ompd_target::elf::ElfFile;

use super::schema::{ALL_NTH, LOCK_TABLE, THREADS};
use crate::recover::{Decoder, Recovered, values};

pub(super) fn recover(image: &ElfFile) -> Recovered {
    let mut decoder = Decoder::new(image);
    threads(&mut decoder);
    fields(&mut decoder);
    lock_table(&mut decoder);
    decoder.finish()
}

/// For a value read through `__kmp_threads[gtid]->…`: the address of `__kmp_threads`, and the offsets followed from the
/// thread's `kmp_info` on.
fn through_threads(value: &Expr) -> Option<(u64, Vec<(i64, u8)>)> {
    let chain = value.chain()?;
    let element = chain.root.as_indexed()?;
    if element.scale != 8 || element.offset != 0 {
        return None;
    }
    let table = element.base.as_load(8)?.as_const()?;
    let mut steps = chain.steps.iter();
    let first = steps.next()?;
    (first.offset == 0 && first.size == 8).then(|| (table, steps.map(|s| (s.offset, s.size)).collect()))
}

/// `return __kmp_all_nth;` and `return __kmp_threads[gtid]->th.th_info.ds.ds_tid;`
fn threads(decoder: &mut Decoder<'_>) {
    let function = "__kmpc_global_num_threads";
    if let Some(run) = decoder.run(function) {
        match run.returned().find_map(|value| value.as_load(4)?.as_const()) {
            Some(addr) => {
                decoder.global(ALL_NTH, addr);
            }
            None => decoder.not_found(function, ALL_NTH, &run),
        }
    }
    let function = "__kmpc_bound_thread_num";
    if let Some(run) = decoder.run(function) {
        let found = values(&run).find_map(|value| match through_threads(&value)? {
            (table, steps) if steps.len() == 1 && steps[0].1 == 4 => Some((table, steps[0].0)),
            _ => None,
        });
        match found {
            Some((table, tid)) => {
                decoder.global(THREADS, table);
                decoder.field("kmp_base_info", "th_info.ds.ds_tid", tid, 4);
            }
            None => decoder.not_found(function, THREADS, &run),
        }
    }
}

/// `return __kmp_threads[gtid]->th.POINTER->MEMBER;`
fn fields(decoder: &mut Decoder<'_>) {
    let recipes = [
        ("omp_get_level", "th_team", Some(("kmp_base_team", "t_level"))),
        ("omp_get_active_level", "th_team", Some(("kmp_base_team", "t_active_level"))),
        ("__kmpc_bound_num_threads", "th_team", Some(("kmp_base_team", "t_nproc"))),
        // The member is one of the control variables embedded in the task.
        ("omp_get_proc_bind", "th_current_task", None),
        ("omp_in_final", "th_current_task", Some(("kmp_taskdata", "td_flags"))),
    ];
    for (function, pointer, member) in recipes {
        let Some(run) = decoder.run(function) else { continue };
        let found = values(&run).find_map(|value| {
            let (table, steps) = through_threads(&value)?;
            match steps.as_slice() {
                [(pointer, 8), (member, 4)] => Some((table, *pointer, *member)),
                _ => None,
            }
        });
        match found {
            Some((table, at, offset)) => {
                decoder.global(THREADS, table);
                decoder.field("kmp_base_info", pointer, at, 8);
                if let Some((of, name)) = member {
                    decoder.field(of, name, offset, 4);
                }
            }
            None => decoder.not_found(function, pointer, &run),
        }
    }
}

/// `__kmp_i_lock_table.table[index / KMP_I_LOCK_CHUNK]`: the table's first member is the array of rows.
fn lock_table(decoder: &mut Decoder<'_>) {
    let function = "__kmpc_init_lock";
    let Some(run) = decoder.run(function) else { return };
    let found = run.loads().find_map(|load| {
        let row = load.addr.as_indexed().filter(|row| row.scale == 8 && row.offset == 0)?;
        row.index.as_op(Op::Shr)?;
        row.base.as_load(8)?.as_const()
    });
    match found {
        Some(addr) => {
            decoder.global(LOCK_TABLE, addr);
        }
        None => decoder.not_found(function, LOCK_TABLE, &run),
    }
}
