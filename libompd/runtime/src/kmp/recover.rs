//! What a stripped libomp gives away: the accessor functions it exports start at the table of all threads.
//!
//! Each recipe names the C it recognises, from `openmp/runtime/src/{kmp_csupport.cpp,kmp_ftn_entry.h,kmp_lock.cpp}`.
//! Only what the code computes counts, not its instructions.

use ompd_layout::code::{self, Expr, Limits, Op, Run};
use ompd_layout::{Facts, Field};
use ompd_target::elf::ElfFile;

use super::schema::{ALL_NTH, LOCK_TABLE, THREADS};
use crate::instance::Recovered;

/// No struct of the runtime is larger; an offset beyond it was not an offset.
const MAX_OFFSET: i64 = 0x4000;

pub(super) fn recover(image: &ElfFile) -> Recovered {
    let mut out = Recovered::default();
    threads(image, &mut out);
    fields(image, &mut out);
    lock_table(image, &mut out);
    out
}

fn run(image: &ElfFile, function: &str, out: &mut Recovered) -> Option<Run> {
    match code::run_symbol(image, function, &Limits::default()) {
        Ok(run) => Some(run),
        Err(why) => {
            out.failures.push(format!("{function}: {why}"));
            None
        }
    }
}

fn not_found(function: &str, what: &str, run: &Run, out: &mut Recovered) {
    let stops: Vec<String> = run.stops().iter().map(|s| s.to_string()).collect();
    let stops = if stops.is_empty() { String::new() } else { format!(" ({})", stops.join(", ")) };
    out.failures.push(format!("{function}: does not show {what}{stops}"));
}

fn set(facts: &mut Facts, of: &str, name: &str, offset: i64, size: u8) {
    if (0..MAX_OFFSET).contains(&offset) {
        facts.set_field(of, name, Field { offset: offset as u64, size: size.into(), bits: None });
    }
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
fn threads(image: &ElfFile, out: &mut Recovered) {
    let function = "__kmpc_global_num_threads";
    if let Some(run) = run(image, function, out) {
        match run.returned().find_map(|value| value.as_load(4)?.as_const()) {
            Some(addr) => {
                out.facts.globals.insert(ALL_NTH.to_owned(), addr);
            }
            None => not_found(function, ALL_NTH, &run, out),
        }
    }
    let function = "__kmpc_bound_thread_num";
    if let Some(run) = run(image, function, out) {
        let found = values(&run).find_map(|value| match through_threads(&value)? {
            (table, steps) if steps.len() == 1 && steps[0].1 == 4 => Some((table, steps[0].0)),
            _ => None,
        });
        match found {
            Some((table, tid)) => {
                out.facts.globals.insert(THREADS.to_owned(), table);
                set(&mut out.facts, "kmp_base_info", "th_info.ds.ds_tid", tid, 4);
            }
            None => not_found(function, THREADS, &run, out),
        }
    }
}

/// `return __kmp_threads[gtid]->th.POINTER->MEMBER;`
fn fields(image: &ElfFile, out: &mut Recovered) {
    let recipes = [
        ("omp_get_level", "th_team", Some(("kmp_base_team", "t_level"))),
        ("omp_get_active_level", "th_team", Some(("kmp_base_team", "t_active_level"))),
        ("__kmpc_bound_num_threads", "th_team", Some(("kmp_base_team", "t_nproc"))),
        // The member is one of the control variables embedded in the task.
        ("omp_get_proc_bind", "th_current_task", None),
        ("omp_in_final", "th_current_task", Some(("kmp_taskdata", "td_flags"))),
    ];
    for (function, pointer, member) in recipes {
        let Some(run) = run(image, function, out) else { continue };
        let found = values(&run).find_map(|value| {
            let (table, steps) = through_threads(&value)?;
            match steps.as_slice() {
                [(pointer, 8), (member, 4)] => Some((table, *pointer, *member)),
                _ => None,
            }
        });
        match found {
            Some((table, at, offset)) => {
                out.facts.globals.entry(THREADS.to_owned()).or_insert(table);
                set(&mut out.facts, "kmp_base_info", pointer, at, 8);
                if let Some((of, name)) = member {
                    set(&mut out.facts, of, name, offset, 4);
                }
            }
            None => not_found(function, pointer, &run, out),
        }
    }
}

/// `__kmp_i_lock_table.table[index / KMP_I_LOCK_CHUNK]`: the table's first member is the array of rows.
fn lock_table(image: &ElfFile, out: &mut Recovered) {
    let function = "__kmpc_init_lock";
    let Some(run) = run(image, function, out) else { return };
    let found = run.loads().find_map(|load| {
        let row = load.addr.as_indexed().filter(|row| row.scale == 8 && row.offset == 0)?;
        row.index.as_op(Op::Shr)?;
        row.base.as_load(8)?.as_const()
    });
    match found {
        Some(addr) => {
            out.facts.globals.insert(LOCK_TABLE.to_owned(), addr);
        }
        None => not_found(function, LOCK_TABLE, &run, out),
    }
}

/// Values read from memory: those returned, and all loads on the way.
fn values(run: &Run) -> impl Iterator<Item = Expr> + '_ {
    run.returned().cloned().chain(run.loads().map(|load| load.value()))
}
