//! Settings that only libomp and libiomp5 have, by the variables of the environment that set them (kmp_settings.cpp,
//! `__kmp_stg_table`). They are read where the runtime's variables have names, and in a stripped build where its code shows them.

use std::collections::BTreeMap;

use ompd_process::{Addr, Module, Target, TargetExt};

use super::settings_table::{self, Variable};
use crate::limits;
use crate::model::IcvValue;

/// How the runtime keeps a setting.
#[derive(Clone, Copy)]
enum Form {
    /// An `int` or a `kmp_uint64`.
    Number,
    /// An `int` that is 0 or not.
    Switch,
    /// Bytes, a `size_t`.
    Size,
    /// The threads that help in the background; one more is their primary (`__kmp_hidden_helper_threads_num`).
    Helpers,
    /// How long a waiting thread looks before it sleeps.
    Blocktime,
    /// A text, or NULL.
    Text,
    /// Two members of a struct of so many bytes, by their offsets.
    Pair { size: u64, at: [u64; 2] },
    /// Two arrays with an element for each kind of barrier, this one and another; which kind.
    OfBarrier { releases: &'static str, barrier: u64, patterns: bool },
}

/// One setting: the variable of the environment, and that of the runtime.
struct Own {
    name: &'static str,
    symbol: &'static str,
    form: Form,
}

const fn own(name: &'static str, symbol: &'static str, form: Form) -> Own {
    Own { name, symbol, form }
}

const fn bits(name: &'static str, barrier: u64) -> Own {
    let releases = "__kmp_barrier_release_branch_bits";
    own(name, "__kmp_barrier_gather_branch_bits", Form::OfBarrier { releases, barrier, patterns: false })
}

const fn patterns(name: &'static str, barrier: u64) -> Own {
    let releases = "__kmp_barrier_release_pattern";
    own(name, "__kmp_barrier_gather_pattern", Form::OfBarrier { releases, barrier, patterns: true })
}

/// `enum kmp_bar_pat_e`.
const PATTERNS: [&str; 5] = ["linear", "tree", "hyper", "hierarchical", "dist"];
/// `KMP_MAX_BLOCKTIME`: threads never sleep.
const NEVER: i64 = i32::MAX as i64;

/// The settings of which the runtime keeps nothing else that counts.
const ALL: &[Own] = &[
    own("KMP_ABORT_DELAY", "__kmp_abort_delay", Form::Number),
    own("KMP_ADAPTIVE_LOCK_PROPS", "__kmp_adaptive_backoff_params", Form::Pair { size: 8, at: [0, 4] }),
    own("KMP_ALIGN_ALLOC", "__kmp_align_alloc", Form::Size),
    own("KMP_ALL_THREADPRIVATE", "__kmp_tp_capacity", Form::Number),
    own("KMP_ATOMIC_MODE", "__kmp_atomic_mode", Form::Number),
    own("KMP_BLOCKTIME", "__kmp_dflt_blocktime", Form::Blocktime),
    own("KMP_CPUINFO_FILE", "__kmp_cpuinfo_file", Form::Text),
    own("KMP_DEVICE_THREAD_LIMIT", "__kmp_max_nth", Form::Number),
    own("KMP_DISP_NUM_BUFFERS", "__kmp_dispatch_num_buffers", Form::Number),
    own("KMP_DUPLICATE_LIB_OK", "__kmp_duplicate_library_ok", Form::Switch),
    own("KMP_ENABLE_TASK_THROTTLING", "__kmp_enable_task_throttling", Form::Switch),
    own("KMP_FORCE_MONOTONIC_DYNAMIC_SCHEDULE", "__kmp_force_monotonic", Form::Switch),
    own("KMP_FOREIGN_THREADS_THREADPRIVATE", "__kmp_foreign_tp", Form::Switch),
    own("KMP_FORKJOIN_FRAMES", "__kmp_forkjoin_frames", Form::Switch),
    own("KMP_FORKJOIN_FRAMES_MODE", "__kmp_forkjoin_frames_mode", Form::Number),
    bits("KMP_FORKJOIN_BARRIER", 1),
    patterns("KMP_FORKJOIN_BARRIER_PATTERN", 1),
    own("KMP_HANDLE_SIGNALS", "__kmp_handle_signals", Form::Switch),
    own("KMP_HOT_TEAMS_MAX_LEVEL", "__kmp_hot_teams_max_level", Form::Number),
    own("KMP_HOT_TEAMS_MODE", "__kmp_hot_teams_mode", Form::Number),
    own("KMP_INIT_AT_FORK", "__kmp_need_register_atfork_specified", Form::Switch),
    own("KMP_ITT_PREPARE_DELAY", "__kmp_itt_prepare_delay", Form::Number),
    own("KMP_MALLOC_POOL_INCR", "__kmp_malloc_pool_incr", Form::Size),
    own("KMP_MWAIT_HINTS", "__kmp_mwait_hints", Form::Number),
    own("KMP_NESTING_MODE", "__kmp_nesting_mode", Form::Number),
    own("KMP_NUM_LOCKS_IN_BLOCK", "__kmp_num_locks_in_block", Form::Number),
    bits("KMP_PLAIN_BARRIER", 0),
    patterns("KMP_PLAIN_BARRIER_PATTERN", 0),
    bits("KMP_REDUCTION_BARRIER", 2),
    patterns("KMP_REDUCTION_BARRIER_PATTERN", 2),
    own("KMP_SETTINGS", "__kmp_settings", Form::Switch),
    own("KMP_SPIN_BACKOFF_PARAMS", "__kmp_spin_backoff_params", Form::Pair { size: 12, at: [4, 8] }),
    own("KMP_STACKOFFSET", "__kmp_stkoffset", Form::Size),
    own("KMP_STACKPAD", "__kmp_stkpadding", Form::Number),
    own("KMP_STACKSIZE", "__kmp_stksize", Form::Size),
    own("KMP_TASKING", "__kmp_tasking_mode", Form::Number),
    own("KMP_TASKLOOP_MIN_TASKS", "__kmp_taskloop_min_tasks", Form::Number),
    own("KMP_TASK_STEALING_CONSTRAINT", "__kmp_task_stealing_constraint", Form::Number),
    own("KMP_TEAMS_THREAD_LIMIT", "__kmp_teams_max_nth", Form::Number),
    own("KMP_TPAUSE", "__kmp_tpause_state", Form::Number),
    own("KMP_USER_LEVEL_MWAIT", "__kmp_user_level_mwait", Form::Switch),
    own("KMP_USE_YIELD", "__kmp_use_yield", Form::Number),
    own("KMP_VERSION", "__kmp_version", Form::Switch),
    own("KMP_WARNINGS", "__kmp_generate_warnings", Form::Switch),
    own("LIBOMP_NUM_HIDDEN_HELPER_THREADS", "__kmp_hidden_helper_threads_num", Form::Helpers),
    own("LIBOMP_USE_HIDDEN_HELPER_TASK", "__kmp_enable_hidden_helper", Form::Switch),
];

/// The settings of the runtime whose module begins at `base`.
pub(super) fn read(target: &dyn Target, base: Addr) -> Vec<(&'static str, IcvValue)> {
    let Some(module) = target.modules().iter().find(|module| module.base() == base) else { return Vec::new() };
    let reader = Reader { target, module, by_code: by_code(module) };
    ALL.iter().filter_map(|own| Some((own.name, reader.value(own)?))).collect()
}

/// What the code of a build without names shows: of settings that are one number, whose functions do nothing but print it.
fn by_code(module: &Module) -> BTreeMap<&'static str, Variable> {
    let is_number = |own: &&Own| matches!(own.form, Form::Number | Form::Switch | Form::Size);
    let names: Vec<&'static str> = ALL.iter().filter(is_number).map(|own| own.name).collect();
    match &module.file {
        Ok(file) if ALL.iter().all(|own| file.symbol(own.symbol).is_none()) => settings_table::variables(file, &names),
        _ => BTreeMap::new(),
    }
}

