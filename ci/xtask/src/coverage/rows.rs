//! The mechanisms, in the order of the documents.

use super::Row;
use super::Side::{Impossible, None, Partly, Works};

const STOPS: &str = "libompd/abi/tests/ompd/stops.rs::at_each_stop_the_handles_are_what_ompd_asks_for";
const OWN_SYMBOLS: &str =
    "libompd/abi/tests/ompd/stops.rs::hits_of_ompds_own_symbols_are_those_of_the_equivalent_places";
const PLACES: &str = "libompd/runtime/tests/stops.rs::every_event_has_a_place_in_every_runtime_that_was_fetched";
const GDB_BEGINS: &str = "debugger-plugin/tests/gdb/stops.rs::each_region_begins_once_with_its_size_and_its_function";
const GDB_ENDS: &str = "debugger-plugin/tests/gdb/stops.rs::each_region_ends_once";
const GDB_TASKS: &str = "debugger-plugin/tests/gdb/stops.rs::each_task_begins_and_ends_once";
const ORACLE: &str = "libompd/abi/tests/ompd/oracle.rs::inside_and_outside_agree";
const FILED: &str = "libompd/abi/tests/ompd/tool.rs::what_a_tool_has_filed";
const IDS: &str = "libompd/abi/tests/ompd/contract.rs::native_ids_of_both_kinds_and_of_wrong_size";
const ENUMERATIONS: &str =
    "libompd/abi/tests/ompd/contract.rs::enumerations_come_to_an_end_and_refuse_what_they_do_not_know";
const NO_SWITCH: &str = "libompd/abi/tests/ompd/defects.rs::nothing_depends_on_omp_debug";
const FLAGS: &str = "libompd/abi/tests/ompd/defects.rs::flags_of_frames_are_written";
const SERIALIZED: &str = "libompd/abi/tests/ompd/defects.rs::functions_of_serialized_regions_are_told_and_no_others";
const NO_DEVICE: &str = "libompd/abi/tests/ompd/defects.rs::a_device_is_unsupported_and_a_thread_is_the_hosts";
const VARIABLES: &str = "ompd-inspect/tests/inspect/icvs.rs::values_from_the_environment";
const PLACES_OF_THREADS: &str =
    "ompd-inspect/tests/inspect/icvs.rs::places_of_threads_and_what_the_kernel_makes_of_them";
const ACROSS: &str = "debugger-plugin/tests/gdb/truth.rs::stacks_across_threads";
const GDB_FORK: &str = "debugger-plugin/tests/gdb/following.rs::fork";
const MOVES: &str = "ompd-inspect/tests/inspect/progress.rs::what_gets_on_is_seen_to";
const IDLE: &str = "ompd-inspect/tests/inspect/stacks.rs::idle_threads";
const LOCKS: &str = "libompd/runtime/tests/kmp.rs::locks_of_each_kind";
const QUEUED: &str = "libompd/runtime/tests/gomp_state.rs::queued_tasks_are_listed_with_all_that_is_known_of_them";
const PLUGIN: &str = "libompd/abi/tests/ompd/plugin.rs::llvms_plugin_works_on_a_process_and_on_a_core";
const ADVERTISED: &str = "libompd/abi/tests/ompd/plugin.rs::llvms_plugin_finds_the_library_by_the_companion";
const RUNTIMES: &str = "libompd/runtime/tests/analysis.rs::stripped_libomp";

