//! What a thread does outside of OpenMP, in words.

use std::time::Duration;

use ompd_inspection::outside::{CallSite, Communicator, Described, Ends, MpiArguments, Outside, OutsideWait, Partner};
use ompd_process::live::{Child, DescriptorKind, Holder, Socket};

use crate::escape::escape;
use crate::short;

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

/// The process it waits for; `None` if that is not one, or is not known.
fn awaited(outside: &Outside) -> Option<i32> {
    fn process(wait: &OutsideWait) -> Option<i32> {
        match wait {
            OutsideWait::Child { pid: Some(pid), .. } => Some(*pid),
            OutsideWait::Child { children: Some(children), .. } => match children[..] {
                [ref one] => Some(one.pid),
                _ => None,
            },
            OutsideWait::Descriptor { on, .. } => match &on.ends.as_ref()?.holders[..] {
                [first, rest @ ..] if !first.own && rest.iter().all(|other| other.pid == first.pid) => Some(first.pid),
                _ => None,
            },
            OutsideWait::Stopped { within, .. } => process(within.as_ref()?),
            _ => None,
        }
    }
    outside.wait.as_ref().and_then(process)
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
        _ => awaited(outside).filter(|_| live).map(|pid| format!("See what process {pid} does: `ompd-inspect {pid}`.")),
    }
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
        OutsideWait::Condition { left: Some(left), .. } | OutsideWait::Object { left: Some(left), .. } => {
            Some(format!("for {} more at most", span(left.value)))
        }
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

    use super::*;

    /// A call of `function` in a file and function whose names are commands to a terminal.
    fn of(function: Option<&str>, wait: OutsideWait) -> Outside {
        let site = CallSite { file: Some("/src/a\u{1b}[2J.c".into()), line: Some(7), function: Some("get\n".into()) };
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
        assert_eq!(awaited(&from), Some(4712));
        let two = of(Some("fgets"), read(pipe(vec![holder(1, true), holder(2, true)], true)));
        assert_eq!(
            what(&two).as_deref(),
            Some("fgets, read of pipe 3 (its other ends: process 1 fe\\ted, writer and process 2 fe\\ted, writer)")
        );
        assert_eq!(awaited(&two), None);
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
        assert_eq!(awaited(&one), Some(25));
        let any = of(Some("system"), wait(None, Some(vec![child(25, 'Z'), child(26, 'R')])));
        let text = "system, wait4 for any child (process 25 solver, ended, process 26 solver)";
        assert_eq!((what(&any).as_deref(), awaited(&any)), (Some(text), None));
        let unknown = of(None, wait(None, None));
        assert_eq!(what(&unknown).as_deref(), Some("wait4 for any child"));
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let text = |nanoseconds| span(Duration::from_nanos(nanoseconds));
        assert_eq!(
            (text(1_500), text(20_000_000), text(1_000_000_000_000)),
            ("1.5 µs".into(), "20 ms".into(), "1000 s".into())
        );
    }
}
