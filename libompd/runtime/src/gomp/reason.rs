//! Reasons that only libgomp has.

use ompd_process::Addr;

use crate::model::{Reason, reasons};

reasons! {
    /// Why a value is not known, of this family alone.
    pub(crate) enum Own {
        VersionNotPrinted: "gomp-version-not-printed", "the text in which libgomp prints it was not found in its file";
        OnlyLastPosted: "gomp-only-last-posted", "libgomp keeps only what was posted last, for each member or chunk";
        InnerLoops: "gomp-inner-loops", "libgomp does not record how long the inner loops are";
        NeitherLoopNorQueue { record: Addr }: "gomp-neither-loop-nor-queue", "at {record} is neither a doacross loop nor a queue of turns";
        DoacrossMembers { count: u64 }: "gomp-doacross-members", "a doacross loop of {count} members";
        NoOwner: "gomp-no-owner", "libgomp does not record who holds a lock, other than of nest locks; ompd-inspect run --record does";
        LockOrCritical: "gomp-lock-or-critical", "locks and named criticals look alike in libgomp";
        FreeLock { waiters: usize }: "gomp-free-lock", "the lock is free, and one of {waiters} gets it";
        LockUnreadable: "gomp-lock-unreadable", "the lock could not be read";
        SingleMayHaveIt: "gomp-single-may-have-it", "a `single` with `copyprivate` may have the record of an earlier loop";
        AtUnknownBarrier: "gomp-at-unknown-barrier", "those who are through are at the barrier, of which nothing is known";
        OrderedNotRecorded: "gomp-ordered-not-recorded", "whether a loop has `ordered` is not recorded";
        ChunkNoMultiple: "gomp-chunk-no-multiple", "a chunk is no multiple of the step";
        NoChunkAsked: "gomp-no-chunk-asked", "no chunk size was asked for: each member has one share";
        NoChunkSize { chunk: i64 }: "gomp-no-chunk-size", "{chunk} is no size of a chunk";
        NotReady: "gomp-not-ready", "the dynamic linker has not made this libgomp ready yet";
        ArrayTooLong { array: Addr, count: u64 }: "gomp-array-too-long", "an array at {array} claims {count} entries";
        NoRegionFunction: "gomp-no-region-function", "libgomp does not store the function of a region";
        NoPositions: "gomp-no-positions", "libgomp does not store source positions";
        NoOmpt: "gomp-no-ompt", "libgomp has no OMPT";
        SetAside: "gomp-set-aside", "it executes a target region on the host, for which the runtime has put that aside";
        Unsettled: "gomp-unsettled", "it is on its way into or out of a region, or thread 0 of its team was left behind by a fork";
        PoolUnreadable: "gomp-pool-unreadable", "its pool, which tells whether it is idle, could not be read";
        EndlessPriorities: "gomp-endless-priorities", "its tree of priorities leads back to itself";
        LinksContradict { at: Addr }: "gomp-links-contradict", "its links contradict each other at {at}";
        NotWaitingToRun { task: Addr }: "gomp-not-waiting-to-run", "the task at {task} in it is not one that waits to be run";
        DoesNotWait { task: Addr }: "gomp-does-not-wait", "the task at {task} depends on others and does not wait for them";
        PredecessorNotListed: "gomp-predecessor-not-listed", "the task it depends on is not listed";
        ImplicitTasksUnknown: "gomp-implicit-tasks-unknown", "which tasks are implicit ones of which team is not known";
        NotMet { parent: Addr }: "gomp-not-met", "the task at {parent} was not met";
        NoRecordOfTask: "gomp-no-record-of-task", "libgomp keeps no record of this task";
        GeneratingFinished: "gomp-generating-finished", "its generating task has finished, or is an initial task without a record";
        TargetTask: "gomp-target-task", "a target task: it has no host function";
        NoUndeferredFunction: "gomp-no-undeferred-function", "libgomp does not store the function of an undeferred task";
        ClauseNotKept: "gomp-clause-not-kept", "libgomp does not keep this clause";
        InitialOrImplicit: "gomp-initial-or-implicit", "whether it is an initial task or the implicit one of a team is not known";
        NotCounted: "gomp-not-counted", "not counted";
        TaskgroupUnreadable: "gomp-taskgroup-unreadable", "the taskgroup around it could not be read";
        AwaitsTooMany: "gomp-awaits-too-many", "the team barrier awaits more threads than the team has";
        WaitsOnMachine: "gomp-waits-on-machine", "waits are not recognised on this machine yet";
        CallOfEither: "gomp-call-of-either", "whether libgomp or the program makes the system call is not known without a stop";
        CodeOfEither: "gomp-code-of-either", "whether the code it executes is libgomp's or the program's own is not known";
        NotInWaitLoop: "gomp-not-in-wait-loop", "it is executing libgomp code, and not in the middle of a loop that waits for a word";
        VariableOfEither: "gomp-variable-of-either", "it sleeps on a variable that may be libgomp's or the program's own";
        VariableOfRuntime: "gomp-variable-of-runtime", "it sleeps on a variable of libgomp, perhaps that of a critical or atomic";
        UnknownWord: "gomp-unknown-word", "it sleeps on a word of libgomp whose meaning is not known";
        Woken: "gomp-woken", "it has been woken, to execute a task or to look again";
        Cancelled: "gomp-cancelled", "the region has been cancelled, and not every barrier ends with that";
        EndsUnknown: "gomp-ends-unknown", "what ends a wait inside the runtime is not known";
        NotFound: "gomp-not-found", "where this runtime keeps it is not known";
        NoOmpd: "gomp-no-ompd", "libgomp has no OMPD";
        SameCall: "gomp-same-call", "GCC makes the same call at a barrier construct and at the end of `single` and static loops";
        ThreadsNotInSymbols: "gomp-threads-not-in-symbols", "where this libgomp, which is built into the program, keeps its threads is not in its symbol table";
        ThreadsNotInCode: "gomp-threads-not-in-code", "where this libgomp keeps its threads could not be found in its code";
        NoThreadPointer: "gomp-no-thread-pointer", "its thread pointer is not known, so its OpenMP data cannot be found";
        IcvsNotFound: "gomp-icvs-not-found", "the control variables of its task could not be found";
        OfThread: "gomp-of-thread", "it belongs to a thread";
        DevicesNotLookedFor: "gomp-devices-not-looked-for", "the runtime has not looked for devices yet";
        InitialNotKept: "gomp-initial-not-kept", "this runtime does not keep what it was";
        ListNotInitial: "gomp-list-not-initial", "the list is not what the runtime began with";
        PartitionOutside { count: u64, length: u32, first: u32 }: "gomp-partition-outside", "of {count} places its partition has {length} from {first} on";
        NoSuchPlace { place: u32 }: "gomp-no-such-place", "there is no place {place}";
        ImplausiblePlaces: "gomp-implausible-places", "its table of places is implausible";
        SetSizeUnknown: "gomp-set-size-unknown", "how large a set of processors is does not show where there is one place";
        TooManyProcessors: "gomp-too-many-processors", "its places have too many processors";
        LoopForMemory: "gomp-loop-for-memory", "GCC starts such a loop of one iteration also to get memory for `scan` and reductions of tasks";
        LoopBeginForgotten: "gomp-loop-begin-forgotten", "libgomp forgets where a loop began once iterations have been handed out";
        TurnOfNoMember { number: u32 }: "gomp-turn-of-no-member", "it is the turn of number {number}";
        CountersTooWide: "gomp-counters-too-wide", "the counters of its nest do not fit into one number, and libgomp writes them one after the other";
        ImplausibleShifts { shifts: Vec<u32> }: "gomp-implausible-shifts", "counters of a doacross loop are shifted by {shifts:?}";
        ChunkSizesDiffer { size: u64, asked: u64 }: "gomp-chunk-sizes-differ", "chunks of a doacross loop are of {size} and of {asked} iterations";
        TooManyChunks { skipped: u64 }: "gomp-too-many-chunks", "{skipped} chunks are not looked at: they are too many";
        NoSuchKind { kind: u64 }: "gomp-no-such-kind", "it is of kind {kind}, which no libgomp has";
        KindInQueue { task: Addr, kind: u64 }: "gomp-kind-in-queue", "the task at {task} in it is of kind {kind}";
        UnknownDependenceKind { kind: u64 }: "gomp-unknown-dependence-kind", "{kind} is no kind of dependence";
        SomeTeamUnreadable: "gomp-some-team-unreadable", "some team could not be read";
        QueuesChanging: "gomp-queues-changing", "a thread is changing the queues";
        SuspendedUnknown { why: Box<Reason> }: "gomp-suspended-unknown", "which tasks are suspended under some other is not known: {why}";
        NotAllCounted { why: Box<Reason> }: "gomp-not-all-counted", "libgomp keeps no count, and not all could be counted: {why}";
    }
}

impl From<Own> for Reason {
    fn from(own: Own) -> Reason {
        Reason::OfFamily(own.code(), own.to_string())
    }
}
