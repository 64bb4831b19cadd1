//! Why a target could not be opened or stopped, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a process or core could not be opened or stopped. One variant for each cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no process with this id (any more).
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The id asked for.
        pid: i32,
    },
    /// The process has ended and only waits for its parent to collect it: it has no memory.
    #[error("process {pid} has ended (zombie): nothing is left to inspect")]
    Zombie {
        /// The id asked for.
        pid: i32,
    },
    /// The process has no user memory.
    #[error("process {pid} is a kernel thread: it has no program to inspect")]
    KernelThread {
        /// The id asked for.
        pid: i32,
    },
    /// The id names different processes in the given procfs and for the kernel's system calls.
    #[error("process {pid} of {} is not the process {pid} of this PID namespace", proc_root.display())]
    OtherNamespace {
        /// The id asked for.
        pid: i32,
        /// The procfs that was to be used.
        proc_root: PathBuf,
    },
    /// A thread that is there cannot be stopped: the kernel says that there is none.
    #[error("thread {tid} of process {pid} could not be stopped ({source}), though it has not ended")]
    Lost {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The process has executed another program since it was opened.
    #[error("process {pid} executed another program while it was looked at")]
    Executed {
        /// The target.
        pid: i32,
    },
    /// No procfs is mounted.
    #[error("procfs is not mounted at {}: nothing is known of processes", proc_root.display())]
    NoProcfs {
        /// Where it was looked for.
        proc_root: PathBuf,
    },
    /// The kernel does not let this process inspect the target.
    #[error("access to process {pid} was denied: {cause}")]
    Denied {
        /// The target.
        pid: i32,
        /// What was found to be the reason.
        cause: DenialCause,
    },
    /// A thread is already traced by another debugger; Linux allows one.
    #[error("process {pid} is already traced by process {tracer} ({name})")]
    OtherTracer {
        /// The target.
        pid: i32,
        /// The process that traces it.
        tracer: i32,
        /// Its `comm` (raw text: escape before printing).
        name: String,
    },
    /// A thread did not stop in time. Everything was released again.
    #[error("thread {tid} of process {pid} did not stop within {waited:?}{}", if *state == 'D' { ": it is in uninterruptible sleep in the kernel (state D)" } else { "" })]
    NotStopped {
        /// The target.
        pid: i32,
        /// The thread that did not stop.
        tid: i32,
        /// State letter of the thread in `/proc/PID/task/TID/stat`, `?` if that could not be read.
        state: char,
        /// How long was waited.
        waited: Duration,
    },
    /// The file is not a core file.
    #[error("{}: {found}", path.display())]
    NotCore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The core file ends before its notes: not even the threads are known.
    #[error("{}: the core file is truncated ({missing} bytes are missing), its threads are not in what is left", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes between the end of the file and the end of its last segment, or of its headers if not even they are whole.
        missing: u64,
    },
    /// The headers of a core file contradict themselves.
    #[error("{}: malformed core file: {why}", path.display())]
    MalformedCore {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The headers of the program itself could not be read, so that the target's machine is unknown.
    #[error("process {pid}: the ELF header of its program could not be read, so its machine is not known")]
    UnknownMachine {
        /// The target.
        pid: i32,
    },
    /// Several looks at what does not change were asked for.
    #[error("--samples needs a running process; this is a core file")]
    Unchanging,
    /// An input/output error that none of the above explains.
    #[error("{what}: {source}")]
    Io {
        /// The operation and its object.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The reason found for a refused access.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DenialCause {
    /// The target belongs to someone else.
    #[error("it runs as uid {theirs}, this program as uid {ours}")]
    OtherUser {
        /// Our user id.
        ours: u32,
        /// The user id of the target that differs from ours.
        theirs: u32,
    },
    /// The Yama security module forbids it (kernel documentation, admin-guide/LSM/Yama).
    #[error("kernel.yama.ptrace_scope is {scope}{}", match scope { 1 => " (only a parent may inspect its children)", 2 => " (only with CAP_SYS_PTRACE)", _ => " (nobody may, until the next boot)" })]
    Yama {
        /// Value of `kernel.yama.ptrace_scope`.
        scope: u32,
    },
    /// A system call filter of our own process is active, as in many containers.
    #[error("this program runs under a seccomp filter and without CAP_SYS_PTRACE")]
    Seccomp,
    /// Same user, no Yama, no filter, no capability: the target has more rights, or has made itself unreadable.
    #[error(
        "it runs as the same user, but has capabilities that this program lacks, or is not dumpable (a set-user-id program, changed capabilities, or prctl), and this program lacks CAP_SYS_PTRACE"
    )]
    NotDumpable,
    /// Refused although this program holds CAP_SYS_PTRACE.
    #[error("although this program holds CAP_SYS_PTRACE: a security module or another user namespace forbids it")]
    Privileged,
}

