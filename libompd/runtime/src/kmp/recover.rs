//! What a stripped libomp gives away. The functions it exports start at the table of all threads. For LLVM's own
//! debugger library, `ompd_init` computes where 54 members lie and how large they are.
//!
//! Each recipe names the C it recognises, from `openmp/runtime/src/{kmp_csupport.cpp,kmp_ftn_entry.h,kmp_lock.cpp,
//! kmp_tasking.cpp,ompd-specific.cpp}`. Only what the code computes counts, not its instructions.

use std::ops::Range;

use ompd_layout::Field;
use ompd_layout::code::{self, Call, Callee, Expr, ImmediateStore, Op, Store};
use ompd_process::elf::ElfFile;

use super::schema::{
    AFFINITY_FORMAT, ALL_NTH, AVAIL_PROC, CANCEL, LIBRARY, LOCK_TABLE, MAX_TASK_PRIORITY, NTEAMS, SCHEMA, STACKSIZE,
    TARGET_OFFLOAD, TEAMS_THREAD_LIMIT, THREADS,
};
use crate::recover::{Decoder, Recovered, measured, unanimous, values};

mod lists;

pub(super) fn recover(image: &ElfFile) -> Recovered {
    let mut recipes = Recipes { decoder: Decoder::new(image, &SCHEMA) };
    recipes.threads();
    recipes.fields();
    recipes.taskwait();
    recipes.taskgroup();
    recipes.serialized();
    recipes.lock_table();
    recipes.settings();
    recipes.affinity_format();
    recipes.ompd_init();
    recipes.lists();
    recipes.decoder.finish()
}

struct Recipes<'a> {
    decoder: Decoder<'a>,
}

/// `__kmp_threads[gtid]`: the address of `__kmp_threads`, if `value` is a thread's `kmp_info`.
fn thread(value: &Expr) -> Option<u64> {
    element_of(value.as_load(8)?)
}

/// The address of `__kmp_threads`, if `addr` is that of one of its elements.
fn element_of(addr: &Expr) -> Option<u64> {
    let element = addr.as_indexed().filter(|e| e.scale == 8 && e.offset == 0)?;
    element.base.as_load(8)?.as_const()
}

/// For a value read through `__kmp_threads[gtid]->…`: the address of `__kmp_threads`, and the offsets followed from the
/// thread's `kmp_info` on.
fn through_threads(value: &Expr) -> Option<(u64, Vec<(i64, u8)>)> {
    let chain = value.chain()?;
    let table = element_of(&chain.root)?;
    let mut steps = chain.steps.iter();
    let first = steps.next()?;
    (first.offset == 0 && first.size == 8).then(|| (table, steps.map(|s| (s.offset, s.size)).collect()))
}

