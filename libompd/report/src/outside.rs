//! What a thread does outside of OpenMP, in words.

use std::collections::BTreeSet;
use std::time::Duration;

use ompd_inspection::outside::{
    CallSite, Communicator, Described, Ends, MpiArguments, Outside, OutsideWait, Partner, RwHolder,
};
use ompd_process::live::{Child, DescriptorKind, Holder, Socket};

use crate::escape::escape;
use crate::{short, words};

/// Processes and descriptors that are named in one sentence.
const NAMED: usize = 4;

/// In a few words, as `usleep, app.c:10, in solve`; `running` of a thread that is in no call and waits for nothing.
pub fn words(outside: &Outside) -> String {
    let site = outside.call.as_ref().and_then(|call| call.site.as_ref());
    let time = outside.wait.as_ref().and_then(time);
    let parts: Vec<String> = what(outside).into_iter().chain(site.and_then(place)).chain(time).collect();
    if parts.is_empty() { "running".to_owned() } else { parts.join(", ") }
}

/// The same without the place in the program, as `usleep`; `None` of a thread that is in no call and waits for nothing.
pub fn what(outside: &Outside) -> Option<String> {
    let call = outside.call.as_ref().map(|call| escape(&short::name(&call.function)));
    match (&outside.wait, call) {
        (Some(wait), call) => Some(waiting(wait, call.as_deref(), outside.object.as_deref())),
        (None, Some(call)) => Some(format!("running in {call}")),
        (None, None) => None,
    }
}

