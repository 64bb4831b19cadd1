//! Reasons that only libgomp has.

use ompd_process::Addr;

use crate::model::{Reason, reasons};

reasons! {
    /// Why a value is not known, of this family alone.
    #[derive(Copy)]
    pub(crate) enum Own {
        CompilerKnowsVersion: "gomp-compiler-knows-version", "what libgomp implements only its compiler says";
        OnlyLastPosted: "gomp-only-last-posted", "libgomp keeps only what was posted last, for each member or chunk";
        InnerLoops: "gomp-inner-loops", "libgomp does not record how long the inner loops are";
        NeitherLoopNorQueue { record: Addr }: "gomp-neither-loop-nor-queue", "at {record} is neither a doacross loop nor a queue of turns";
        DoacrossMembers { count: u64 }: "gomp-doacross-members", "a doacross loop of {count} members";
        NoOwner: "gomp-no-owner", "libgomp does not record who holds a lock, other than of nest locks";
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
        Unsettled: "gomp-unsettled", "it is on its way into or out of a region, or thread 0 of its team was left behind by a fork";
        PoolUnreadable: "gomp-pool-unreadable", "its pool, which tells whether it is idle, could not be read";
        EndlessPriorities: "gomp-endless-priorities", "its tree of priorities leads back to itself";
        LinksContradict { at: Addr }: "gomp-links-contradict", "its links contradict each other at {at}";
        NotWaitingToRun { task: Addr }: "gomp-not-waiting-to-run", "the task at {task} in it is not one that waits to be run";
        DoesNotWait { task: Addr }: "gomp-does-not-wait", "the task at {task} depends on others and does not wait for them";
        PredecessorNotListed: "gomp-predecessor-not-listed", "the task it depends on is not listed";
        TooManyEntries: "gomp-too-many-entries", "too many entries in all queues together; the rest is not read";
        ImplicitTasksUnknown: "gomp-implicit-tasks-unknown", "which tasks are implicit ones of which team is not known";
        NotMet { parent: Addr }: "gomp-not-met", "the task at {parent} was not met";
        NoRecordOfTask: "gomp-no-record-of-task", "libgomp keeps no record of this task";
        GeneratingFinished: "gomp-generating-finished", "its generating task has finished, or is an initial task without a record";
        TargetTask: "gomp-target-task", "a target task: it has no host function";
        NoUndeferredFunction: "gomp-no-undeferred-function", "libgomp does not store the function of an undeferred task";
        ClauseNotKept: "gomp-clause-not-kept", "libgomp does not keep this clause";
        InitialOrImplicit: "gomp-initial-or-implicit", "whether it is an initial task or the implicit one of a team is not known";
        OnDevice: "gomp-on-device", "it has begun, on a device";
        NotCounted: "gomp-not-counted", "not counted";
        TaskgroupUnreadable: "gomp-taskgroup-unreadable", "the taskgroup around it could not be read";
        AwaitsTooMany: "gomp-awaits-too-many", "the team barrier awaits more threads than the team has";
        WaitsOnMachine: "gomp-waits-on-machine", "waits are not recognised on this machine yet";
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
    }
}

impl From<Own> for Reason {
    fn from(own: Own) -> Reason {
        Reason::OfFamily(own.code(), own.to_string())
    }
}
