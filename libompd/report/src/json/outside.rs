//! What threads do outside of OpenMP.

use std::time::Duration;

use ompd_inspection::outside::{self as found, Communicator, Described, OutsideWait, Partner, Read, RwHolder};
use ompd_process::live::{self, DescriptorKind, Socket};
use ompd_runtime::Origin;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Known, hex};

/// What a thread does outside of OpenMP.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outside {
    /// The library function that the program has called and that has not returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The same in words.
    pub text: String,
}

/// A call of a library function.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OutsideCall")]
pub struct Call {
    /// The function, as `usleep` or `MPI_Recv`.
    pub function: String,
    /// The file of the program that calls it, as the compiler wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function of the program that calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// What a thread waits for outside of OpenMP. What was not found out is absent.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "OutsideWait")]
pub struct Wait {
    /// `mutex`, `condition`, `future`, `semaphore`, `read-write lock`, `pthread barrier`, `initialization by another thread`, `futex`,
    /// `shared futex`, `join`, `mpi`, `device`, `device library`, `descriptor`, `poll`, `child`, `sleep`, `kernel` (nothing interrupts it), `system call`, `stopped`.
    pub kind: &'static str,
    /// The system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call: Option<String>,
    /// The function of MPI, as C has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<String>,
    /// The function in which it waits for a device, as `cuStreamSynchronize`, or in which it waits for something in a device's library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_call: Option<String>,
    /// Of a call of MPI: `MPI_COMM_WORLD`, `MPI_COMM_SELF`, or the handle of another communicator, which means something in this process
    /// alone. Found in the code of the call and the variables that it names: right unless these have changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communicator: Option<Known<String>>,
    /// Of a call of MPI: the rank in the communicator that messages go to or come from; -1: any; -2: none. Found as `communicator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partner: Option<Known<i64>>,
    /// Of a call of MPI: the tag of the message; -1: any. Found as `communicator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Known<i64>>,
    /// Address of the word that it sleeps on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Known<String>>,
    /// What the source calls the object with that word, as `queue.mutex`, by symbols and debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Kernel thread id of the thread that holds the mutex, or the read-write lock for writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Known<i32>>,
    /// How many threads hold the read-write lock for reading. The C library does not record which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Known<u32>>,
    /// Kernel thread id of the thread whose end it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Known<i32>>,
    /// The descriptors it waits for: the first of many.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub descriptors: Vec<Descriptor>,
    /// How many descriptors those are in all, of a `poll`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_count: Option<usize>,
    /// The id of the process whose end it waits for, if it is one and not any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// That process, or all children.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub children: Vec<Child>,
    /// How long it waits at most, or sleeps, from when it began, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Known<f64>>,
    /// How much of that was left, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Known<f64>>,
    /// The function of the kernel that it sleeps in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Of a process that a signal has stopped: what the thread was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Box<Wait>>,
}

/// A descriptor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Descriptor {
    /// Its number.
    pub number: i32,
    /// What it refers to: `pipe`, `fifo`, `socket`, `terminal`, `file`, `eventfd`, `epoll`, `timerfd`, `signalfd` or `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// What procfs calls it: of files the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Of a connection, the own address; of a socket of the machine its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Of a connection, the address of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Who has the other end of a pipe or connection open, as far as it was found.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub other_ends: Vec<Holder>,
    /// True if all processes that have the other end are listed. Absent: other ends were not searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_ends_complete: Option<bool>,
}

/// A process that has the other end of a pipe or connection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Holder {
    /// Its id.
    pub pid: i32,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its descriptor.
    pub descriptor: i32,
    /// It may be read from.
    pub reads: bool,
    /// It may be written to.
    pub writes: bool,
}

/// A process that the process has made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Child {
    /// Its id.
    pub pid: i32,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// State letter of proc_pid_stat(5); `Z`: it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// `None` of a thread that is in no call and waits for nothing.
pub fn of(outside: &found::Outside) -> Option<Outside> {
    let call = outside.call.as_ref().map(call);
    let wait = outside.wait.as_ref().map(|of| Wait { object: outside.object.clone(), ..wait(of) });
    (call.is_some() || wait.is_some()).then(|| Outside { call, wait, text: crate::outside::words(outside) })
}

fn call(call: &found::Call) -> Call {
    let site = call.site.as_ref();
    Call {
        function: call.function.to_string(),
        file: site.and_then(|site| site.file.as_deref()).map(str::to_owned),
        line: site.and_then(|site| site.line),
        caller: site.and_then(|site| site.function.as_deref()).map(str::to_owned),
    }
}

fn read<T, U>(read: &Option<Read<T>>, convert: impl FnOnce(&T) -> U) -> Option<Known<U>> {
    read.as_ref().map(|read| Known::Value { value: convert(&read.value), origin: read.origin.word() })
}

