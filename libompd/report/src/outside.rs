//! What a thread does outside of OpenMP, in words.

use std::time::Duration;

use ompd_inspection::outside::{CallSite, Described, Ends, Outside, OutsideWait};
use ompd_process::live::{Child, DescriptorKind, Holder, Socket};

use crate::escape::escape;

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
    let call = outside.call.as_ref().map(|call| escape(&call.function));
    match (&outside.wait, call) {
        (Some(wait), call) => Some(waiting(wait, call.as_deref())),
        (None, Some(call)) => Some(format!("running in {call}")),
        (None, None) => None,
    }
}

/// A command that looks at the process it waits for; `None` if that is not one, or is not known.
pub fn remedy(outside: &Outside) -> Option<String> {
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
            OutsideWait::Stopped { within } => process(within.as_ref()?),
            _ => None,
        }
    }
    outside.wait.as_ref().and_then(process).map(|pid| format!("ompd-inspect {pid}"))
}

/// `app.c:10, in solve`.
fn place(site: &CallSite) -> Option<String> {
    let file = site.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    let line = file.zip(site.line).map(|(file, line)| format!("{}:{line}", escape(file)));
    let function = site.function.as_deref().map(|function| format!("in {}", escape(function)));
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
        OutsideWait::Stopped { within } => time(within.as_ref()?),
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

/// What it waits for. `function` is what the program called.
fn waiting(wait: &OutsideWait, function: Option<&str>) -> String {
    let named = |otherwise: &str| function.unwrap_or(otherwise).to_owned();
    match wait {
        OutsideWait::Mutex { owner, .. } => match owner {
            Some(owner) => format!("{} (held by LWP {})", named("waits for a mutex"), owner.value),
            None => named("waits for a mutex"),
        },
        OutsideWait::Condition { .. } => named("waits for a condition variable"),
        OutsideWait::Object { kind, .. } => named(&format!("waits for a {}", kind.word())),
        OutsideWait::Join { thread: Some(thread) } => format!("{} of LWP {}", named("join"), thread.value),
        OutsideWait::Join { thread: None } => named("join"),
        OutsideWait::Mpi { function: of } => named(&escape(of)),
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
        OutsideWait::Stopped { within } => {
            let within = within.as_ref().map(|wait| waiting(wait, function)).or(function.map(str::to_owned));
            let within = within.map(|what| format!(", in {what}")).unwrap_or_default();
            format!("stopped by a signal{within}")
        }
        _ => named("waits"),
    }
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
        Some(Socket::Unix { path: Some(path) }) => about.push(escape(path)),
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