impl Recipes<'_> {
    /// `return __kmp_all_nth;` and `return __kmp_threads[gtid]->th.th_info.ds.ds_tid;`
    fn threads(&mut self) {
        let function = "__kmpc_global_num_threads";
        if let Some(run) = self.decoder.run(function) {
            match run.returned().find_map(|value| value.as_load(4)?.as_const()) {
                Some(addr) => self.decoder.global(ALL_NTH, addr),
                None => self.decoder.not_found(function, ALL_NTH, &run),
            }
        }
        let function = "__kmpc_bound_thread_num";
        if let Some(run) = self.decoder.run(function) {
            let found = values(&run).find_map(|value| match through_threads(&value)? {
                (table, steps) if steps.len() == 1 && steps[0].1 == 4 => Some((table, steps[0].0)),
                _ => None,
            });
            match found {
                Some((table, tid)) => {
                    self.decoder.global(THREADS, table);
                    self.decoder.field("kmp_base_info", "th_info.ds.ds_tid", tid, 4);
                }
                None => self.decoder.not_found(function, THREADS, &run),
            }
        }
    }

    /// `return __kmp_threads[gtid]->th.POINTER->MEMBER;`
    fn fields(&mut self) {
        let recipes = [
            ("omp_get_level", "th_team", Some(("kmp_base_team", "t_level"))),
            ("omp_get_active_level", "th_team", Some(("kmp_base_team", "t_active_level"))),
            ("__kmpc_bound_num_threads", "th_team", Some(("kmp_base_team", "t_nproc"))),
            // The member is one of the control variables embedded in the task.
            ("omp_get_proc_bind", "th_current_task", None),
            ("omp_get_default_device", "th_current_task", None),
            ("omp_in_final", "th_current_task", Some(("kmp_taskdata", "td_flags"))),
        ];
        for (function, pointer, member) in recipes {
            let Some(run) = self.decoder.run(function) else { continue };
            let found = values(&run).find_map(|value| {
                let (table, steps) = through_threads(&value)?;
                match steps.as_slice() {
                    [(pointer, 8), (member, 4)] => Some((table, *pointer, *member)),
                    _ => None,
                }
            });
            match found {
                Some((table, at, offset)) => {
                    self.decoder.global(THREADS, table);
                    self.decoder.field("kmp_base_info", pointer, at, 8);
                    if let Some((of, name)) = member {
                        self.decoder.field(of, name, offset, 4);
                    }
                }
                None => self.decoder.not_found(function, pointer, &run),
            }
        }
    }

    /// Where a member of `kmp_info` lies that was found before.
    fn pointer(&self, name: &str) -> Option<i64> {
        Some(self.decoder.known("kmp_base_info", name)?.offset as i64)
    }

    /// Offset in the struct that the pointer called `name` of a thread's `kmp_info` leads to.
    fn behind(&self, name: &str, addr: &Expr) -> Option<i64> {
        let (at, offset) = addr.as_member()?;
        let (info, pointer) = at.split();
        thread(&info)?;
        (Some(pointer) == self.pointer(name)).then_some(offset)
    }

    /// `__kmpc_omp_taskwait (loc_ref, gtid)`: `taskdata->td_taskwait_ident = loc_ref; taskdata->td_taskwait_thread =
    /// gtid + 1; … while (KMP_ATOMIC_LD_ACQ(&taskdata->td_incomplete_child_tasks) != 0)`. Its template is inlined, or
    /// called with the same arguments.
    fn taskwait(&mut self) {
        let function = "__kmpc_omp_taskwait";
        let Some(mut run) = self.decoder.run(function) else { return };
        let passes_on = |c: &Call| c.args[0].as_arg() == Some(0) && c.args[1].as_arg() == Some(1);
        let called: Vec<u64> = run.calls().filter(|c| passes_on(c)).filter_map(internal).collect();
        if run.stores().next().is_none() {
            for entry in called {
                run = match self.decoder.run_at("__kmpc_omp_taskwait_template", entry) {
                    Some(inner) if inner.stores().next().is_some() => inner,
                    _ => continue,
                };
                break;
            }
        }
        let in_task = |s: &Store| self.behind("th_current_task", &s.addr);
        let ident = run.stores().filter(|s| s.size == 8 && s.value.as_arg() == Some(0)).filter_map(in_task);
        let ident = unanimous(ident);
        let of_gtid = |value: &Expr, plus: i64| value.split().0.as_arg() == Some(1) && value.split().1 == plus;
        let waiting = unanimous(run.stores().filter(|s| s.size == 4 && of_gtid(&s.value, 1)).filter_map(in_task));
        let children = unanimous(
            run.compares()
                .filter(|c| c.size == 4 && !c.mask && c.right.as_const() == Some(0))
                .filter_map(|c| self.behind("th_current_task", c.left.as_load(4)?)),
        );
        let found = [
            (ident, "td_taskwait_ident", 8),
            (waiting, "td_taskwait_thread", 4),
            (children, "td_incomplete_child_tasks", 4),
        ];
        for (offset, name, size) in found {
            match offset {
                Some(offset) => self.decoder.field("kmp_taskdata", name, offset, size),
                None => self.decoder.not_found(function, name, &run),
            }
        }
    }

    /// `tg_new->parent = taskdata->td_taskgroup; … taskdata->td_taskgroup = tg_new;`
    fn taskgroup(&mut self) {
        let function = "__kmpc_taskgroup";
        let Some(run) = self.decoder.run(function) else { return };
        let linked = run.stores().filter(|s| s.size == 8 && s.value.as_call().is_some());
        let Some(at) = unanimous(linked.filter_map(|s| self.behind("th_current_task", &s.addr))) else {
            return self.decoder.not_found(function, "td_taskgroup", &run);
        };
        self.decoder.field("kmp_taskdata", "td_taskgroup", at, 8);
        let parents = run.stores().filter_map(|s| {
            let (object, offset) = s.addr.split();
            object.as_call()?;
            (self.behind("th_current_task", s.value.as_load(8)?)? == at).then_some(offset)
        });
        match unanimous(parents) {
            Some(offset) => self.decoder.field("kmp_taskgroup", "parent", offset, 8),
            None => self.decoder.not_found(function, "parent", &run),
        }
    }

    /// `__kmp_dispatch_finish`, which `__kmpc_dispatch_fini_4` hands its arguments to:
    /// `if (!th->th.th_team->t.t_serialized)`
    fn serialized(&mut self) {
        let function = "__kmpc_dispatch_fini_4";
        let Some(mut run) = self.decoder.run(function) else { return };
        let entry = run.calls().find_map(internal).filter(|_| run.compares().next().is_none());
        if let Some(entry) = entry
            && let Some(inner) = self.decoder.run_at("__kmp_dispatch_finish", entry)
        {
            run = inner;
        }
        let tests = run.compares().filter(|c| c.size == 4 && !c.mask && c.right.as_const() == Some(0));
        match unanimous(tests.filter_map(|c| self.behind("th_team", c.left.as_load(4)?))) {
            Some(offset) => self.decoder.field("kmp_base_team", "t_serialized", offset, 4),
            None => self.decoder.not_found(function, "t_serialized", &run),
        }
    }

    /// `__kmp_i_lock_table.table[index / KMP_I_LOCK_CHUNK]`: the table's first member is the array of rows.
    fn lock_table(&mut self) {
        let function = "__kmpc_init_lock";
        // Every kind of lock has a way of its own through the function.
        let Some(run) = self.decoder.run_far(function) else { return };
        let found = run.loads().find_map(|load| {
            let row = load.addr.as_indexed().filter(|row| row.scale == 8 && row.offset == 0)?;
            row.index.as_op(Op::Shr)?;
            row.base.as_load(8)?.as_const()
        });
        match found {
            Some(addr) => self.decoder.global(LOCK_TABLE, addr),
            None => self.decoder.not_found(function, LOCK_TABLE, &run),
        }
    }

    /// `if (!__kmp_init_serial) __kmp_serial_initialize (); return VARIABLE;`
    fn settings(&mut self) {
        let recipes = [
            ("omp_get_num_procs", AVAIL_PROC, 4),
            ("kmp_get_stacksize_s", STACKSIZE, 8),
            ("omp_get_cancellation", CANCEL, 4),
            ("omp_get_max_task_priority", MAX_TASK_PRIORITY, 4),
            ("kmp_get_library", LIBRARY, 4),
            ("omp_get_max_teams", NTEAMS, 4),
            ("omp_get_teams_thread_limit", TEAMS_THREAD_LIMIT, 4),
            ("__kmpc_get_target_offload", TARGET_OFFLOAD, 4),
        ];
        for (function, name, size) in recipes {
            // Some came with later releases.
            if !self.decoder.has(function) {
                continue;
            }
            let Some(run) = self.decoder.run(function) else { continue };
            match unanimous(run.returned().filter_map(|value| value.as_load(size)?.as_const())) {
                Some(addr) => self.decoder.global(name, addr),
                None => self.decoder.not_found(function, name, &run),
            }
        }
    }

    /// `size = strlen (__kmp_affinity_format);`
    fn affinity_format(&mut self) {
        let function = "omp_get_affinity_format";
        if !self.decoder.has(function) {
            return;
        }
        let Some(run) = self.decoder.run(function) else { return };
        match measured(&run) {
            Some(addr) => self.decoder.global(AFFINITY_FORMAT, addr),
            None => self.decoder.not_found(function, AFFINITY_FORMAT, &run),
        }
    }

    /// `ompd_init`: `ompd_access__T__M = (uint64_t)&(((T *)0)->M);` for the members of [`ACCESS`], then the masks of
    /// [`BITS`], then `ompd_sizeof__T__M = sizeof(…);` for the same members, then the sizes of [`SIZES`]. The variables are
    /// declared with the sizes of members before the masks. In a stripped build the function has no name: it is the one
    /// whose constants can be nothing else.
    fn ompd_init(&mut self) {
        let image = self.decoder.image();
        // Two constants stored at once take 14 bytes of code on x86-64, one by itself on aarch64 up to 24.
        let least = OmpdTable::length(0) as u64;
        let candidates = code::functions(image).filter(|f| (7 * least..32 * least).contains(&(f.end - f.start)));
        let words = |range| {
            let mut stores = code::immediate_stores(image, range);
            stores.retain(|s| s.size == 8);
            stores
        };
        // The function begins with them: a look at the first bytes spares most others a whole one.
        let begin = |f: &Range<u64>| f.start..f.start.saturating_add(PROBE);
        let candidates = candidates
            .filter(|f| code::may_store_words(image, begin(f), PROBED))
            .filter(|f| words(begin(f)).len() >= PROBED);
        let mut tables = candidates.filter_map(|f| {
            let mut stores = words(f);
            let executed = OmpdTable::new(&stores, Order::Executed);
            stores.sort_by_key(|s| s.addr);
            let declared = OmpdTable::new(&stores, Order::Declared);
            match (executed, declared) {
                (Some(one), Some(other)) => Some(one.where_both_agree(&other)),
                (one, other) => one.or(other),
            }
        });
        match (tables.next(), tables.next()) {
            (Some(table), None) if table.contradicts(&self.decoder) => {
                self.decoder.failure("ompd_init: its constants are not what the accessor functions use");
            }
            (Some(table), None) => table.file(&mut self.decoder),
            (None, _) => self.decoder.failure("ompd_init: not found (LLVM 13 and later have it)"),
            (Some(_), Some(_)) => self.decoder.failure("ompd_init: two functions could be it"),
        }
    }
}

