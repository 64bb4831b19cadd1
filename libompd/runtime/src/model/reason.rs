//! Why values are not known: an enum with its data, a code that stays, and the words, all in one place.
//!
//! What only one family has to say is in a `reason.rs` of the family's folder, made by the same macro.

use std::fmt;

use ompd_layout::Mismatch;
use ompd_process::{Addr, ReadError};
use ompt_record::read::NoBlock;

use super::Owner;

/// Declares reasons: name and data, code, words.
macro_rules! reasons {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $variant:ident $({ $($field:ident: $type:ty),* })?: $code:literal, $words:literal; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis enum $name {
            $( #[doc = $words] $variant $({ $( #[doc = "What the words name."] $field: $type ),* })?, )*
        }

        impl $name {
            /// Each code with its words.
            $vis const CODES: &[(&'static str, &'static str)] = &[$( ($code, $words) ),*];

            /// The code, which stays when the words change.
            $vis fn code(&self) -> &'static str {
                match self {
                    $( $name::$variant { .. } => $code, )*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $( $name::$variant $({ $($field),* })? => write!(out, $words), )*
                }
            }
        }
    };
}
pub(crate) use reasons;

reasons! {
    /// Reasons that every family may have.
    #[derive(Copy)]
    pub enum Common {
        NotLookedFor: "not-looked-for", "not looked for";
        NotRead: "not-read", "not read";
        NotLookedAt: "not-looked-at", "not looked at";
        NotRecorded: "not-recorded", "not recorded";
        NotReadOfThisRuntime: "not-read-of-this-runtime", "it is not read of this runtime";
        NotKnownOfThisRuntime: "not-known-of-this-runtime", "not known for this runtime";
        LayoutDoubtful: "layout-doubtful", "whether the layout fits this process is not certain";
        IdleWithoutTeam: "idle-without-team", "an idle worker is in no team";
        IdleWithoutTask: "idle-without-task", "an idle worker executes no task";
        IdleWithoutEither: "idle-without-either", "an idle worker is in no team and executes no task";
        OnItsWay: "on-its-way", "it is on its way into or out of a region";
        OnItsWayWithoutTask: "on-its-way-without-task", "it is on its way into or out of its region";
        TeamUnreadable: "team-unreadable", "its team could not be read";
        TeamAtUnreadable { addr: Addr }: "team-at-unreadable", "the team at {addr} could not be read";
        TaskAtUnreadable { task: Addr }: "task-at-unreadable", "the task at {task} could not be read";
        TaskWasNotRead: "task-was-not-read", "its task was not read";
        ActiveLevelUnknown: "active-level-unknown", "the active level of its team is not known";
        EndlessTeams: "endless-teams", "the chain of enclosing teams has no end";
        EndlessGeneratingTasks: "endless-generating-tasks", "the chain of generating tasks has no end";
        EndlessTaskgroups: "endless-taskgroups", "the chain of taskgroups has no end";
        ImplausibleTeamSize: "implausible-team-size", "the number of threads of a team is implausible";
        LevelsContradict { own: u32, outer: u32 }: "levels-contradict", "its level of nesting reads {own}, and that around it {outer}";
        ImplausibleValue { value: i64, most: i64 }: "implausible-value", "it reads {value}, and no machine has more than {most}";
        InSignalHandler: "in-signal-handler", "it executes a signal handler: what it waited for before does not tell what it waits for now";
        InOtherCall: "in-other-call", "it is in a system call by which the runtime does not wait: a signal handler or a tool may have made the call";
        MayBeExecuted: "may-be-executed", "a thread whose task is not known may be executing it";
        InitialTaskWithoutFunction: "initial-task-without-function", "an initial task has no function of its own";
        OneShareEach: "one-share-each", "each member has one share";
        LoneTeam: "lone-team", "a team of one thread does not wait";
        FunctionNowhere { addr: Addr }: "function-nowhere", "its record names the function {addr}, and nothing is mapped there";
        NoPosition: "no-position", "the runtime recorded no source position";
        NoPositionCompiled: "no-position-compiled", "the compiler recorded no source position (clang does with -g, GCC does not)";
        RegionNotBegun: "region-not-begun", "the region has not begun";
        CallNotSeen: "call-not-seen", "the call that opened the region was not seen";
        StacksContradict: "stacks-contradict", "the stacks of its members contradict each other";
        MemoryReused: "memory-reused", "its team has ended, and the memory of that is a team that begins";
        OnlyStackTells: "only-stack-tells", "only its stack tells of this wait";
        OnlyStackTellsNotWhetherOver: "only-stack-tells-not-whether-over", "only its stack tells of this wait, not whether it is over";
        OtherBarrier: "other-barrier", "the runtime's record is of another barrier, in a task it executed here";
        NotRecordedByRuntime: "not-recorded-by-runtime", "the runtime does not record it";
        StateInTaskyield: "state-in-taskyield", "it is in taskyield";
        InTaskyield: "in-taskyield", "it is in taskyield, which waits for nothing, and may be executing no task";
        NoSingleState { wait: &'static str }: "no-single-state", "no single OMPT state stands for a wait for {wait}";
        SelfCheckFailed { failing: &'static str }: "self-check-failed", "self-check failed: {failing}; nothing of it is shown";
        MoreThanRead: "more-than-read", "more structs than were read";
        TooManyTasks { most: usize }: "too-many-tasks", "more than {most} tasks; the rest is not shown";
        WholeNumber { slot: &'static str, value: u64 }: "whole-number", "{slot} holds {value:#x}";
        NegativeNumber { slot: &'static str, value: i64 }: "negative-number", "{slot} holds {value}";
        OutsideStruct { slot: &'static str }: "outside-struct", "{slot} does not fit into its struct";
        DirectionOfLoop: "direction-of-loop", "it goes downwards with a step upwards";
        LevelUnknown: "level-unknown", "the level of nesting is not known";
        OwnerNotFound: "owner-not-found", "the task that has set it was not found: it has ended, or could not be read";
        UntiedTaskMayHaveIt: "untied-task-may-have-it", "the thread that set it is recorded; an untied task may have it, and be on another thread now";
        OwnShares: "own-shares", "each member computes its own share";
        TooManyEntries: "too-many-entries", "too many entries in all queues together; the rest is not read";
        ListTooLong { items: u64 }: "list-too-long", "the list has {items} items, which is not believed";
        ListMayNotCount: "list-may-not-count", "threads are not bound, and a list that says otherwise of inner regions need not count";
    }
}

reasons! {
    /// Reasons why it is not known where the value of a control variable comes from.
    pub enum NoSource {
        ValueUnknown: "source-value-unknown", "the value itself is not known";
        EnvironmentUnknown { why: String }: "source-environment-unknown", "the environment is not known: {why}";
        LevelUnknown: "source-level-unknown", "the environment is not known: at which level of nesting the thread is is not known";
        OtherInitial { variable: &'static str }: "source-other-initial", "{variable} says something else, but the runtime began with this";
        EffectUnknown { variable: &'static str }: "source-effect-unknown", "{variable} is set, and what it does to this value is not known";
        OtherValue { variable: &'static str }: "source-other-value", "{variable} is set, and says something else";
        NoVariable: "source-no-variable", "no variable that the process was started with says so, but the runtime began with it: the program may have set a variable before";
        DefaultUnknown: "source-default-unknown", "what the runtime has where nothing is said is not known";
    }
}

reasons! {
    /// Trouble met on the way: what is said of a thing as a whole, and not of one value.
    pub enum Trouble {
        EndlessTeamsCut: "endless-teams-cut", "the chain of enclosing teams has no end; cut off here";
        ThreadsMissing { all: u64, found: u64 }: "threads-missing", "the runtime counts {all} threads, {found} were found";
        ThreadTableEnds { fault: ReadError }: "thread-table-ends", "the table of threads ends early: {fault}";
        DescriptorsUnknown: "descriptors-unknown", "where the C library of this machine has its descriptors of threads is not known, and so is which of the kernel's threads is which of the runtime's";
        NumberOutsideTeam { number: u32 }: "number-outside-team", "it is number {number} of a team of fewer threads";
        KindsLeftOut { count: u64 }: "kinds-left-out", "{count} queued tasks are of more kinds than are listed; they are left out";
        KindsCounted { count: u64 }: "kinds-counted", "{count} more of many kinds are not told one by one";
        TasksMissing { missing: u64, count: u32 }: "tasks-missing", "{missing} of its {count} unfinished tasks were not found";
        BodiesDiffer: "bodies-differ", "its members execute different functions as the body of the region: it is not shown";
        OwnersDiffer { lwp: i32, owner: Option<Owner> }: "owners-differ", "the companion says that thread {lwp} has it, the runtime: {owner:?}";
        CompanionUnreadable { why: NoBlock<ReadError> }: "companion-unreadable", "{why}";
        CompanionNamespace { pid: u64 }: "companion-namespace", "it calls the process {pid}, as in a PID namespace of its own, and without pointers of threads its threads cannot be told from each other: whose the locks are is not known";
        FileMissing { path: String, tried: String }: "file-missing", "the file of {path} is not at hand ({tried})";
        LayoutsDiffer { how: Box<Mismatch> }: "layouts-differ", "{how}";
        LayoutIncomplete { count: usize }: "layout-incomplete", "{count} values of the layout are not known; `ompd-inspect doctor` says what that costs";
        MemoryContradicts { broken: FailedCheck }: "memory-contradicts", "it contradicts itself: {broken}";
        LayoutRefused { name: String, broken: FailedCheck }: "layout-refused", "{name} is not used: {broken}. What it alone knows is shown as unknown";
        Target { what: String }: "target", "{what}";
        Woke { lwp: i32 }: "woke", "thread {lwp} slept in a system call that a stop would end early, so it was not stopped; it woke while the others were read. The values may not be of one moment, and no verdict is given. Run the command again";
        Ran { lwps: Vec<i32> }: "ran", "threads {lwps:?} ran while they were read, and nothing was stopped (--pause never). The values may be of different moments, so no verdict is given. Run the command again, or without --pause never";
        NoSymbols: "no-symbols", "it has no symbols: an OpenMP runtime that is built into it cannot be recognised. Its separate debug file would do (--debug-dir)";
    }
}

/// A check of what was read, which failed as often as it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedCheck {
    /// What is wrong, in words.
    pub identity: &'static str,
    /// How often it failed.
    pub count: usize,
}

impl fmt::Display for FailedCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedCheck { identity, count } = self;
        write!(f, "{identity} ({count} of {count} looked at)")
    }
}

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No origin says where the value lies.
    NoLayout(&'static str),
    /// It is known where the value lies, but not how many bytes it has.
    NoWidth(&'static str),
    /// The bytes could not be read.
    Unreadable(ReadError),
    /// There are no registers of the thread: what the target says of that.
    NoRegisters(String),
    /// It is not known where the value of a control variable comes from.
    NoSource(NoSource),
    /// One that every family may have.
    Common(Common),
    /// Trouble with a thing as a whole.
    Trouble(Trouble),
    /// One that only one family has: its code and its words.
    OfFamily(&'static str, String),
}

impl Reason {
    /// The codes of those that are not in a table, with their words.
    pub const CODES: &[(&'static str, &'static str)] = &[
        ("layout-unknown", "where this runtime keeps {value} is not known"),
        ("width-unknown", "how wide {value} is in this runtime is not known"),
        ("unreadable", "cannot read {count} bytes at {address}: {cause}"),
        ("registers-unknown", "{why}"),
    ];

    /// The code, which stays when the words change.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::NoLayout(_) => "layout-unknown",
            Reason::NoWidth(_) => "width-unknown",
            Reason::Unreadable(_) => "unreadable",
            Reason::NoRegisters(_) => "registers-unknown",
            Reason::NoSource(source) => source.code(),
            Reason::Common(common) => common.code(),
            Reason::Trouble(trouble) => trouble.code(),
            Reason::OfFamily(code, _) => code,
        }
    }

    /// True if the reason is that nobody knows the layout, and not that something went wrong.
    pub(crate) fn is_layout(&self) -> bool {
        matches!(self, Reason::NoLayout(_) | Reason::NoWidth(_))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoLayout(value) => write!(f, "where this runtime keeps {value} is not known"),
            Reason::NoWidth(value) => write!(f, "how wide {value} is in this runtime is not known"),
            Reason::Unreadable(fault) => fault.fmt(f),
            Reason::Common(common) => common.fmt(f),
            Reason::Trouble(trouble) => trouble.fmt(f),
            Reason::NoSource(source) => source.fmt(f),
            Reason::NoRegisters(text) | Reason::OfFamily(_, text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Reason {}

impl From<Common> for Reason {
    fn from(common: Common) -> Reason {
        Reason::Common(common)
    }
}

impl From<Trouble> for Reason {
    fn from(trouble: Trouble) -> Reason {
        Reason::Trouble(trouble)
    }
}

impl From<NoSource> for Reason {
    fn from(source: NoSource) -> Reason {
        Reason::NoSource(source)
    }
}

impl From<ReadError> for Reason {
    fn from(fault: ReadError) -> Reason {
        Reason::Unreadable(fault)
    }
}

impl From<&Reason> for Reason {
    fn from(reason: &Reason) -> Reason {
        reason.clone()
    }
}

#[cfg(test)]
mod tests {
    use ompd_process::ReadFault;

    use super::*;
    use crate::family;

    #[test]
    fn each_kind_of_reason_has_its_code_listed() {
        let kinds: [Reason; 7] = [
            Reason::NoLayout("x"),
            Reason::NoWidth("x"),
            Reason::NoRegisters("x".to_owned()),
            ReadError { addr: Addr(1), len: 1, why: ReadFault::Unmapped }.into(),
            Common::NotRead.into(),
            NoSource::DefaultUnknown.into(),
            Trouble::NoSymbols.into(),
        ];
        for reason in kinds {
            assert!(family::reasons().iter().any(|(code, _)| *code == reason.code()), "{}", reason.code());
        }
    }

    #[test]
    fn words_have_the_data_in_them() {
        let broken = FailedCheck { identity: "a task is of no kind", count: 2 };
        let contradicts = Reason::from(Trouble::MemoryContradicts { broken });
        assert_eq!(contradicts.to_string(), "it contradicts itself: a task is of no kind (2 of 2 looked at)");
        let source = Reason::from(NoSource::OtherValue { variable: "OMP_STACKSIZE" });
        assert_eq!(source.to_string(), "OMP_STACKSIZE is set, and says something else");
    }
}
