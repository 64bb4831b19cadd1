//! Programs that ask other hosts, several at once, and what they print.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, SigSet};
use ompd_jobs::wire::MOST_LINE_BYTES;
use rustix::process::{Pid, Signal, kill_process};

use crate::signals;

/// Bytes of standard error that are kept of one program: the first.
const MOST_ERRORS: u64 = 64 << 10;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// How often a program whose output has ended is asked whether it has ended too.
const POLL: Duration = Duration::from_millis(5);

/// A program to run.
#[derive(Debug)]
pub struct Agent {
    /// Whom it asks.
    pub label: String,
    /// The program.
    pub command: Command,
}

/// What became of a program.
#[derive(Debug)]
pub struct Outcome {
    /// Whom it asked.
    pub label: String,
    /// What it wrote to standard error.
    pub errors: String,
    /// How it ended.
    pub end: End,
}

/// How a program ended.
#[derive(Debug)]
pub enum End {
    /// With this status.
    Exited(ExitStatus),
    /// It could not be started.
    NotStarted(std::io::Error),
    /// Its time was over.
    TimedOut,
    /// The time was over before it was started: others had to end first.
    Waited,
}

/// What programs do.
#[derive(Debug)]
pub enum Event {
    /// One has written a line.
    Line(String),
    /// One has ended.
    End(Outcome),
}

/// Programs that run, at most so many at once.
#[derive(Debug)]
pub struct Agents {
    events: Receiver<Event>,
    /// Those whose end nobody was told.
    left: Vec<String>,
    queue: Arc<Mutex<VecDeque<Agent>>>,
    running: Running,
}

/// Those that run.
type Running = Arc<Mutex<Vec<Arc<Mutex<Child>>>>>;

impl Agents {
    /// Runs the programs.
    pub fn start(agents: Vec<Agent>, fanout: usize) -> Agents {
        let left: Vec<String> = agents.iter().map(|agent| agent.label.clone()).collect();
        let queue = Arc::new(Mutex::new(VecDeque::from(agents)));
        let running: Running = Arc::default();
        let (sender, events) = mpsc::channel();
        for _ in 0..fanout.clamp(1, left.len().max(1)) {
            let (queue, running, sender) = (Arc::clone(&queue), Arc::clone(&running), sender.clone());
            // A program may leave its output to others that never end: nobody waits for these threads.
            thread::spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(agent) = next else { return };
                    let outcome = work(agent, &running, &sender);
                    if sender.send(Event::End(outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        Agents { events, left, queue, running }
    }

    /// Whether all have ended.
    pub fn have_ended(&self) -> bool {
        self.left.is_empty()
    }

    /// What happens next; `None` if nothing does until then, or if all have ended.
    pub fn next(&mut self, until: Instant) -> Option<Event> {
        if self.have_ended() {
            return None;
        }
        let event = self.events.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
        if let Event::End(outcome) = &event {
            self.leaves(&outcome.label);
        }
        Some(event)
    }

    /// One with this label is left no more: several may have it.
    fn leaves(&mut self, label: &str) {
        if let Some(at) = self.left.iter().position(|left| left == label) {
            self.left.swap_remove(at);
        }
    }

    /// Ends those that run by SIGTERM, then SIGKILL, and starts no more. Gives what became of each.
    pub fn end(mut self) -> Vec<Outcome> {
        let late = |label, end| Outcome { label, errors: String::new(), end };
        // Those in the queue will never say that they have ended.
        let queued = std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner));
        queued.iter().for_each(|agent| self.leaves(&agent.label));
        let mut outcomes: Vec<Outcome> = queued.into_iter().map(|agent| late(agent.label, End::Waited)).collect();
        for signal in [Signal::TERM, Signal::KILL] {
            self.send(signal);
            let until = Instant::now() + GRACE;
            while let Some(event) = self.next(until) {
                if let Event::End(outcome) = event {
                    outcomes.push(Outcome { end: End::TimedOut, ..outcome });
                }
            }
        }
        outcomes.extend(self.left.into_iter().map(|label| late(label, End::TimedOut)));
        outcomes
    }

    /// Sends a signal to all that have not been waited for.
    fn send(&self, signal: Signal) {
        for child in self.running.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(child.try_wait(), Ok(None))
                && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
            {
                // It may end by itself first.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Runs the programs, at most `fanout` at once, and hands out each line of their standard output. What has not ended at the deadline is
/// ended.
pub fn run(agents: Vec<Agent>, fanout: usize, deadline: Instant, mut on_line: impl FnMut(&str)) -> Vec<Outcome> {
    let mut agents = Agents::start(agents, fanout);
    let mut outcomes = Vec::new();
    while let Some(event) = agents.next(deadline) {
        match event {
            Event::Line(line) => on_line(&line),
            Event::End(outcome) => outcomes.push(outcome),
        }
    }
    if !agents.have_ended() {
        outcomes.extend(agents.end());
    }
    outcomes
}

fn work(agent: Agent, running: &Running, sender: &Sender<Event>) -> Outcome {
    let Agent { label, mut command } = agent;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What it has started ends with it. This thread waits for it.
    signals::tie(&mut command, SigSet::empty(), signal::Signal::SIGTERM);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome { label, errors: String::new(), end: End::NotStarted(error) },
    };
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let child = Arc::new(Mutex::new(child));
    running.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&child));
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // A part of it is better than nothing, and who writes more must not wait for us.
            let _ = errors.by_ref().take(MOST_ERRORS).read_to_end(&mut text);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    if let Some(output) = output {
        lines(BufReader::new(output), |line| sender.send(Event::Line(line)).is_ok());
    }
    let status = loop {
        match child.lock().unwrap_or_else(PoisonError::into_inner).try_wait() {
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
            Ok(None) => {}
        }
        thread::sleep(POLL);
    };
    running.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, &child));
    let errors = errors.join().unwrap_or_default();
    let end = status.map_or_else(End::NotStarted, End::Exited);
    Outcome { label, errors, end }
}