const PRELOADED: &str = "libompd/companion/tests/companion/activation.rs::preloaded";
const DISABLED: &str = "libompd/companion/tests/companion/activation.rs::disabled";
const LINKED: &str = "libompd/companion/tests/companion/activation.rs::linked_in";
const OFFERED: &str = "libompd/companion/tests/companion/activation.rs::what_the_runtime_offers_is_told";
const TOOLS: &str = "libompd/companion/tests/companion/activation.rs::the_tool_is_named";
const GOES: &str = "libompd/companion/tests/companion/activation.rs::the_runtime_goes_and_comes_again";
const FORK: &str = "libompd/companion/tests/companion/activation.rs::fork";
const RECORDED: &str = "libompd/companion/tests/companion/recording.rs::everything_is_recorded_once";
const CANCELLED: &str = "libompd/companion/tests/companion/recording.rs::cancellation_is_recorded";
const REPORT: &str = "libompd/companion/tests/companion/recording.rs::the_report_knows_more";
const HELD: &str = "libompd/companion/tests/companion/recording.rs::what_is_held_is_remembered";
const VERDICTS: &str = "libompd/companion/tests/companion/recording.rs::verdicts_know_the_owners";
const FILE: &str = "libompd/companion/tests/companion/cores.rs::a_file";
const OFFLOADED: &str = "libompd/companion/tests/companion/offload.rs::what_is_offloaded_is_recorded_once";
const DEVICES: &str = "libompd/companion/tests/companion/offload.rs::devices_are_introduced_loaded_and_finalised";
const NESTED: &str = "ompd-inspect/tests/inspect/history.rs::history_as_a_trace_is_nested";
const TR2: &str = "libompd/companion-tr2/tests/tr2.rs::every_event_is_recorded_in_todays_terms";
const TR2_TOOL: &str = "libompd/companion-tr2/tests/tr2.rs::a_tool_started_by_ompt_tool_records_the_same";
const TR2_FILE: &str = "libompd/companion-tr2/tests/tr2.rs::the_shutdown_writes_the_file";
const TR2_STATES: &str = "libompd/record/src/generation/tests.rs::states_of_tr2";
const DRAFT_STATES: &str = "libompd/record/src/generation/tests.rs::states_of_the_draft_are_todays";
const DRAFT_CALLBACKS: &str = "libompd/record/src/generation/tests.rs::callbacks_of_the_draft";
const VERSION_2: &str = "libompd/record/src/generation/tests.rs::version_2_numbers_answers_only";
const DEVICE_KINDS: &str = "libompd/companion/tests/device/main.rs::every_kind_of_record_is_read";
const DEVICE_ENTRIES: &str = "libompd/companion/tests/device/main.rs::each_entry_point_may_be_missing";
const DEVICE_ONE_BY_ONE: &str = "libompd/companion/tests/device/main.rs::kinds_are_asked_for_one_by_one";
const DEVICE_NATIVE: &str = "libompd/companion/tests/device/main.rs::native_records_are_told_as_far_as_they_are_known";
const DEVICE_BUFFERS: &str = "libompd/companion/tests/device/main.rs::all_is_read_whatever_a_device_does_with_buffers";
const DEVICE_PAUSE: &str = "libompd/companion/tests/device/main.rs::pause_and_start_are_passed_on";
const DEVICE_END: &str = "libompd/companion/tests/device/main.rs::at_the_end_all_is_delivered_and_written_to_the_file";
const DEVICE_CURSORS: &str = "libompd/companion/tests/device/main.rs::cursors_that_never_end_are_left";
const DEVICE_NO_RECORDS: &str = "libompd/companion/tests/device/main.rs::records_that_are_none_are_counted";
const DEVICE_OPERATIONS: &str = "libompd/companion/tests/device/main.rs::records_belong_to_operations_of_the_host";
const DEVICE_UNTRACED: &str =
    "libompd/companion/tests/device/main.rs::a_runtime_that_traces_nothing_is_asked_and_left_alone";
const DEVICE_AGAIN: &str = "libompd/companion/tests/device/main.rs::a_device_goes_and_comes_again";

