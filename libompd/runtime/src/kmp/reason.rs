//! Reasons that only libomp and libiomp5 have.

use ompd_process::Addr;

use crate::model::{Reason, reasons};

reasons! {
    /// Why a value is not known, of this family alone.
    pub(crate) enum Own {
        NotKept: "kmp-not-kept", "where this runtime keeps it is not known";
        DependencesUnreadable: "kmp-dependences-unreadable", "not all dependences of all tasks could be read";
        DependencesBeingEntered: "kmp-dependences-being-entered", "its dependences are just being entered";
        LastSetOnly: "kmp-last-set-only", "the runtime keeps the kind of the last set only";
        MoreIterationsTold: "kmp-more-iterations-told", "compilers tell this runtime of more iterations than there are";
        NoStaticRecord: "kmp-no-static-record", "the runtime has no record of how its iterations are handed out, as of static loops";
        NoSuchThread: "kmp-no-such-thread", "there is no such thread";
        NumberOfOther: "kmp-number-of-other", "its number is another thread's";
        NotWhereListed: "kmp-not-where-listed", "it is not where its team has it";
        GeneratingNotRead: "kmp-generating-not-read", "its generating task, which tells which task group it is in, was not read";
        OwnerChanging: "kmp-owner-changing", "its owner is just taking it or giving it up";
        NoOwner: "kmp-no-owner", "libomp's locks of this kind do not record their owner";
        LockOrCritical: "kmp-lock-or-critical", "the runtime does not record whether it is a lock or a critical";
        NextChunkOfEach: "kmp-next-chunk-of-each", "each member has a next chunk of its own";
        NotInitial: "kmp-not-initial", "it is not known to be the initial thread of its contention group";
        OnePosition: "kmp-one-position", "the source position that the runtime keeps may be of another serialized region";
        ToolDataElsewhere: "kmp-tool-data-elsewhere", "the runtime keeps it elsewhere for serialized regions nested in each other";
        ContentionGroup: "kmp-contention-group", "with which thread its contention group began could not be read";
        NoTaskYet: "kmp-no-task-yet", "the thread has no task yet";
        NoState: "kmp-no-state", "that the runtime keeps a state is not known: no OMPT tool has filed anything with the thread";
        Contradicts: "kmp-contradicts", "it contradicts itself";
        HasHoles: "kmp-has-holes", "it has holes";
        AboutToBeQueued: "kmp-about-to-be-queued", "it depends on nothing any more and is in no queue: it is about to be queued or begun";
        NoPriorities: "kmp-no-priorities", "this release does not keep priorities";
        ChildrenNotCounted: "kmp-children-not-counted", "the runtime does not count children in a team of one thread";
        ChildrenExecutedAtOnce: "kmp-children-executed-at-once", "the runtime executes each task at once (KMP_TASKING=0) and does not count children";
        NoTool: "kmp-no-tool", "no OMPT tool has filed anything with a thread, and without a tool the runtime does not set it";
        ProxyWithoutSettings: "kmp-proxy-without-settings", "the runtime sets no control variables of a proxy task";
        MayBeCancelled: "kmp-may-be-cancelled", "the loop may have been cancelled: cancellation is enabled, and the runtime keeps the record of a cancelled loop";
        CompilersDoNotTell: "kmp-compilers-do-not-tell", "compilers do not tell this runtime";
        DependencesNotRead: "kmp-dependences-not-read", "what it depends on was not read";
        OverAndKept: "kmp-over-and-kept", "it is over, and the runtime keeps it for its children";
        TheTeamUnreadable: "kmp-the-team-unreadable", "the team could not be read";
        NoSerializedFunction: "kmp-no-serialized-function", "the runtime does not maintain the function of a serialized region";
        FunctionNotSet: "kmp-function-not-set", "the runtime has not set the function of the region";
        MicrotaskOfEither: "kmp-microtask-of-either", "whether the region's microtask is the runtime's is not known";
        MicrotaskOfRuntime: "kmp-microtask-of-runtime", "the region's microtask is the runtime's own";
        FunctionNotYet: "kmp-function-not-yet", "the runtime does not know the function of the program yet";
        CallNotMarked: "kmp-call-not-marked", "the compiler did not mark the call, as GCC does not, which makes the same one at a barrier construct and at the end of `single` and static loops";
        NoCallRecorded: "kmp-no-call-recorded", "the runtime recorded no call";
        RecordMayBeOther: "kmp-record-may-be-other", "the record may be of a barrier in a task executed here, and has no source position that would tell (clang records it with -g, GCC does not)";
        WhichOfTwo: "kmp-which-of-two", "which of the two it is is not known";
        MemoryDoesNotTell: "kmp-memory-does-not-tell", "memory does not tell";
        WaitsForUnknown: "kmp-waits-for-unknown", "whom it waits for is not known";
        BarrierUnknown: "kmp-barrier-unknown", "at which barrier it waits is not known";
        SpinsOnUnknown: "kmp-spins-on-unknown", "it does not sleep, and on which word it spins is not recorded";
        OthersWord: "kmp-others-word", "another thread's word may release it";
        NotListedAsWaiter: "kmp-not-listed-as-waiter", "it is queued for a lock, but no lock of the runtime's table lists it as a waiter";
        WaitingTaskUnreadable { task: Addr }: "kmp-waiting-task-unreadable", "the task at {task}, which may be waiting, could not be read";
        TeamOfArrivalUnreadable: "kmp-team-of-arrival-unreadable", "its team, which tells whether it has arrived at a barrier, could not be read";
        UnknownWord: "kmp-unknown-word", "it sleeps on a word of the runtime whose meaning is not known";
        UnmatchedThread: "kmp-unmatched-thread", "which of the process's threads it is is not known";
        GoneThread: "kmp-gone-thread", "the process has no such thread (after fork only the forking thread lives on)";
        SystemCallsUnknown: "kmp-system-calls-unknown", "system calls of this machine are not known";
        InRuntimeCode: "kmp-in-runtime-code", "it is executing the runtime's code (a spinning wait leaves no trace in memory)";
        InLibraryCode: "kmp-in-library-code", "it is in the C library: whether the OpenMP runtime or the program waits there is not known";
        UnequalChunks: "kmp-unequal-chunks", "under this schedule the runtime counts chunks of unequal sizes";
        UnbegunShares: "kmp-unbegun-shares", "members that have not begun the loop have shares of their own";
        SignNotRecorded: "kmp-sign-not-recorded", "the runtime does not record whether the loop variable is signed, or it keeps a member's share only";
        UnitDiffers: "kmp-unit-differs", "it is not read, for its unit differs from release to release";
        RecordUnknown: "kmp-record-unknown", "where this runtime records the wait is not known";
        TeamsUnknown: "kmp-teams-unknown", "where this runtime keeps its teams is not known";
        ThreadUnknown: "kmp-thread-unknown", "the runtime does not know the thread";
        OwnerNotFound { gtid: u64 }: "kmp-owner-not-found", "its owner, thread {gtid} of the runtime, was not found";
        TaskUnreadable: "kmp-task-unreadable", "its task could not be read";
        OfThreadOrTeam: "kmp-of-thread-or-team", "it belongs to a thread or a team";
        ListsOfTeamsUnknown: "kmp-lists-of-teams-unknown", "whether its teams have lists of their own is not known";
        OddItems: "kmp-odd-items", "the list has items that are none";
        PlacesNotRead: "kmp-places-not-read", "which processors its places consist of is not read of this runtime";
        NumberWithoutWord { number: i64 }: "kmp-number-without-word", "the runtime's number for it is {number}, for which there is no word";
        SectionsNotCounted: "kmp-sections-not-counted", "the runtime does not record how many sections there are";
        ImplausibleVariable { bytes: u64 }: "kmp-implausible-variable", "a loop variable of {bytes} bytes";
        NoSuchSchedule { number: u64 }: "kmp-no-such-schedule", "a loop with a schedule that is told as {number}";
        MembersDisagree { shared: Addr }: "kmp-members-disagree", "members do not agree on the loop at {shared}";
        ImplausibleNest { count: u64 }: "kmp-implausible-nest", "a doacross loop of {count} nested loops";
        ImplausibleRanges { ranges: Vec<u64> }: "kmp-implausible-ranges", "a doacross loop of {ranges:?} iterations";
        TooManyIterations { count: u64 }: "kmp-too-many-iterations", "{count} iterations are too many to look at";
        TooManyMembers { members: u32 }: "kmp-too-many-members", "it claims {members} members";
        QueueOfMember { member: usize, why: Box<Reason> }: "kmp-queue-of-member", "the queue of member {member}: {why}";
        NodeNotNamed { task: Addr, node: Addr }: "kmp-node-not-named", "the task at {task} does not name its node at {node}";
        UnknownDependenceKind { number: u64 }: "kmp-unknown-dependence-kind", "its kind is told as {number}";
        TooManyDependences: "kmp-too-many-dependences", "too many dependences; the rest is not read";
        TooManyNodes { most: usize }: "kmp-too-many-nodes", "more than {most} tasks with dependences; the rest is not read";
        EntryWithoutTask { entry: Addr }: "kmp-entry-without-task", "the entry at {entry} of a list of tasks has no task";
        EndlessList { entry: Addr, next: Addr }: "kmp-endless-list", "a list of tasks leads from the entry at {entry} back to {next}";
        EndlessTaskgroups { around: Addr }: "kmp-endless-taskgroups", "the chain of task groups around {around} has no end";
        LockTableContradicts { table: Addr }: "kmp-lock-table-contradicts", "the table of locks at {table} contradicts itself";
        TooManyLocks { most: u64 }: "kmp-too-many-locks", "more than {most} locks; the rest is not looked at";
        NoSuchWaiter { lock: Addr, gtid: u32 }: "kmp-no-such-waiter", "the lock at {lock} names gtid {gtid} as a waiter, which does not exist";
        UnknownFlagKind { kind: u64 }: "kmp-unknown-flag-kind", "it sleeps on a flag of kind {kind}";
        LetGoUnknown: "kmp-let-go-unknown", "all have arrived, and whether it is being let go is not known";
    }
}

impl From<Own> for Reason {
    fn from(own: Own) -> Reason {
        Reason::OfFamily(own.code(), own.to_string())
    }
}
