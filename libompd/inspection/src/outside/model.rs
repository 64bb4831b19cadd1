//! What is known of a thread outside of OpenMP.

use std::sync::Arc;
use std::time::Duration;

use ompd_process::Addr;
use ompd_process::live::{Child, Descriptor, Holder, Socket};
use ompd_runtime::Origin;
use ompd_stack::Language;

/// What one thread does outside of OpenMP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Kernel thread id.
    pub lwp: i32,
    /// The library function it is in.
    pub call: Option<Call>,
    /// What it waits for.
    pub wait: Option<OutsideWait>,
    /// What the source of the program calls the object that it waits on (text of the target), as `queue.mutex`.
    pub object: Option<String>,
}

/// A library function that the program has called and that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name as the source has it (text of the target).
    pub function: Arc<str>,
    /// The innermost code of the program, which called it.
    pub site: Option<CallSite>,
}

/// Code of the program. All texts are the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// File, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Function; of the body of a construct the one that contains the construct.
    pub function: Option<Arc<str>>,
    /// Which kind of code it is.
    pub language: Language,
}

/// A value that was read, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

/// What a thread waits for. What was not found out is `None`. System calls and their arguments come from the registers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutsideWait {
    /// A mutex of the C library, or of C++.
    Mutex {
        /// The word that it sleeps on, which is the first of the mutex.
        word: Option<Read<Addr>>,
        /// The kernel thread id of the thread that holds it.
        owner: Option<Read<i32>>,
    },
    /// A condition variable.
    Condition {
        /// The word in it that it sleeps on.
        word: Option<Read<Addr>>,
        /// How long it still waits at most.
        left: Option<Read<Duration>>,
    },
    /// A read-write lock of the C library; by the functions on the stack.
    RwLock {
        /// The word in it that it sleeps on.
        word: Option<Read<Addr>>,
        /// Who holds it.
        holder: Option<Read<RwHolder>>,
        /// How long it still waits at most.
        left: Option<Read<Duration>>,
    },
    /// Something else at which threads of the process wait for each other.
    Object {
        /// What it is; by the functions on the stack.
        kind: ObjectKind,
        /// The word in it that it sleeps on.
        word: Option<Read<Addr>>,
        /// How long it still waits at most.
        left: Option<Read<Duration>>,
    },
    /// The end of a thread.
    Join {
        /// Its kernel thread id.
        thread: Option<Read<i32>>,
    },
    /// Other processes of an MPI program; by the function on the stack.
    Mpi {
        /// The function, as C has it (`MPI_Recv`).
        function: Arc<str>,
        /// What it was given.
        arguments: MpiArguments,
    },
    /// A device; by the function on the stack.
    Device {
        /// The outermost function that waits for a device, as its library names it (`cuStreamSynchronize`).
        function: Arc<str>,
    },
    /// What a device, or another thread, does for it in the library of the device's maker; by the function on the stack.
    DeviceLibrary {
        /// The outermost function of that library, as it names it (`cuMemcpyDtoHAsync_v2`).
        function: Arc<str>,
    },
    /// Input or output.
    Descriptor {
        /// The system call.
        call: Arc<str>,
        /// On what.
        on: Described,
    },
    /// One of several descriptors.
    Poll {
        /// The system call.
        call: Arc<str>,
        /// The first of them.
        on: Vec<Described>,
        /// How many there are; `None` if that could not be read.
        count: Option<usize>,
        /// How long it waits at most, from when it began.
        limit: Option<Duration>,
    },
    /// The end of a process that this one has made, or another change of it.
    Child {
        /// The system call.
        call: Arc<str>,
        /// The id of the process, if it is one and not any of them.
        pid: Option<i32>,
        /// The process, or all of them; `None` if they could not be found.
        children: Option<Vec<Child>>,
    },
    /// Time.
    Sleep {
        /// For how long it sleeps.
        length: Option<Read<Duration>>,
        /// How much of that was left at the stop, or a moment later.
        left: Option<Read<Duration>>,
    },
    /// A word of memory that other processes may have as well.
    SharedFutex {
        /// Its address.
        word: Addr,
    },
    /// Something in the kernel that nothing interrupts (state D).
    KernelWait {
        /// The system call.
        call: Arc<str>,
        /// On what, if it is a call on a descriptor.
        on: Option<Described>,
        /// The function of the kernel it sleeps in; `None` if the kernel does not say.
        channel: Option<String>,
    },
    /// The end of a system call of which nothing more is known.
    SystemCall {
        /// Its name, or `number N` where it has none.
        name: Arc<str>,
    },
    /// To be allowed to continue: the process is stopped by a signal (SIGSTOP, Ctrl-Z), or by a process that traces it.
    Stopped {
        /// What the thread was in.
        within: Option<Box<OutsideWait>>,
        /// The name of the process that traces it (raw text: escape before printing).
        by: Option<String>,
    },
}

impl OutsideWait {
    /// A word of the object in the process that the thread waits on: of a mutex, a condition variable and the like.
    pub fn word(&self) -> Option<Addr> {
        match self {
            OutsideWait::Mutex { word, .. }
            | OutsideWait::Condition { word, .. }
            | OutsideWait::RwLock { word, .. }
            | OutsideWait::Object { word, .. } => word.map(|word| word.value),
            OutsideWait::Stopped { within, .. } => within.as_ref()?.word(),
            _ => None,
        }
    }
}

/// The arguments of an MPI call, from the code that calls it and the current registers and memory. They are right unless the
/// variables passed have changed since. Of `MPI_Wait`, those of the receive that it waits for. What is unknown, or is no argument of the function, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MpiArguments {
    /// The communicator.
    pub communicator: Option<Communicator>,
    /// The process in it that messages go to or come from.
    pub partner: Option<Partner>,
    /// The tag of the message; `None` in it: any.
    pub tag: Option<Option<u32>>,
}

/// A communicator of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Communicator {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    Own,
    /// Another one, by its handle: a number or address of this process alone.
    Other(u64),
}

/// A process that messages go to or come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// Its rank in the communicator.
    Rank(u32),
    /// `MPI_ANY_SOURCE`.
    Any,
    /// `MPI_PROC_NULL`.
    None,
}

/// Who holds a read-write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RwHolder {
    /// The thread with this kernel thread id, for writing.
    Writer(i32),
    /// So many threads, for reading; which is not recorded.
    Readers(u32),
}

/// Things that threads of a process wait at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectKind {
    /// The value of a future of C++.
    Future,
    /// A semaphore.
    Semaphore,
    /// A barrier of the C library.
    Barrier,
    /// The end of what is done once.
    Once,
    /// A word of memory (futex(2)); what it is part of is not known.
    Futex,
}

impl ObjectKind {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Future => "future",
            ObjectKind::Semaphore => "semaphore",
            ObjectKind::Barrier => "pthread barrier",
            ObjectKind::Once => "initialization by another thread",
            ObjectKind::Futex => "futex",
        }
    }
}

/// A descriptor, and what it is. Origin of the number: registers or memory; of the rest: procfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its number.
    pub number: i32,
    /// What it refers to.
    pub descriptor: Option<Descriptor>,
    /// Of a socket, its addresses.
    pub socket: Option<Socket>,
    /// Of a pipe or connection, who has the other end. `None`: that was not looked for.
    pub ends: Option<Ends>,
}

/// Who has the other end of a pipe or connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// All that were found.
    pub holders: Vec<Holder>,
    /// False if there may be others.
    pub complete: bool,
}