/// Bytes at the beginning of a function that are looked at first, and how many constants those of `ompd_init` store.
/// After a prologue they store at least one for each 24 bytes.
const PROBE: u64 = 256;
const PROBED: usize = 5;

/// The function called, if it is one of this image without a name.
fn internal(call: &Call) -> Option<u64> {
    match call.callee {
        Callee::Internal(entry) => Some(entry),
        _ => None,
    }
}

/// In which order the constants of `ompd_init` are taken. Compilers need not fill the variables in the order of the
/// source (clang for aarch64 does not). They need not lay them out in the order of their declaration either (GCC does
/// not). Where both orders give a table that can be right, only what they agree on is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// That of the instructions: offsets, masks, sizes of members, sizes.
    Executed,
    /// That of the variables in memory: offsets, sizes of members, masks, sizes.
    Declared,
}

/// The constants of `ompd_init`; nothing where it is not certain which one it is.
struct OmpdTable {
    offsets: Vec<Option<u64>>,
    member_sizes: Vec<Option<u64>>,
    masks: Vec<Option<u64>>,
    sizes: Vec<Option<u64>>,
}

impl OmpdTable {
    /// Constants in the table, with `extra` more members and as many more sizes.
    fn length(extra: usize) -> usize {
        (ACCESS.len() + extra) * 2 + BITS.len() + SIZES.len() + extra
    }