fn wait(wait: &OutsideWait) -> Wait {
    let of = |kind| Wait { kind, ..Wait::default() };
    let seconds = |time: &Duration| time.as_secs_f64();
    match wait {
        OutsideWait::Mutex { word, owner } => {
            Wait { word: read(word, |at| hex(*at)), owner: read(owner, |lwp| *lwp), ..of("mutex") }
        }
        OutsideWait::Condition { word, left } => {
            Wait { word: read(word, |at| hex(*at)), left: read(left, seconds), ..of("condition") }
        }
        OutsideWait::RwLock { word, holder, left } => {
            let (owner, readers) = match holder.map(|holder| holder.value) {
                Some(RwHolder::Writer(lwp)) => (Some(lwp), None),
                Some(RwHolder::Readers(count)) => (None, Some(count)),
                None => (None, None),
            };
            Wait {
                word: read(word, |at| hex(*at)),
                left: read(left, seconds),
                owner: owner.and_then(|lwp| read(holder, |_| lwp)),
                readers: readers.and_then(|count| read(holder, |_| count)),
                ..of("read-write lock")
            }
        }
        OutsideWait::Object { kind, word, left } => {
            Wait { word: read(word, |at| hex(*at)), left: read(left, seconds), ..of(kind.word()) }
        }
        OutsideWait::Join { thread } => Wait { thread: read(thread, |lwp| *lwp), ..of("join") },
        OutsideWait::Mpi { function, arguments } => Wait {
            mpi: Some(function.to_string()),
            communicator: arguments.communicator.map(communicator),
            partner: arguments.partner.map(partner),
            tag: arguments.tag.map(|tag| by_code(tag.map(i64::from).unwrap_or(-1))),
            ..of("mpi")
        },
        OutsideWait::DeviceLibrary { function } => {
            Wait { device_call: Some(function.to_string()), ..of("device library") }
        }
        OutsideWait::Device { function } => Wait { device_call: Some(function.to_string()), ..of("device") },
        OutsideWait::Descriptor { call, on } => {
            Wait { system_call: Some(call.to_string()), descriptors: vec![descriptor(on)], ..of("descriptor") }
        }
        OutsideWait::Poll { call, on, count, limit } => Wait {
            system_call: Some(call.to_string()),
            descriptors: on.iter().map(descriptor).collect(),
            descriptor_count: *count,
            length: limit.map(|limit| Known::Value { value: seconds(&limit), origin: Origin::Registers.word() }),
            ..of("poll")
        },
        OutsideWait::Child { call, pid, children } => Wait {
            system_call: Some(call.to_string()),
            pid: *pid,
            children: children.iter().flatten().map(child).collect(),
            ..of("child")
        },
        OutsideWait::Sleep { length, left } => {
            Wait { length: read(length, seconds), left: read(left, seconds), ..of("sleep") }
        }
        OutsideWait::SharedFutex { word } => Wait {
            word: Some(Known::Value { value: hex(*word), origin: Origin::Registers.word() }),
            ..of("shared futex")
        },
        OutsideWait::KernelWait { call, on, channel } => Wait {
            system_call: Some(call.to_string()),
            descriptors: on.iter().map(descriptor).collect(),
            channel: channel.clone(),
            ..of("kernel")
        },
        OutsideWait::SystemCall { name } => Wait { system_call: Some(name.to_string()), ..of("system call") },
        OutsideWait::Stopped { within, .. } => {
            Wait { within: within.as_ref().map(|within| Box::new(self::wait(within))), ..of("stopped") }
        }
        _ => of("other"),
    }
}

fn by_code<T>(value: T) -> Known<T> {
    Known::Value { value, origin: Origin::Code.word() }
}

fn communicator(communicator: Communicator) -> Known<String> {
    by_code(match communicator {
        Communicator::World => "MPI_COMM_WORLD".to_owned(),
        Communicator::Own => "MPI_COMM_SELF".to_owned(),
        Communicator::Other(handle) => format!("{handle:#x}"),
    })
}

fn partner(partner: Partner) -> Known<i64> {
    by_code(match partner {
        Partner::Rank(rank) => i64::from(rank),
        Partner::Any => -1,
        Partner::None => -2,
    })
}

fn descriptor(on: &Described) -> Descriptor {
    let (local, peer) = match &on.socket {
        Some(Socket::Tcp { local, peer, .. }) => (Some(local.to_string()), peer.map(|peer| peer.to_string())),
        Some(Socket::Unix { path, .. }) => (path.clone(), None),
        _ => (None, None),
    };
    let kind = |kind: &DescriptorKind| match kind {
        DescriptorKind::Pipe => "pipe",
        DescriptorKind::Fifo => "fifo",
        DescriptorKind::Socket => "socket",
        DescriptorKind::Terminal => "terminal",
        DescriptorKind::File => "file",
        DescriptorKind::Event(_) => "eventfd",
        DescriptorKind::Epoll(_) => "epoll",
        DescriptorKind::Timer => "timerfd",
        DescriptorKind::Signals => "signalfd",
        _ => "other",
    };
    let holder = |of: &live::Holder| Holder {
        pid: of.pid,
        name: of.name.clone(),
        descriptor: of.descriptor,
        reads: of.reads,
        writes: of.writes,
    };
    Descriptor {
        number: on.number,
        kind: on.descriptor.as_ref().map(|of| kind(&of.kind)),
        link: on.descriptor.as_ref().map(|of| of.link.clone()),
        local,
        peer,
        other_ends: on.ends.iter().flat_map(|ends| &ends.holders).map(holder).collect(),
        other_ends_complete: on.ends.as_ref().map(|ends| ends.complete),
    }
}

fn child(child: &live::Child) -> Child {
    Child { pid: child.pid, name: child.name.clone(), state: child.state.map(String::from) }
}