const UNIQUE: &str = "libompd/companion/tests/companion/entries.rs::numbers_of_the_runtime_are_given_once";
const NUMBER_OF_DEVICES: &str = "libompd/companion/tests/companion/entries.rs::one_device_is_told_where_there_is_none";
const PERMITTED: &str = "libompd/record/src/generation/tests.rs::answers_that_are_permitted";
const TWO_HOOKS: &str = "libompd/companion/tests/companion/hooks.rs::of_two_hooks_the_first_counts";
const ILLEGAL: &str = "libompd/companion/tests/companion/hooks.rs::an_illegal_value_is_told_and_starts_no_tool";
const OPENCL: &str = "libompd/companion/tests/companion/opencl.rs::a_device_that_refuses_to_be_traced_is_listed";
const OLDER_TARGETS: &str =
    "libompd/companion/tests/companion/opencl.rs::older_target_callbacks_are_recorded_with_both_ends";

/// The runtime's variable is found by its name only.
const NAMES_NEEDED: &str = "Where the runtime's variables have names";

/// A runtime has the entry point, and refuses.
const REFUSED: &str = "Intel's runtime refuses all; else with a device simulator";

/// Traces of a device were seen with a simulator only.
const SIMULATED: &str = "with a device simulator: no runtime at hand does its part";

const fn row(
    number: u32,
    documents: &'static str,
    mechanism: &'static str,
    outside: super::Side,
    inside: super::Side,
) -> Row {
    Row { number, documents, mechanism, outside, inside }
}