/// Hands out lines as long as they are wanted. One that is too long is left out.
fn lines(mut input: impl BufRead, mut take: impl FnMut(String) -> bool) {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let Ok(bytes) = input.fill_buf() else { return };
        if bytes.is_empty() {
            if !line.is_empty() && !is_too_long {
                take(String::from_utf8_lossy(&line).into_owned());
            }
            return;
        }
        let (part, used, is_end) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&bytes[..at], at + 1, true),
            None => (bytes, bytes.len(), false),
        };
        is_too_long |= line.len() + part.len() > MOST_LINE_BYTES;
        if !is_too_long {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if is_end {
            if !is_too_long && !take(String::from_utf8_lossy(&line).into_owned()) {
                return;
            }
            line.clear();
            is_too_long = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(label: &str, script: &str) -> Agent {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Agent { label: label.to_owned(), command }
    }

    #[test]
    fn lines_of_all_are_handed_out_and_failures_have_their_reason() {
        let agents = vec![
            shell("a", "echo one; echo two"),
            shell("b", "echo why >&2; exit 3"),
            Agent { label: "c".to_owned(), command: Command::new("/nonexistent/program") },
            shell("d", "head -c 10000 /dev/zero | tr '\\0' x; echo; printf three"),
        ];
        let mut all = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut outcomes = run(agents, 2, deadline, |line| all.push(line.to_owned()));
        all.sort();
        outcomes.sort_by(|one, two| one.label.cmp(&two.label));
        assert_eq!(all, ["one", "three", "two"]);
        assert!(matches!(&outcomes[0].end, End::Exited(status) if status.success()));
        assert!(matches!(&outcomes[1].end, End::Exited(status) if status.code() == Some(3)));
        assert_eq!(outcomes[1].errors, "why\n");
        assert!(matches!(&outcomes[2].end, End::NotStarted(_)));
    }

    #[test]
    fn programs_with_one_label_are_all_heard() {
        let agents = vec![shell("n1", "echo one"), shell("n1", "sleep 0.3; echo two")];
        let mut all = Vec::new();
        let outcomes = run(agents, 2, Instant::now() + Duration::from_secs(60), |line| all.push(line.to_owned()));
        assert_eq!((all.join(" ").as_str(), outcomes.len()), ("one two", 2));
    }

    #[test]
    fn who_does_not_answer_is_ended_and_the_rest_counts() {
        let mut time = Duration::from_millis(100);
        loop {
            let agents = vec![shell("slow", "echo $$; exec sleep 1000"), shell("later", "echo never")];
            let mut all = Vec::new();
            let outcomes = run(agents, 1, Instant::now() + time, |line| all.push(line.to_owned()));
            assert_eq!(outcomes.len(), 2, "{outcomes:?}");
            let is_late = |outcome: &Outcome| match outcome.label.as_str() {
                "later" => matches!(outcome.end, End::Waited),
                _ => matches!(outcome.end, End::TimedOut),
            };
            assert!(outcomes.iter().all(is_late), "{outcomes:?}");
            // On a busy machine it may not even have begun.
            if let [pid] = all.as_slice() {
                // It is a child of this process, which has waited for it.
                assert!(!std::path::Path::new("/proc").join(pid).exists(), "process {pid} runs on");
                return;
            }
            assert!(all.is_empty(), "{all:?}");
            time *= 2;
        }
    }
}