/// The processes it waits for; none if these are not other ones, or not known.
fn awaited(outside: &Outside) -> Vec<i32> {
    fn processes(wait: &OutsideWait) -> Vec<i32> {
        match wait {
            OutsideWait::Child { pid: Some(pid), .. } => vec![*pid],
            OutsideWait::Child { children: Some(children), .. } => match children[..] {
                [ref one] => vec![one.pid],
                _ => Vec::new(),
            },
            OutsideWait::Descriptor { on, .. } => {
                let holders = on.ends.as_ref().map(|ends| &ends.holders[..]).unwrap_or_default();
                if holders.iter().any(|holder| holder.own) {
                    return Vec::new();
                }
                let mut pids: Vec<i32> = holders.iter().map(|holder| holder.pid).collect();
                pids.sort_unstable();
                pids.dedup();
                if pids.len() > NAMED { Vec::new() } else { pids }
            }
            OutsideWait::Stopped { within, .. } => within.as_deref().map(processes).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
    outside.wait.as_ref().map(processes).unwrap_or_default()
}

/// What to do about it; `None` where nothing special is known. `live`: the processes that it names are there.
pub fn fix(outside: &Outside, live: bool) -> Option<String> {
    let wait = match outside.wait.as_ref()? {
        OutsideWait::Stopped { within, .. } => within.as_deref()?,
        wait => wait,
    };
    match wait {
        OutsideWait::Mpi { function, .. } => Some(format!(
            "Inspect the other ranks too: {} returns when another rank has done its part.",
            escape(function)
        )),
        OutsideWait::Device { function } | OutsideWait::DeviceLibrary { function } => {
            let (shows, debugs) = match &**function {
                name if name.starts_with("cu") => ("`nvidia-smi`", "`cuda-gdb`"),
                name if name.starts_with("h") => ("`rocm-smi`", "`rocgdb`"),
                _ => ("a monitor", "a debugger for the device"),
            };
            Some(format!("See with {shows} whether the device computes, and with {debugs} what."))
        }
        _ => match &awaited(outside)[..] {
            [] => None,
            _ if !live => None,
            [pid] => Some(format!("See what process {pid} does: `ompd-inspect {pid}`.")),
            pids => {
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                Some(format!("See what processes {} do: `ompd-inspect {}`.", words::and(&pids), pids.join(" ")))
            }
        },
    }
}

/// What to do about a wait for a descriptor whose other end only this process has, where no thread is known to go on; `None` for other
/// waits.
pub fn own_end(outside: &Outside) -> Option<String> {
    let Some(OutsideWait::Descriptor { on, .. }) = &outside.wait else { return None };
    let holders = &on.ends.as_ref().filter(|ends| ends.complete)?.holders;
    if holders.is_empty() || !holders.iter().all(|holder| holder.own) {
        return None;
    }
    let numbers: BTreeSet<i32> = holders.iter().map(|holder| holder.descriptor).collect();
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let (noun, it) = if numbers.len() == 1 { ("descriptor", "it") } else { ("descriptors", "them") };
    let what = match (holders.iter().any(|holder| holder.reads), holders.iter().any(|holder| holder.writes)) {
        (false, true) => "write to",
        (true, false) => "read from",
        _ => "use",
    };
    Some(format!(
        "Let another thread {what} {noun} {}, or close {it}: only this process has the other end.",
        words::and(&numbers)
    ))
}

/// `app.c:10, in solve`.
fn place(site: &CallSite) -> Option<String> {
    let file = site.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    let line = file.zip(site.line).map(|(file, line)| format!("{}:{line}", escape(file)));
    let function = site.function.as_deref().map(|function| format!("in {}", escape(&short::name(function))));
    let parts: Vec<String> = line.into_iter().chain(function).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How long it still waits.
fn time(wait: &OutsideWait) -> Option<String> {
    match wait {
        OutsideWait::Sleep { left: Some(left), .. } => Some(format!("{} left", span(left.value))),
        OutsideWait::Sleep { length: Some(length), .. } => Some(format!("for {}", span(length.value))),
        OutsideWait::Condition { left: Some(left), .. }
        | OutsideWait::RwLock { left: Some(left), .. }
        | OutsideWait::Object { left: Some(left), .. } => Some(format!("for {} more at most", span(left.value))),
        OutsideWait::Poll { limit: Some(limit), .. } => Some(format!("for {} at most", span(*limit))),
        OutsideWait::Stopped { within, .. } => time(within.as_ref()?),
        _ => None,
    }
}

/// `1000 s`, `2.5 s`, `20 ms`.
fn span(span: Duration) -> String {
    let (value, unit) = match span {
        span if span < Duration::from_millis(1) => (span.as_secs_f64() * 1e6, "µs"),
        span if span < Duration::from_secs(1) => (span.as_secs_f64() * 1e3, "ms"),
        span => (span.as_secs_f64(), "s"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// ` from rank 3, tag 7, of MPI_COMM_WORLD`: what a call of MPI was given.
fn given(function: &str, arguments: &MpiArguments) -> String {
    let direction = match function {
        "MPI_Wait" => "for a message from",
        _ if function.ends_with("send") || function == "MPI_Send" => "to",
        _ => "from",
    };
    let partner = arguments.partner.map(|partner| match partner {
        Partner::Rank(rank) => format!(" {direction} rank {rank}"),
        Partner::Any => format!(" {direction} any rank"),
        Partner::None => format!(" {direction} no process"),
    });
    let tag = arguments.tag.map(|tag| match tag {
        Some(tag) => format!(" with tag {tag}"),
        None => " with any tag".to_owned(),
    });
    // Numbers of another communicator are not those that ranks of the job have.
    if let (Some(Partner::Rank(rank)), Some(Communicator::Other(handle))) = (arguments.partner, arguments.communicator)
    {
        return format!(" {direction} rank {rank} of communicator {handle:#x}{}", tag.unwrap_or_default());
    }
    let communicator = arguments.communicator.map(|communicator| match communicator {
        Communicator::World => " in MPI_COMM_WORLD".to_owned(),
        Communicator::Own => " in MPI_COMM_SELF".to_owned(),
        Communicator::Other(handle) => format!(" in communicator {handle:#x}"),
    });
    [partner, tag, communicator].into_iter().flatten().collect()
}

/// What it waits for. `function` is what the program called, `object` is the source's name of what it waits on.
fn waiting(wait: &OutsideWait, function: Option<&str>, object: Option<&str>) -> String {
    let of = object.map(|object| format!(" of {}", escape(object))).unwrap_or_default();
    let named = |otherwise: &str| function.unwrap_or(otherwise).to_owned();
    match wait {
        OutsideWait::Mutex { owner, .. } => {
            let held = owner.map(|owner| format!(" (held by LWP {})", owner.value)).unwrap_or_default();
            match function {
                // Libraries have mutexes of their own.
                Some(function) if !is_lock(function) => format!("waits for a mutex{of}{held} in {function}"),
                _ => format!("{}{of}{held}", named("waits for a mutex")),
            }
        }
        OutsideWait::Condition { .. } => format!("{}{of}", named("waits for a condition variable")),
        OutsideWait::RwLock { holder, .. } => {
            let held = match holder.map(|holder| holder.value) {
                Some(RwHolder::Writer(lwp)) => format!(" (held for writing by LWP {lwp})"),
                Some(RwHolder::Readers(count)) => {
                    format!(" (held for reading by {}; which is not recorded)", words::count(count as usize, "thread"))
                }
                None => String::new(),
            };
            format!("{}{of}{held}", named("waits for a read-write lock"))
        }
        OutsideWait::Object { kind, .. } => format!("{}{of}", named(&format!("waits for a {}", kind.word()))),
        OutsideWait::Join { thread: Some(thread) } => format!("{} of LWP {}", named("join"), thread.value),
        OutsideWait::Join { thread: None } => named("join"),
        OutsideWait::Mpi { function: of, arguments } => format!("{}{}", named(&escape(of)), given(of, arguments)),
        OutsideWait::DeviceLibrary { function } => format!("waits in {} of a device's library", escape(function)),
        OutsideWait::Device { function } => format!("waits for a device in {}", escape(function)),
        OutsideWait::Descriptor { call, on } => format!("{} of {}", called(function, call), described(on)),
        OutsideWait::Poll { call, on, count, .. } if on.is_empty() => match count {
            Some(0) => format!("{} of no descriptors", called(function, call)),
            _ => called(function, call),
        },
        OutsideWait::Poll { call, on, count, .. } => {
            let first: Vec<String> = on.iter().take(NAMED).map(described).collect();
            let more = match count {
                Some(count) if *count > first.len() => format!(" and {} more", count - first.len()),
                None => " and more".to_owned(),
                _ => String::new(),
            };
            format!("{} of {}{more}", called(function, call), first.join(", "))
        }
        OutsideWait::Child { call, pid, children } => {
            let children = children.as_deref();
            match (pid, children) {
                (Some(pid), Some([child])) => {
                    format!("{} for process {pid} (child{})", called(function, call), about(child, ", "))
                }
                (Some(pid), _) => format!("{} for process {pid}", called(function, call)),
                (None, Some(children)) => {
                    let named = children.iter().take(NAMED);
                    let mut named: Vec<String> =
                        named.map(|child| format!("process {}{}", child.pid, about(child, " "))).collect();
                    if children.len() > NAMED {
                        named.push(format!("{} more", children.len() - NAMED));
                    }
                    let of = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
                    format!("{} for any child{of}", called(function, call))
                }
                (None, None) => format!("{} for any child", called(function, call)),
            }
        }
        OutsideWait::Sleep { .. } => named("sleeps"),
        OutsideWait::SharedFutex { .. } => format!("{}, in memory shared with other processes", named("futex")),
        OutsideWait::KernelWait { call, on, channel } => {
            let on = on.as_ref().map(|on| format!(" of {}", described(on))).unwrap_or_default();
            let channel = channel.as_ref().map(|name| format!(": {}", escape(name))).unwrap_or_default();
            format!("{}{on}, cannot be interrupted in the kernel{channel}", called(function, call))
        }
        OutsideWait::SystemCall { name } => match function {
            Some(function) => function.to_owned(),
            None => format!("in system call {}", escape(name)),
        },
        OutsideWait::Stopped { within, by } => {
            let within = within.as_ref().map(|wait| waiting(wait, function, object)).or(function.map(str::to_owned));
            let within = within.map(|what| format!(", in {what}")).unwrap_or_default();
            match by {
                Some(by) => format!("held by {}{within}", escape(by)),
                None => format!("stopped by a signal{within}"),
            }
        }
        _ => named("waits"),
    }
}

/// True if a function is one that acquires a mutex, by its name.
fn is_lock(function: &str) -> bool {
    ["pthread_mutex_", "mtx_"].iter().any(|prefix| function.starts_with(prefix)) || function.ends_with("lock")
}

/// The function, and the system call it is in if that is not the same.
fn called(function: Option<&str>, call: &str) -> String {
    let call = escape(call);
    match function {
        None => call,
        // `recv` makes the call `recvfrom`, `waitpid` the call `wait4`.
        Some(function) if call.starts_with(function) || function.starts_with("wait") => function.to_owned(),
        Some(function) => format!("{function}, {call}"),
    }
}

/// The name of a child, and that it has ended.
fn about(child: &Child, before: &str) -> String {
    let ended = if child.state == Some('Z') { ", ended" } else { "" };
    let name = child.name.as_deref().map(|name| format!("{before}{}", escape(name))).unwrap_or_default();
    format!("{name}{ended}")
}

/// `pipe 3 (its other end: process 4712 feed, writer)`.
fn described(of: &Described) -> String {
    let number = of.number;
    let Some(descriptor) = &of.descriptor else { return format!("descriptor {number}") };
    let mut about = Vec::new();
    let kind = match &descriptor.kind {
        DescriptorKind::Pipe => "pipe",
        DescriptorKind::Fifo => "named pipe",
        DescriptorKind::Socket => "socket",
        DescriptorKind::Terminal => "terminal",
        DescriptorKind::File => "file",
        DescriptorKind::Event(_) => "eventfd",
        DescriptorKind::Epoll(_) => "epoll",
        DescriptorKind::Timer => "timerfd",
        DescriptorKind::Signals => "signalfd",
        _ => "descriptor",
    };
    match &descriptor.kind {
        DescriptorKind::Fifo | DescriptorKind::Terminal | DescriptorKind::File => about.push(escape(&descriptor.link)),
        DescriptorKind::Event(Some(count)) => about.push(format!("count {count}")),
        DescriptorKind::Epoll(watched) => {
            about.push(format!("watches {}", crate::words::count(watched.len(), "descriptor")))
        }
        DescriptorKind::Other => about.push(escape(&descriptor.link)),
        _ => {}
    }
    match &of.socket {
        Some(Socket::Tcp { local, peer: Some(peer), .. }) => about.push(format!("TCP {local} to {peer}")),
        Some(Socket::Tcp { local, peer: None, .. }) => about.push(format!("TCP {local}, listens")),
        Some(Socket::Unix { path: Some(path), .. }) => about.push(escape(path)),
        _ => {}
    }
    about.extend(of.ends.as_ref().map(ends));
    if about.is_empty() { format!("{kind} {number}") } else { format!("{kind} {number} ({})", about.join("; ")) }
}

/// Who has the other end.
fn ends(ends: &Ends) -> String {
    let mut named: Vec<String> = Vec::new();
    for holder in &ends.holders {
        let text = end(holder);
        if !named.contains(&text) {
            named.push(text);
        }
    }
    match (named.len(), ends.complete) {
        (0, true) => "no process has its other end".to_owned(),
        (0, false) => "who has its other end is unknown".to_owned(),
        (1, _) => format!("its other end: {}", named[0]),
        (count, _) => {
            let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
            named.truncate(NAMED);
            format!("its other ends: {}{more}", named.join(" and "))
        }
    }
}

fn end(holder: &Holder) -> String {
    let who = match (&holder.name, holder.own) {
        (_, true) => format!("this process, descriptor {}", holder.descriptor),
        (Some(name), false) => format!("process {} {}", holder.pid, escape(name)),
        (None, false) => format!("process {}", holder.pid),
    };
    match (holder.reads, holder.writes) {
        (true, false) => format!("{who}, reader"),
        (false, true) => format!("{who}, writer"),
        _ => who,
    }
}

#[cfg(test)]
mod tests {
    use ompd_inspection::outside::{Call, ObjectKind, Read};
    use ompd_process::Addr;
    use ompd_process::live::Descriptor;
    use ompd_runtime::Origin;
    use ompd_stack::Language;

    use super::*;

    /// A call of `function` in a file and function whose names are commands to a terminal.
    fn of(function: Option<&str>, wait: OutsideWait) -> Outside {
        let site = CallSite {
            file: Some("/src/a\u{1b}[2J.c".into()),
            line: Some(7),
            function: Some("get\n".into()),
            language: Language::Compiled,
        };
        let call = function.map(|function| Call { function: function.into(), site: Some(site) });
        Outside { lwp: 1, call, wait: Some(wait), object: None }
    }

    fn holder(pid: i32, writes: bool) -> Holder {
        Holder { pid, own: false, name: Some("fe\ted".to_owned()), descriptor: 4, reads: !writes, writes }
    }

    fn pipe(holders: Vec<Holder>, complete: bool) -> Described {
        let descriptor = Descriptor { number: 3, kind: DescriptorKind::Pipe, link: "pipe:[1]".to_owned() };
        let ends = Some(Ends { holders, complete });
        Described { number: 3, descriptor: Some(descriptor), socket: None, ends }
    }

    #[test]
    fn waits_in_words_command_no_terminal() {
        const PLACE: &str = "a\\u{1b}[2J.c:7, in get\\n";
        let read = |on: Described| OutsideWait::Descriptor { call: "read".into(), on };
        let from = of(Some("read"), read(pipe(vec![holder(4712, true), holder(4712, true)], true)));
        assert_eq!(words(&from), format!("read of pipe 3 (its other end: process 4712 fe\\ted, writer), {PLACE}"));
        assert_eq!(awaited(&from), [4712]);
        let two = of(Some("fgets"), read(pipe(vec![holder(1, true), holder(2, true)], true)));
        assert_eq!(
            what(&two).as_deref(),
            Some("fgets, read of pipe 3 (its other ends: process 1 fe\\ted, writer and process 2 fe\\ted, writer)")
        );
        assert_eq!(fix(&two, true).as_deref(), Some("See what processes 1 and 2 do: `ompd-inspect 1 2`."));
        assert_eq!(fix(&two, false), None);
        let nobody = of(None, read(pipe(Vec::new(), false)));
        assert_eq!(words(&nobody), "read of pipe 3 (who has its other end is unknown)");
        let kernel = OutsideWait::KernelWait {
            call: "read".into(),
            on: Some(Described { number: 5, descriptor: None, socket: None, ends: None }),
            channel: Some("nfs_wait".to_owned()),
        };
        let text = "read of descriptor 5, cannot be interrupted in the kernel: nfs_wait";
        assert_eq!(what(&of(Some("read"), kernel)).as_deref(), Some(text));
        let asleep = OutsideWait::Sleep {
            length: Some(Read { value: Duration::from_millis(1500), origin: Origin::Registers }),
            left: None,
        };
        assert_eq!(words(&of(Some("usleep"), asleep.clone())), format!("usleep, {PLACE}, for 1.5 s"));
        let stopped = OutsideWait::Stopped { within: Some(Box::new(asleep.clone())), by: None };
        assert_eq!(what(&of(Some("usleep"), stopped)).as_deref(), Some("stopped by a signal, in usleep"));
        let futex = OutsideWait::Object { kind: ObjectKind::Futex, word: None, left: None };
        assert_eq!(words(&of(None, futex)), "waits for a futex");
        let shared = OutsideWait::SharedFutex { word: Addr(8) };
        assert_eq!(words(&of(None, shared)), "futex, in memory shared with other processes");
    }

    #[test]
    fn children_are_named_and_looked_at_next() {
        let child = |pid, state| Child { pid, name: Some("solver".to_owned()), state: Some(state) };
        let wait = |pid, children| OutsideWait::Child { call: "wait4".into(), pid, children };
        let one = of(Some("waitpid"), wait(Some(25), Some(vec![child(25, 'S')])));
        assert_eq!(what(&one).as_deref(), Some("waitpid for process 25 (child, solver)"));
        assert_eq!(awaited(&one), [25]);
        let any = of(Some("system"), wait(None, Some(vec![child(25, 'Z'), child(26, 'R')])));
        let text = "system, wait4 for any child (process 25 solver, ended, process 26 solver)";
        assert_eq!((what(&any).as_deref(), awaited(&any)), (Some(text), Vec::new()));
        let unknown = of(None, wait(None, None));
        assert_eq!(what(&unknown).as_deref(), Some("wait4 for any child"));
    }

    fn read<T>(value: T) -> Option<Read<T>> {
        Some(Read { value, origin: Origin::Registers })
    }

    /// A descriptor without more.
    fn plain(number: i32) -> Described {
        Described { number, descriptor: None, socket: None, ends: None }
    }

    #[test]
    fn every_wait_is_said_with_and_without_the_function_that_waits() {
        let mpi = |function: &str, partner, tag, communicator| OutsideWait::Mpi {
            function: function.into(),
            arguments: MpiArguments { communicator: Some(communicator), partner: Some(partner), tag },
        };
        let mutex = |owner| OutsideWait::Mutex { word: None, owner };
        let rwlock = |holder: Option<RwHolder>| OutsideWait::RwLock {
            word: None,
            holder: holder.map(|value| Read { value, origin: Origin::Os }),
            left: None,
        };
        let condition = OutsideWait::Condition { word: None, left: None };
        let semaphore = OutsideWait::Object { kind: ObjectKind::Semaphore, word: None, left: None };
        let poll = |on: Vec<Described>, count| OutsideWait::Poll { call: "poll".into(), on, count, limit: None };
        let kernel = OutsideWait::KernelWait { call: "fsync".into(), on: None, channel: None };
        let call = OutsideWait::SystemCall { name: "number 999".into() };
        let held = |within, by: Option<&str>| OutsideWait::Stopped { within, by: by.map(str::to_owned) };
        let cases = [
            (None, mutex(read(12)), "waits for a mutex (held by LWP 12)"),
            (Some("pthread_mutex_lock"), mutex(read(12)), "pthread_mutex_lock (held by LWP 12)"),
            (Some("fflush"), mutex(None), "waits for a mutex in fflush"),
            (None, rwlock(Some(RwHolder::Writer(12))), "waits for a read-write lock (held for writing by LWP 12)"),
            (
                Some("std::shared_mutex::lock"),
                rwlock(Some(RwHolder::Readers(1))),
                "std::shared_mutex::lock (held for reading by 1 thread; which is not recorded)",
            ),
            (Some("pthread_rwlock_rdlock"), rwlock(None), "pthread_rwlock_rdlock"),
            (None, condition.clone(), "waits for a condition variable"),
            (Some("pthread_cond_wait"), condition, "pthread_cond_wait"),
            (None, semaphore.clone(), "waits for a semaphore"),
            (Some("sem_wait"), semaphore.clone(), "sem_wait"),
            (None, OutsideWait::Join { thread: read(12) }, "join of LWP 12"),
            (Some("pthread_join"), OutsideWait::Join { thread: None }, "pthread_join"),
            (None, OutsideWait::Join { thread: None }, "join"),
            (Some("std::mutex::lock"), mutex(read(12)), "std::mutex::lock (held by LWP 12)"),
            (
                None,
                mpi("MPI_Recv", Partner::Rank(3), Some(Some(7)), Communicator::World),
                "MPI_Recv from rank 3 with tag 7 in MPI_COMM_WORLD",
            ),
            (
                None,
                mpi("MPI_Wait", Partner::Any, Some(None), Communicator::Own),
                "MPI_Wait for a message from any rank with any tag in MPI_COMM_SELF",
            ),
            (
                None,
                mpi("MPI_Send", Partner::None, None, Communicator::Other(0x44)),
                "MPI_Send to no process in communicator 0x44",
            ),
            (
                None,
                mpi("MPI_Recv", Partner::Rank(0), Some(Some(7)), Communicator::Other(0x44)),
                "MPI_Recv from rank 0 of communicator 0x44 with tag 7",
            ),
            (
                Some("mpi_ssend_"),
                mpi("MPI_Ssend", Partner::Rank(1), None, Communicator::World),
                "mpi_ssend_ to rank 1 in MPI_COMM_WORLD",
            ),
            (None, OutsideWait::Device { function: "cuCtx\n".into() }, "waits for a device in cuCtx\\n"),
            (
                None,
                OutsideWait::DeviceLibrary { function: "cuMemcpy\n".into() },
                "waits in cuMemcpy\\n of a device's library",
            ),
            (None, poll(Vec::new(), Some(0)), "poll of no descriptors"),
            (Some("select"), poll(Vec::new(), None), "select, poll"),
            (None, poll(vec![plain(5)], Some(1)), "poll of descriptor 5"),
            (None, poll(vec![plain(5)], None), "poll of descriptor 5 and more"),
            (
                None,
                poll((5..10).map(plain).collect(), Some(7)),
                "poll of descriptor 5, descriptor 6, descriptor 7, descriptor 8 and 3 more",
            ),
            (None, OutsideWait::Sleep { length: None, left: None }, "sleeps"),
            (None, kernel, "fsync, cannot be interrupted in the kernel"),
            (None, call.clone(), "in system call number 999"),
            (Some("syscall"), call, "syscall"),
            (Some("sem_wait"), held(Some(Box::new(semaphore)), Some("gd\nb")), "held by gd\\nb, in sem_wait"),
            (Some("spin"), held(None, None), "stopped by a signal, in spin"),
            (None, held(None, None), "stopped by a signal"),
        ];
        for (function, wait, text) in cases {
            assert_eq!(what(&of(function, wait)).as_deref(), Some(text));
        }
        let object = Outside { object: Some("queue.\n".to_owned()), ..of(None, mutex(None)) };
        assert_eq!(what(&object).as_deref(), Some("waits for a mutex of queue.\\n"));
    }

    #[test]
    fn thread_without_a_wait_runs() {
        let outside = |function| Outside { wait: None, ..of(function, mutex_of_nobody()) };
        assert_eq!((what(&outside(None)), words(&outside(None)).as_str()), (None, "running"));
        assert_eq!(what(&outside(Some("solve"))).as_deref(), Some("running in solve"));
        assert_eq!(fix(&outside(Some("solve")), true), None);
    }

    fn mutex_of_nobody() -> OutsideWait {
        OutsideWait::Mutex { word: None, owner: None }
    }

    #[test]
    fn place_is_said_as_far_as_it_is_known() {
        let place = |file: Option<&str>, line, function: Option<&str>| {
            place(&CallSite {
                file: file.map(Into::into),
                line,
                function: function.map(Into::into),
                language: Language::Compiled,
            })
        };
        assert_eq!(place(Some("/src/app.c"), Some(10), Some("solve")).as_deref(), Some("app.c:10, in solve"));
        assert_eq!(place(Some("/src/app.c"), None, Some("solve")).as_deref(), Some("in solve"));
        assert_eq!(place(Some("app.c"), Some(10), None).as_deref(), Some("app.c:10"));
        assert_eq!(place(None, Some(10), None), None);
    }

    #[test]
    fn descriptors_are_said_with_what_they_refer_to() {
        use std::net::SocketAddr;
        let of = |kind, socket| {
            let descriptor = Descriptor { number: 3, kind, link: "/tmp/a\n".to_owned() };
            described(&Described { number: 3, descriptor: Some(descriptor), socket, ends: None })
        };
        let cases = [
            (DescriptorKind::Pipe, "pipe 3"),
            (DescriptorKind::Fifo, "named pipe 3 (/tmp/a\\n)"),
            (DescriptorKind::Socket, "socket 3"),
            (DescriptorKind::Terminal, "terminal 3 (/tmp/a\\n)"),
            (DescriptorKind::File, "file 3 (/tmp/a\\n)"),
            (DescriptorKind::Event(Some(2)), "eventfd 3 (count 2)"),
            (DescriptorKind::Event(None), "eventfd 3"),
            (DescriptorKind::Epoll(vec![4, 5]), "epoll 3 (watches 2 descriptors)"),
            (DescriptorKind::Timer, "timerfd 3"),
            (DescriptorKind::Signals, "signalfd 3"),
            (DescriptorKind::Other, "descriptor 3 (/tmp/a\\n)"),
        ];
        for (kind, text) in cases {
            assert_eq!(of(kind, None), text);
        }
        let local: SocketAddr = ([127, 0, 0, 1], 80).into();
        let tcp = |peer| of(DescriptorKind::Socket, Some(Socket::Tcp { local, peer, peer_link: None }));
        assert_eq!(tcp(Some(local)), "socket 3 (TCP 127.0.0.1:80 to 127.0.0.1:80)");
        assert_eq!(tcp(None), "socket 3 (TCP 127.0.0.1:80, listens)");
        let unix = |path| of(DescriptorKind::Socket, Some(Socket::Unix { path, peer_link: None }));
        assert_eq!(unix(Some("/run/a\n".to_owned())), "socket 3 (/run/a\\n)");
        assert_eq!(unix(None), "socket 3");
    }

    #[test]
    fn other_ends_are_said_with_their_processes() {
        let ends = |holders: Vec<Holder>| described(&pipe(holders, true));
        assert_eq!(ends(Vec::new()), "pipe 3 (no process has its other end)");
        let own = Holder { own: true, ..holder(1, false) };
        assert_eq!(ends(vec![own.clone()]), "pipe 3 (its other end: this process, descriptor 4, reader)");
        let both = Holder { name: None, reads: true, ..holder(1, true) };
        assert_eq!(ends(vec![both]), "pipe 3 (its other end: process 1)");
        let named = |pid| Holder { name: Some("feed".to_owned()), ..holder(pid, true) };
        let some = |count| ends((1..=count).map(named).collect());
        let four =
            "process 1 feed, writer and process 2 feed, writer and process 3 feed, writer and process 4 feed, writer";
        assert_eq!(some(4), format!("pipe 3 (its other ends: {four})"));
        assert_eq!(some(6), format!("pipe 3 (its other ends: {four} and 2 more)"));
        let fix_of = |holders, complete| {
            let on = pipe(holders, complete);
            own_end(&of(None, OutsideWait::Descriptor { call: "read".into(), on }))
        };
        let writer = Holder { own: true, ..holder(1, true) };
        let text = "Let another thread write to descriptor 4, or close it: only this process has the other end.";
        assert_eq!(fix_of(vec![writer.clone()], true).as_deref(), Some(text));
        let second = Holder { descriptor: 9, ..writer.clone() };
        let text =
            "Let another thread write to descriptors 4 and 9, or close them: only this process has the other end.";
        assert_eq!(fix_of(vec![second, writer.clone()], true).as_deref(), Some(text));
        assert_eq!(fix_of(vec![writer.clone()], false), None);
        assert_eq!(fix_of(vec![writer, named(7)], true), None);
        // Nothing is awaited of this process itself.
        let wait = |holders| OutsideWait::Descriptor { call: "read".into(), on: pipe(holders, true) };
        assert_eq!(awaited(&of(None, wait(vec![own.clone()]))), [0; 0]);
        assert_eq!(awaited(&of(None, wait(vec![named(7), own]))), [0; 0]);
        assert_eq!(awaited(&of(None, wait((1..=5).map(named).collect()))), [0; 0]);
        let stopped = OutsideWait::Stopped { within: Some(Box::new(wait(vec![named(7)]))), by: None };
        assert_eq!(awaited(&of(None, stopped)), [7]);
    }

    #[test]
    fn children_beyond_four_are_counted() {
        let child = |pid| Child { pid, name: None, state: Some('S') };
        let wait = |pid, children| of(None, OutsideWait::Child { call: "wait4".into(), pid, children });
        let some = |count| what(&wait(None, Some((1..=count).map(child).collect()))).expect("a wait");
        assert_eq!(some(0), "wait4 for any child");
        assert_eq!(some(4), "wait4 for any child (process 1, process 2, process 3, process 4)");
        assert_eq!(some(6), "wait4 for any child (process 1, process 2, process 3, process 4, 2 more)");
        assert_eq!(what(&wait(Some(5), None)).as_deref(), Some("wait4 for process 5"));
        assert_eq!(awaited(&wait(None, Some(vec![child(6)]))), [6]);
    }

    #[test]
    fn time_that_is_left_is_said_behind_the_place() {
        let left = || read(Duration::from_secs(2));
        let poll =
            OutsideWait::Poll { call: "poll".into(), on: vec![], count: None, limit: Some(Duration::from_millis(20)) };
        let asleep = OutsideWait::Sleep { length: read(Duration::from_secs(9)), left: left() };
        let cases = [
            (asleep.clone(), "sleeps, 2 s left"),
            (
                OutsideWait::Condition { word: None, left: left() },
                "waits for a condition variable, for 2 s more at most",
            ),
            (
                OutsideWait::Object { kind: ObjectKind::Future, word: None, left: left() },
                "waits for a future, for 2 s more at most",
            ),
            (poll, "poll, for 20 ms at most"),
            (
                OutsideWait::Stopped { within: Some(Box::new(asleep)), by: Some("gdb".to_owned()) },
                "held by gdb, in sleeps, 2 s left",
            ),
        ];
        for (wait, text) in cases {
            assert_eq!(words(&of(None, wait)), text);
        }
    }

    #[test]
    fn fix_names_who_may_end_the_wait() {
        let fix_of = |wait| fix(&of(None, wait), true);
        let device = |function: &str| fix_of(OutsideWait::Device { function: function.into() }).expect("a fix");
        assert_eq!(
            device("cuStreamSynchronize"),
            "See with `nvidia-smi` whether the device computes, and with `cuda-gdb` what."
        );
        assert_eq!(
            device("hipDeviceSynchronize"),
            "See with `rocm-smi` whether the device computes, and with `rocgdb` what."
        );
        assert_eq!(
            device("zeFenceHostSynchronize"),
            "See with a monitor whether the device computes, and with a debugger for the device what."
        );
        let arguments = MpiArguments { communicator: None, partner: None, tag: None };
        let mpi = OutsideWait::Mpi { function: "MPI_Barrier".into(), arguments };
        let text = "Inspect the other ranks too: MPI_Barrier returns when another rank has done its part.";
        assert_eq!(fix_of(mpi.clone()).as_deref(), Some(text));
        assert_eq!(fix_of(OutsideWait::Stopped { within: Some(Box::new(mpi)), by: None }).as_deref(), Some(text));
        let child = OutsideWait::Child { call: "wait4".into(), pid: Some(5), children: None };
        assert_eq!(fix_of(child.clone()).as_deref(), Some("See what process 5 does: `ompd-inspect 5`."));
        assert_eq!(fix(&of(None, child), false), None, "the processes of a core are gone");
        assert_eq!(fix_of(mutex_of_nobody()), None);
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let text = |nanoseconds| span(Duration::from_nanos(nanoseconds));
        assert_eq!((text(1_000_000).as_str(), text(1_000_000_000).as_str()), ("1 ms", "1 s"));
        assert_eq!(
            (text(1_500), text(20_000_000), text(1_000_000_000_000)),
            ("1.5 µs".into(), "20 ms".into(), "1000 s".into())
        );
    }
}