    /// Splits the constants up; `None` if they cannot be what they are taken for: then the list is another one.
    fn new(stores: &[ImmediateStore], order: Order) -> Option<OmpdTable> {
        // Intel's builds have one more member, after the others, and one more size among those of the globals.
        [0, 1].into_iter().find_map(|extra| OmpdTable::with(stores.get(..OmpdTable::length(extra))?, extra, order))
    }

    fn with(stores: &[ImmediateStore], extra: usize, order: Order) -> Option<OmpdTable> {
        let places: std::collections::BTreeSet<u64> = stores.iter().map(|s| s.addr).collect();
        let mut values = stores.iter().map(|s| s.value);
        let mut next = |n: usize| -> Vec<u64> { values.by_ref().take(n).collect() };
        let members = ACCESS.len() + extra;
        let offsets = next(members);
        let (masks, member_sizes) = match order {
            Order::Executed => (next(BITS.len()), next(members)),
            Order::Declared => {
                let sizes = next(members);
                (next(BITS.len()), sizes)
            }
        };
        let sizes = next(SIZES.len() + extra);
        let distinct = places.len() == stores.len();
        let bits = masks.iter().fold(0, |all, mask| all | mask);
        let one_bit_each = masks.iter().all(|mask| mask.is_power_of_two() && *mask < 1 << 32)
            && bits.count_ones() as usize == BITS.len();
        let sized = member_sizes.iter().all(|size| (1..=0x4000).contains(size));
        // Members of unions lie at their start, and `int` and `char` are what they are.
        let starts = ACCESS.iter().zip(&offsets).filter(|((of, _), _)| UNIONS.contains(of)).all(|(_, at)| *at == 0);
        let c_types = sizes[C_TYPES + extra..][..2] == [4, 1];
        let known = |values: Vec<u64>| values.into_iter().map(Some).collect();
        (distinct && one_bit_each && sized && starts && c_types).then(|| OmpdTable {
            offsets: known(offsets),
            member_sizes: known(member_sizes),
            masks: known(masks),
            sizes: known(sizes),
        })
    }