struct Reader<'a> {
    target: &'a dyn Target,
    module: &'a Module,
    by_code: BTreeMap<&'static str, Variable>,
}

/// A variable of the runtime: where it is in the process, and its size in bytes.
struct Place {
    addr: Addr,
    size: u64,
}

impl Reader<'_> {
    fn symbol(&self, name: &str) -> Option<Place> {
        let symbol = self.module.symbol(name).filter(|symbol| !symbol.tls)?;
        Some(Place { addr: symbol.addr, size: symbol.size })
    }

    fn place(&self, own: &Own) -> Option<Place> {
        self.symbol(own.symbol).or_else(|| {
            let found = self.by_code.get(own.name)?;
            Some(Place { addr: Addr(found.svma).offset(self.module.bias), size: found.size })
        })
    }

    fn value(&self, own: &Own) -> Option<IcvValue> {
        let place = self.place(own)?;
        let text = |text: String| Some(IcvValue::Text(text));
        match own.form {
            Form::Number => self.number(&place).map(IcvValue::Number),
            Form::Switch => self.number(&place).map(|value| IcvValue::Flag(value != 0)),
            Form::Size => text(format!("{}B", self.number(&place)?)),
            Form::Helpers => self.number(&place).map(|threads| IcvValue::Number((threads - 1).max(0))),
            Form::Blocktime => text(self.blocktime(&place)?),
            Form::Text => {
                let at = self.target.read_ptr(place.addr).ok().filter(|at| !at.is_null())?;
                text(self.target.read_cstr(at, limits::STRING).ok()?)
            }
            Form::Pair { size, at: [first, second] } => {
                let member = |at| self.target.read_u32(place.addr.offset(at)).ok();
                text(format!("{},{}", member(first)?, member(second)?)).filter(|_| place.size == size)
            }
            Form::OfBarrier { releases, barrier, patterns } => {
                let element = |of: &Place| match of.size > barrier * 4 {
                    true => self.target.read_u32(of.addr.offset(barrier * 4)).ok(),
                    false => None,
                };
                let (gather, release) = (element(&place)?, element(&self.symbol(releases)?)?);
                let word = |pattern: u32| PATTERNS.get(pattern as usize);
                text(match patterns {
                    true => format!("{},{}", word(gather)?, word(release)?),
                    false => format!("{gather},{release}"),
                })
            }
        }
    }

    /// A variable of as many bytes as its symbol or the code says: `int`s, and words of 8 bytes, none of which is negative.
    fn number(&self, place: &Place) -> Option<i64> {
        match place.size {
            4 => self.target.read_u32(place.addr).ok().map(|value| i64::from(value.cast_signed())),
            8 => self.target.read_u64(place.addr).ok().and_then(|value| i64::try_from(value).ok()),
            _ => None,
        }
    }

    /// Microseconds with the unit it was given in since LLVM 18, milliseconds before.
    fn blocktime(&self, place: &Place) -> Option<String> {
        let value = self.number(place)?;
        let unit = match self.symbol("__kmp_blocktime_units") {
            Some(unit) => Some(self.target.read_uint(unit.addr, 1).ok()?),
            None => None,
        };
        Some(match unit.map(|unit| unit == u64::from(b'm')) {
            _ if value == NEVER => "infinite".to_owned(),
            Some(true) => format!("{}ms", value / 1000),
            Some(false) => format!("{value}us"),
            None => format!("{value}ms"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handmade::{Heap, with_symbols};

    /// The settings of a runtime that has these variables, each with its size and content.
    fn settings(variables: &[(&str, u64, &[u8])]) -> BTreeMap<&'static str, IcvValue> {
        let mut heap = Heap::new();
        let at = |place: usize| 0x1000 + 64 * place as u64;
        let symbols: Vec<_> = variables.iter().enumerate().map(|(n, (name, size, _))| (*name, at(n), *size)).collect();
        heap.target.modules.push(with_symbols(&symbols, false));
        for (place, (.., bytes)) in variables.iter().enumerate() {
            heap.target.memory.push((Addr(at(place)), bytes.to_vec()));
        }
        // What a text is at.
        heap.target.memory.push((Addr(0x8000), [b"cpuinfo".to_vec(), vec![0; 0x1000]].concat()));
        read(&heap.target, Addr(0x1000)).into_iter().collect()
    }

    fn one(variable: &str, size: u64, bytes: &[u8]) -> Option<IcvValue> {
        let mut found = settings(&[(variable, size, bytes)]).into_values();
        let value = found.next();
        assert!(found.next().is_none());
        value
    }

    fn text(text: &str) -> Option<IcvValue> {
        Some(IcvValue::Text(text.to_owned()))
    }

    #[test]
    fn variables_of_four_and_eight_bytes_are_numbers() {
        let number = |size, bytes: &[u8]| one("__kmp_abort_delay", size, bytes);
        assert_eq!(number(4, &(-5i32).to_le_bytes()), Some(IcvValue::Number(-5)));
        assert_eq!(number(8, &5u64.to_le_bytes()), Some(IcvValue::Number(5)));
        assert_eq!(number(8, &u64::MAX.to_le_bytes()), None, "none of these is negative");
        assert_eq!(number(2, &[5, 0]), None);
        assert_eq!(number(4, &[]), None, "it cannot be read");
        assert_eq!(one("__kmp_settings", 4, &[2, 0, 0, 0]), Some(IcvValue::Flag(true)));
        assert_eq!(one("__kmp_settings", 4, &[0; 4]), Some(IcvValue::Flag(false)));
        assert_eq!(one("__kmp_stkoffset", 8, &64u64.to_le_bytes()), text("64B"));
    }

    #[test]
    fn hidden_helpers_are_counted_without_their_primary() {
        let helpers = |threads: i32| one("__kmp_hidden_helper_threads_num", 4, &threads.to_le_bytes());
        assert_eq!([9, 1, 0].map(helpers), [8, 0, 0].map(|threads| Some(IcvValue::Number(threads))));
    }

    #[test]
    fn blocktime_has_the_unit_in_which_it_was_given() {
        let blocktime = |value: i32, unit: Option<u8>| {
            let (value, unit) = (value.to_le_bytes(), unit.map(|unit| [unit]));
            let mut variables = vec![("__kmp_dflt_blocktime", 4, &value[..])];
            variables.extend(unit.iter().map(|unit| ("__kmp_blocktime_units", 1, &unit[..])));
            settings(&variables).remove("KMP_BLOCKTIME")
        };
        assert_eq!(blocktime(200_000, Some(b'm')), text("200ms"));
        assert_eq!(blocktime(200, Some(b'u')), text("200us"));
        assert_eq!(blocktime(200, None), text("200ms"), "before LLVM 18");
        for unit in [None, Some(b'm'), Some(b'u')] {
            assert_eq!(blocktime(i32::MAX, unit), text("infinite"));
        }
    }

    #[test]
    fn texts_pairs_and_settings_of_barriers_are_read_as_they_are_written() {
        assert_eq!(one("__kmp_cpuinfo_file", 8, &0x8000u64.to_le_bytes()), text("cpuinfo"));
        assert_eq!(one("__kmp_cpuinfo_file", 8, &[0; 8]), None, "nothing was said");
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        assert_eq!(one("__kmp_spin_backoff_params", 12, &words(&[1, 4096, 100])), text("4096,100"));
        assert_eq!(one("__kmp_spin_backoff_params", 8, &words(&[1, 4096, 100])), None, "it is another struct");
        assert_eq!(one("__kmp_adaptive_backoff_params", 8, &words(&[1, 1024])), text("1,1024"));
        let of_barriers = |bits: &[u32], size| {
            let (gather, release) = (words(bits), words(&[7, 8, 9]));
            let names = ["__kmp_barrier_gather_branch_bits", "__kmp_barrier_release_branch_bits"];
            let found = settings(&[(names[0], size, &gather), (names[1], 12, &release)]);
            ["KMP_PLAIN_BARRIER", "KMP_FORKJOIN_BARRIER", "KMP_REDUCTION_BARRIER"].map(|name| found.get(name).cloned())
        };
        assert_eq!(of_barriers(&[1, 2, 3], 12), [text("1,7"), text("2,8"), text("3,9")]);
        assert_eq!(of_barriers(&[1, 2], 8), [text("1,7"), text("2,8"), None], "two kinds of barriers");
        let patterns = |pattern: u32| {
            let (gather, release) = (words(&[pattern, 0, 0]), words(&[2, 0, 0]));
            let names = ["__kmp_barrier_gather_pattern", "__kmp_barrier_release_pattern"];
            let mut found = settings(&[(names[0], 12, &gather), (names[1], 12, &release)]);
            found.remove("KMP_PLAIN_BARRIER_PATTERN")
        };
        assert_eq!(patterns(1), text("tree,hyper"));
        assert_eq!(patterns(4), text("dist,hyper"));
        assert_eq!(patterns(5), None, "a pattern that is not known");
    }

    #[test]
    fn settings_are_those_of_the_module_of_the_runtime() {
        let mut heap = Heap::new();
        heap.target.modules.push(with_symbols(&[("__kmp_settings", 0x1000, 4)], false));
        heap.target.memory.push((Addr(0x1000), vec![1; 4]));
        assert_eq!(read(&heap.target, Addr(0x1000)).len(), 1);
        assert_eq!(read(&heap.target, Addr(0x3000)).len(), 0);
    }
}