/// The remedy for what is no target at all.
const NAME_A_TARGET: &str = "name a program that runs by its process id, or a core file by its path";

impl OpenError {
    /// One thing to do about it, where there is one.
    pub fn remedy(&self) -> Option<String> {
        match self {
            OpenError::Denied { cause, .. } => Some(cause.remedy()),
            OpenError::Unchanging => Some("leave out --samples".into()),
            OpenError::OtherTracer { tracer, name, .. } => {
                Some(format!("let {name} (process {tracer}) detach, or stop all threads, or write a core file"))
            }
            OpenError::NotStopped { state: 'D', .. } => {
                Some("try again when the input or output it waits for is done".into())
            }
            OpenError::Executed { .. } | OpenError::Lost { .. } => Some("run the command again".into()),
            OpenError::NoProcfs { proc_root } => Some(format!("mount it: mount -t proc proc {}", proc_root.display())),
            OpenError::NotStopped { .. } => Some("try again, or allow more time with --max-pause".into()),
            OpenError::OtherNamespace { .. } => Some(
                "run in the PID namespace of the target (for a container: with hostPID, or --pid=container:NAME)"
                    .into(),
            ),
            OpenError::Truncated { .. } => {
                Some("write the core again with `ulimit -c unlimited` and enough free disk space".into())
            }
            OpenError::MalformedCore { .. } => Some("write the core again, and check that it is copied whole".into()),
            OpenError::NoSuchProcess { .. } => Some("look its id up again (pgrep -a NAME): it may have ended".into()),
            OpenError::Zombie { .. } => {
                Some("run it again and inspect it before it ends, or let it leave a core file".into())
            }
            OpenError::KernelThread { .. } | OpenError::NotCore { .. } => Some(NAME_A_TARGET.into()),
            OpenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(NAME_A_TARGET.into()),
            OpenError::UnknownMachine { .. } => Some(
                "try again, since it may just have begun another program; if it stays so, inspect a core file".into(),
            ),
            OpenError::Io { .. } => None,
        }
    }
}

impl DenialCause {
    /// One thing to do about it.
    pub fn remedy(&self) -> String {
        match self {
            DenialCause::OtherUser { theirs, .. } => {
                format!("run this program as uid {theirs}, the owner of the process")
            }
            DenialCause::Yama { scope: 1 | 2 } => {
                "as administrator: sysctl -w kernel.yama.ptrace_scope=0 (until the next boot)".into()
            }
            DenialCause::Yama { .. } => {
                "inspect a core file instead: this setting cannot be undone without a reboot".into()
            }
            DenialCause::Seccomp => "start the container with --cap-add=SYS_PTRACE".into(),
            DenialCause::NotDumpable => {
                "give this program the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)".into()
            }
            DenialCause::Privileged => {
                "run it in the user namespace of the target, or inspect a core file instead".into()
            }
        }
    }
}

/// Why a file could not be opened as an ELF file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A directory, device, pipe or socket.
    #[error("{}: not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// Larger than any program.
    #[error("{}: {size} bytes are more than any program has", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Not ELF, or malformed.
    #[error("{}: not a usable ELF file: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}