    /// What two readings of the same constants have in common.
    fn where_both_agree(&self, other: &OmpdTable) -> OmpdTable {
        let both = |a: &[Option<u64>], b: &[Option<u64>]| -> Vec<Option<u64>> {
            a.iter().zip(b).map(|(a, b)| if a == b { *a } else { None }).collect()
        };
        OmpdTable {
            offsets: both(&self.offsets, &other.offsets),
            member_sizes: both(&self.member_sizes, &other.member_sizes),
            masks: both(&self.masks, &other.masks),
            sizes: both(&self.sizes, &other.sizes),
        }
    }

    /// True if a function that was decoded uses another offset for a member of the table.
    fn contradicts(&self, decoder: &Decoder<'_>) -> bool {
        ACCESS.iter().zip(&self.offsets).any(|((of, member), offset)| {
            let known = decoder.known(schema_name(of), member);
            known.zip(*offset).is_some_and(|(known, offset)| known.offset != offset)
        })
    }

    fn offset_of(&self, of: &str, member: &str) -> Option<(u64, u64)> {
        let n = ACCESS.iter().position(|(s, m)| *s == of && *m == member)?;
        self.offsets[n].zip(self.member_sizes[n])
    }

    fn file(&self, decoder: &mut Decoder<'_>) {
        for (of, member) in ACCESS {
            let Some((offset, size)) = self.offset_of(of, member) else { continue };
            decoder.place(schema_name(of), member, Field { offset, size, bits: None });
        }
        // Members of embedded structs are wanted as members of the outer one.
        let embedded = [
            (["kmp_base_info_t", "th_info"], ["kmp_desc_base_t", "ds_thread"], "th_info.ds.ds_thread"),
            (["kmp_base_info_t", "th_info"], ["kmp_desc_base_t", "ds_tid"], "th_info.ds.ds_tid"),
            (["kmp_internal_control_t", "sched"], ["kmp_r_sched_t", "r_sched_type"], "sched.r_sched_type"),
            (["kmp_internal_control_t", "sched"], ["kmp_r_sched_t", "chunk"], "sched.chunk"),
        ];
        for ([of, member], [inner, name], path) in embedded {
            if let (Some((outer, _)), Some((offset, size))) = (self.offset_of(of, member), self.offset_of(inner, name))
            {
                let offset = outer.saturating_add(offset);
                decoder.place(schema_name(of), path, Field { offset, size, bits: None });
            }
        }
        // The first sizes are those of structs.
        for (name, size) in SIZES.iter().zip(&self.sizes).take(STRUCT_SIZES) {
            if let Some(size) = size {
                decoder.size(schema_name(name), *size);
            }
        }
        let Some(unit) = self.sizes[FLAGS] else { return };
        for (name, mask) in BITS.iter().zip(&self.masks) {
            if let Some(mask) = mask {
                decoder.bit("kmp_tasking_flags", name, unit, mask.trailing_zeros() as u8);
            }
        }
    }
}

/// The schema's name of a type.
fn schema_name(ty: &str) -> &str {
    ty.strip_suffix("_t").unwrap_or(ty)
}

/// Types of [`ACCESS`] that are unions of a struct with its padding.
const UNIONS: &[&str] = &["kmp_desc_t", "kmp_info_t", "kmp_root_t", "kmp_team_p", "ompt_data_t"];