/// All of them.
pub const ROWS: &[Row] = &[
    row(1, "5.0", "stop where a region begins", Works(&[STOPS, GDB_BEGINS]), Works(&[RECORDED])),
    row(2, "5.0", "stop where a region ends", Works(&[STOPS, GDB_ENDS]), Works(&[RECORDED])),
    row(3, "5.0", "stop where a task begins", Works(&[STOPS, GDB_TASKS]), Works(&[RECORDED])),
    row(4, "5.0", "stop where a task ends", Works(&[STOPS, GDB_TASKS]), Works(&[RECORDED])),
    row(5, "5.0", "switch for the collection of data", Works(&[NO_SWITCH]), Partly("A tool switches it on", &[ORACLE])),
    row(6, "5.0", "symbols of stops: names of C, functions or labels", Works(&[OWN_SYMBOLS, PLACES]), None),
    row(7, "5.0", "handles of threads", Works(&[IDS]), Works(&[ORACLE])),
    row(8, "5.0", "current region of a thread", Works(&[ORACLE]), Works(&[ORACLE])),
    row(9, "5.0", "function of a region", Works(&[GDB_BEGINS, SERIALIZED]), Partly("Where it was opened", &[RECORDED])),
    row(10, "5.0", "size of a team", Works(&[ORACLE]), Works(&[ORACLE])),
    row(11, "5.0", "current task of a thread", Works(&[ORACLE]), Works(&[ORACLE])),
    row(12, "5.0", "function of a task", Works(&[STOPS]), Partly("Where it was created", &[REPORT])),
    row(
        13,
        "TR2, V2, D5, 5.0",
        "frames of a task",
        Partly("Of serialized regions in each other only the innermost", &[FLAGS, ORACLE]),
        Works(&[ORACLE]),
    ),
    row(14, "TR2, V2", "`OMP_TOOL`", Partly(NAMES_NEEDED, &[VARIABLES]), Works(&[DISABLED, ILLEGAL])),
    row(15, "D5", "`OMP_TOOL_LIBRARIES`", Partly(NAMES_NEEDED, &[VARIABLES]), Works(&[RECORDED])),
    row(
        16,
        "D5",
        "hook that starts a tool: linked, preloaded, named",
        Works(&[TOOLS]),
        Works(&[LINKED, PRELOADED, RECORDED]),
    ),
    row(
        17,
        "TR2, V2",
        "older hooks, `ompt_initialize` and `ompt_tool`",
        None,
        Partly(
            "The latter where the runtime says that it has the numbers of TR2: the document of V2 has none. With a program that plays \
             the runtime; docs/old-ompt.md says how to try real ones",
            &[TR2, TR2_TOOL],
        ),
    ),
    row(18, "TR2, V2, D5", "look-up of entry points", None, Works(&[OFFERED])),
    row(19, "TR2, V2, D5", "registration of callbacks, and its answers", None, Works(&[OFFERED, VERSION_2])),
    row(
        20,
        "TR2, V2",
        "asking which callback is registered",
        Partly(
            "Of the companion, by what its block says. Of other tools impossible on stock runtimes: their table of callbacks has no name",
            &[OFFERED],
        ),
        Partly("It is there; the companion knows what it has registered", &[OFFERED]),
    ),
    row(
        21,
        "D5",
        "finaliser",
        Partly("By the companion's block, in the process and in a core", &[GOES]),
        Works(&[FILE]),
    ),
    row(22, "TR2", "event of the runtime's shutdown", Partly("As the row above", &[GOES]), Works(&[FILE, TR2_FILE])),
    row(23, "TR2, V2", "fork", Works(&[GDB_FORK]), Works(&[FORK])),
    row(24, "TR2, D5", "states of threads", Works(&[ENUMERATIONS, ORACLE]), Works(&[ORACLE, TR2_STATES, DRAFT_STATES])),
    row(25, "TR2, V2, D5", "what a thread waits for", Works(&[LOCKS, ORACLE]), Works(&[HELD, REPORT])),
    row(26, "TR2, V2", "numbers of threads, regions and tasks", Works(&[FILED]), Works(&[RECORDED, ORACLE])),
    row(27, "D5", "a word of the tool's with each of them", Works(&[FILED, ORACLE]), Works(&[ORACLE])),
    row(28, "TR2", "events that every runtime has to tell", Works(&[PLACES]), Works(&[OFFERED, TR2])),
    row(
        29,
        "TR2",
        "events for blaming: idle, waiting, letting go",
        Partly("What a thread waits for at a stop, and whether it is idle", &[LOCKS, IDLE, ORACLE]),
        Partly("That a thread is idle is a state, and no event", &[RECORDED, NESTED, TR2]),
    ),
    row(
        30,
        "TR2",
        "events for instrumentation: work, locks, flush, …",
        None,
        Works(&[RECORDED, CANCELLED, OFFLOADED, OLDER_TARGETS, TR2]),
    ),
    row(
        31,
        "TR2",
        "frame of an idle thread",
        Partly("It is shown as idle, without frames", &[IDLE]),
        Impossible("dropped from the interface; the state tells", &[]),
    ),
    row(32, "TR2", "regions around a region", Works(&[ORACLE]), Works(&[ORACLE])),
    row(33, "TR2", "tasks around a task", Works(&[ORACLE]), Works(&[ORACLE])),
    row(34, "TR2, V2", "whose frame is whose on a stack", Works(&[ACROSS]), Works(&[ORACLE])),
    row(
        35,
        "TR2, V2, D5",
        "inquiry from signal handlers, for samplers",
        Partly("By stopping it from outside", &[MOVES]),
        Partly("At a signal of the user's choice", &[ORACLE]),
    ),
    row(36, "TR2, D5", "commands of the program to the tool", Works(&[RECORDED]), Works(&[RECORDED, DEVICE_PAUSE])),
    row(37, "TR2", "which of two hooks of one name counts", None, Works(&[TWO_HOOKS])),
    row(38, "D5", "events that begin and end with one callback", None, Works(&[NESTED])),
    row(39, "D5", "the numbered list of callbacks", None, Works(&[OFFERED, DRAFT_CALLBACKS])),
    row(
        40,
        "D5",
        "kinds of locks of an implementation",
        Partly("The kinds are told apart, and not named", &[LOCKS]),
        Partly("Looked up and not asked", &[OFFERED]),
    ),
    row(
        41,
        "D5",
        "places and processors",
        Works(&[PLACES_OF_THREADS]),
        Partly("Looked up and not asked: they are known from outside", &[OFFERED]),
    ),
    row(
        42,
        "V2, D5",
        "what a thread does on a device",
        Impossible("the runtimes record nothing of it that a debugger could read", &[NO_DEVICE]),
        Impossible("libomp's `ompt_get_target_info` always answers that there is nothing", &[]),
    ),
    row(43, "D5", "devices come and go", Impossible("as the row above", &[NO_DEVICE]), Works(&[DEVICES, DEVICE_AGAIN])),
    row(
        44,
        "D5",
        "look-up of a device's functions",
        None,
        Partly(
            "LLVM's knows none, Intel's all of 5.2; with a device simulator for each that may be missing",
            &[DEVICES, OPENCL, DEVICE_ENTRIES, DEVICE_UNTRACED],
        ),
    ),
    row(45, "5.1", "processors of a device", None, Works(&[OPENCL, DEVICE_ENTRIES])),
    row(46, "5.1", "clock of a device", None, Works(&[OPENCL, DEVICE_ENTRIES])),
    row(
        47,
        "5.1",
        "translation of its times",
        None,
        Partly("Intel's runtime answers 0; else with a device simulator", &[OPENCL, DEVICE_KINDS]),
    ),
    row(48, "5.1", "choice of records", None, Partly(REFUSED, &[OPENCL, DEVICE_ONE_BY_ONE])),
    row(49, "5.1", "choice of native records", None, Partly(REFUSED, &[OPENCL, DEVICE_NATIVE])),
    row(
        50,
        "5.1",
        "start of a trace, and its buffers",
        None,
        Partly("Not where all records are refused; else with a device simulator", &[OPENCL, DEVICE_BUFFERS]),
    ),
    row(51, "5.1", "pause of a trace", None, Partly(SIMULATED, &[DEVICE_PAUSE])),
    row(52, "5.1", "flush of a trace", None, Partly(SIMULATED, &[DEVICE_END])),
    row(53, "5.1", "end of a trace", None, Partly(SIMULATED, &[DEVICE_END])),
    row(54, "5.1", "walk through a buffer", None, Partly(SIMULATED, &[DEVICE_CURSORS])),
    row(55, "5.1", "type of a record", None, Partly(SIMULATED, &[DEVICE_NO_RECORDS])),
    row(56, "5.1, D5", "records of OMPT", None, Partly(SIMULATED, &[DEVICE_KINDS])),
    row(57, "5.1", "native records", None, Partly(SIMULATED, &[DEVICE_NATIVE])),
    row(58, "5.1, D5", "abstract records", None, Partly(SIMULATED, &[DEVICE_NATIVE])),
    row(59, "D5", "which operation of the host a record is of", None, Partly(SIMULATED, &[DEVICE_OPERATIONS])),
    row(60, "D5", "dependences of tasks", Works(&[QUEUED]), Works(&[RECORDED])),
    row(61, "D5", "cancellation, nestable locks, life of locks, flush", None, Works(&[RECORDED, CANCELLED])),
    row(62, "5.0", "where the library for debuggers is", Works(&[PLUGIN]), Works(&[ADVERTISED])),
    row(63, "TR2", "what an implementation has to have at least", Works(&[RUNTIMES]), Works(&[OFFERED])),
    row(
        64,
        "TR2, V2",
        "frames of serialized regions",
        Partly("Of such in each other only the innermost", &[ORACLE]),
        Works(&[ORACLE, VERDICTS]),
    ),
    row(
        65,
        "D5",
        "unique numbers for tools",
        None,
        Partly("They work, and the companion numbers regions and tasks itself", &[UNIQUE, OFFERED]),
    ),
    row(
        66,
        "D5",
        "how many devices there are",
        None,
        Partly("Not asked: runtimes before libiomp5 2026 answer 1 where there is none", &[NUMBER_OF_DEVICES, OFFERED]),
    ),
    row(
        67,
        "D5",
        "which answers a registration may get",
        None,
        Partly("An answer that is not permitted is marked where the user asks for answers", &[PERMITTED, OFFERED]),
    ),
    row(
        68,
        "V2",
        "error for an illegal `OMP_TOOL`",
        None,
        Partly("The runtimes warn, and go on without a tool", &[ILLEGAL]),
    ),
];