/// `OMPD_FOREACH_ACCESS` of `ompd-specific.h`, the same in LLVM 13 to 23.
const ACCESS: &[(&str, &str)] = &[
    ("kmp_base_info_t", "th_current_task"),
    ("kmp_base_info_t", "th_team"),
    ("kmp_base_info_t", "th_info"),
    ("kmp_base_info_t", "ompt_thread_info"),
    ("kmp_base_root_t", "r_in_parallel"),
    ("kmp_base_team_t", "ompt_team_info"),
    ("kmp_base_team_t", "ompt_serialized_team_info"),
    ("kmp_base_team_t", "t_active_level"),
    ("kmp_base_team_t", "t_implicit_task_taskdata"),
    ("kmp_base_team_t", "t_master_tid"),
    ("kmp_base_team_t", "t_nproc"),
    ("kmp_base_team_t", "t_level"),
    ("kmp_base_team_t", "t_parent"),
    ("kmp_base_team_t", "t_pkfn"),
    ("kmp_base_team_t", "t_threads"),
    ("kmp_desc_t", "ds"),
    ("kmp_desc_base_t", "ds_thread"),
    ("kmp_desc_base_t", "ds_tid"),
    ("kmp_info_t", "th"),
    ("kmp_r_sched_t", "r_sched_type"),
    ("kmp_r_sched_t", "chunk"),
    ("kmp_root_t", "r"),
    ("kmp_internal_control_t", "dynamic"),
    ("kmp_internal_control_t", "max_active_levels"),
    ("kmp_internal_control_t", "nproc"),
    ("kmp_internal_control_t", "proc_bind"),
    ("kmp_internal_control_t", "sched"),
    ("kmp_internal_control_t", "default_device"),
    ("kmp_internal_control_t", "thread_limit"),
    ("kmp_taskdata_t", "ompt_task_info"),
    ("kmp_taskdata_t", "td_flags"),
    ("kmp_taskdata_t", "td_icvs"),
    ("kmp_taskdata_t", "td_parent"),
    ("kmp_taskdata_t", "td_team"),
    ("kmp_task_t", "routine"),
    ("kmp_team_p", "t"),
    ("kmp_nested_nthreads_t", "used"),
    ("kmp_nested_nthreads_t", "nth"),
    ("kmp_nested_proc_bind_t", "used"),
    ("kmp_nested_proc_bind_t", "bind_types"),
    ("ompt_task_info_t", "frame"),
    ("ompt_task_info_t", "scheduling_parent"),
    ("ompt_task_info_t", "task_data"),
    ("ompt_team_info_t", "parallel_data"),
    ("ompt_thread_info_t", "state"),
    ("ompt_thread_info_t", "wait_id"),
    ("ompt_thread_info_t", "thread_data"),
    ("ompt_data_t", "value"),
    ("ompt_data_t", "ptr"),
    ("ompt_frame_t", "exit_frame"),
    ("ompt_frame_t", "enter_frame"),
    ("ompt_lw_taskteam_t", "parent"),
    ("ompt_lw_taskteam_t", "ompt_team_info"),
    ("ompt_lw_taskteam_t", "ompt_task_info"),
];

/// `OMPD_FOREACH_BITFIELD`: all of `kmp_tasking_flags_t`.
const BITS: &[&str] = &[
    "final",
    "tiedness",
    "tasktype",
    "task_serial",
    "tasking_ser",
    "team_serial",
    "started",
    "executing",
    "complete",
    "freed",
    "native",
];

/// Of [`SIZES`], how many are those of structs, which is that of the flags, and where `int` and `char` stand.
const STRUCT_SIZES: usize = 4;
const FLAGS: usize = 3;
const C_TYPES: usize = 22;

/// `OMPD_FOREACH_SIZEOF`.
const SIZES: &[&str] = &[
    "kmp_info_t",
    "kmp_taskdata_t",
    "kmp_task_t",
    "kmp_tasking_flags_t",
    "kmp_thread_t",
    "ompt_data_t",
    "ompt_id_t",
    "__kmp_avail_proc",
    "__kmp_max_nth",
    "__kmp_stksize",
    "__kmp_omp_cancellation",
    "__kmp_max_task_priority",
    "__kmp_display_affinity",
    "__kmp_affinity_format",
    "__kmp_tool_libraries",
    "__kmp_tool_verbose_init",
    "__kmp_tool",
    "ompd_state",
    "kmp_nested_nthreads_t",
    "__kmp_nested_nth",
    "kmp_nested_proc_bind_t",
    "__kmp_nested_proc_bind",
    "int",
    "char",
    "__kmp_gtid",
    "__kmp_nth",
];
