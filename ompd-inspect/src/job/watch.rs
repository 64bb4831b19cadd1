//! `ompd-inspect job --top`: the report of a job again and again.
//!
//! The inspectors of all hosts look at the same moments, and each prints a report every time. A round of them is a page.

use std::io::{self, PipeReader, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anstream::{AutoStream, ColorChoice};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use ompd_jobs::wire::{Line, Lines};
use ompd_jobs::{Merged, text};
use ompd_report::escape::escape;

use super::agents::{Agents, Event, Outcome};
use super::page::{Page, Pressed};
use super::rounds::Rounds;
use super::{Plan, reason, status};
use crate::args::{JobArgs, Options};
use crate::inspecting::COMPLETE;
use crate::merge;
use crate::output::{Failure, terminal_width};
use crate::signals::Signals;
use crate::terminal::{self, Terminal, die, take_signals};
use crate::top::clock;

/// How often a thread that waits for hosts looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(100);

/// What has happened on the hosts.
enum Round {
    /// All reports of a round.
    Report(Box<Merged>),
    /// There will be no more: all ranks have ended, or nobody reports.
    End(Result<(), Failure>),
}

/// The thread that hears the hosts.
struct Hearing {
    rounds: Receiver<Round>,
    wake: PipeReader,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Hearing {
    fn start(plan: Plan, args: &JobArgs, every: Duration) -> io::Result<Hearing> {
        let (sender, rounds) = channel();
        let (wake, mut ready) = io::pipe()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (timeout, ended) = (args.timeout.max(args.lead), Arc::clone(&stop));
        let work = move || {
            let mut say = |round: Round| {
                // If nobody is there to hear it, the end is near.
                let _ = sender.send(round);
                let _ = ready.write_all(&[0]);
            };
            let end = hear(plan, every, timeout, &ended, &mut say);
            say(Round::End(end));
        };
        let thread = std::thread::Builder::new().name("hosts".into()).spawn(work)?;
        Ok(Hearing { rounds, wake, stop, thread })
    }

    fn next(&mut self) -> Option<Round> {
        match self.rounds.try_recv() {
            Ok(round) => {
                // One byte for each: it does not block.
                let _ = io::Read::read(&mut self.wake, &mut [0]);
                Some(round)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Round::End(Err(Failure::new("the thread that hears the hosts has ended"))))
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Ends the programs that ask the hosts. What they have started there ends when it next reports.
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// Hands out rounds until it is stopped, or until no host reports any more.
fn hear(
    plan: Plan,
    every: Duration,
    timeout: Duration,
    stop: &AtomicBool,
    say: &mut impl FnMut(Round),
) -> Result<(), Failure> {
    let hosts = plan.hosts;
    let mut rounds = Rounds::of(&hosts, plan.missing);
    let fanout = plan.agents.len();
    let mut agents = Agents::start(plan.agents, fanout);
    let mut lines = Lines::default();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut has_ranks = false;
    let mut due = Instant::now() + timeout;
    let mut why = format!("no answer in {} s", timeout.as_secs());
    while !stop.load(Ordering::Relaxed) {
        match agents.next(due.min(Instant::now() + POLL)) {
            Some(Event::Line(line)) => {
                if let Line::Report(node) = lines.take(&line) {
                    let label = node.label.filter(|label| hosts.contains(label));
                    let host = label.filter(|_| !hosts.contains(&node.name)).unwrap_or(node.name);
                    let report = node.report.unwrap_or_else(|error| {
                        let mut merged = Merged::default();
                        merged.add_failure(&format!("host {host}"), &error.to_string());
                        merged
                    });
                    rounds.take(host, report);
                }
            }
            Some(Event::End(outcome)) => {
                let told = reason(&outcome);
                let is_own = hosts.contains(&outcome.label);
                // One program for all hosts ends with the last of them.
                let of: Vec<&String> = hosts.iter().filter(|host| !is_own || **host == outcome.label).collect();
                of.into_iter().for_each(|host| rounds.end(host, &told));
                outcomes.push(outcome);
            }
            None => {}
        }
        let is_over = agents.have_ended();
        if rounds.is_complete() || due <= Instant::now() || is_over {
            let merged = rounds.finish(&why);
            if merged.inspected.is_empty() && !has_ranks && is_over {
                // Nobody has ever answered: it is the programs that say why.
                return Err(plan.nobody.failure(&merged, &outcomes));
            }
            has_ranks |= !merged.inspected.is_empty();
            // At the end, failures alone are those of a job that has ended.
            let is_worth_a_page = !merged.inspected.is_empty() || !merged.failures.is_empty() && !is_over;
            if is_worth_a_page {
                say(Round::Report(Box::new(merged)));
            }
            if is_over {
                // Ranks that have ended were reported to have; of others nobody knows.
                return match rounds.lost().iter().next() {
                    None => Ok(()),
                    Some((host, why)) => Err(Failure::new(format!(
                        "no host reports any more, and not all ranks had ended: host {}: {}",
                        escape(host),
                        escape(why)
                    ))),
                };
            }
            due = Instant::now() + 2 * every + timeout.min(Duration::from_secs(5));
            why = format!("no report since {}", clock(seconds_since_1970()));
        }
    }
    agents.end();
    Ok(())
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn not_written(error: io::Error) -> Failure {
    Failure::new(format!("cannot write to standard output: {error}"))
}

/// Shows the job until the user, `--count` or its end ends it.
///
/// # Errors
/// No rank could be asked, or nothing can be written.
pub fn watch(
    plan: Plan,
    args: &JobArgs,
    options: &Options,
    every: Duration,
    color: ColorChoice,
) -> Result<u8, Failure> {
    let refused = |error: io::Error| Failure::new(format!("the job cannot be watched: {error}"));
    let signals = take_signals().map_err(refused)?;
    let hearing = Hearing::start(plan, args, every).map_err(refused)?;
    let mut shown = Shown { args, options, color, count: 0, status: COMPLETE };
    match !options.json && terminal::is_there() {
        true => shown.on_terminal(hearing, &signals, every),
        false => shown.as_lines(hearing, &signals),
    }
}

/// How rounds are shown.
struct Shown<'a> {
    args: &'a JobArgs,
    options: &'a Options,
    color: ColorChoice,
    /// How many were.
    count: u64,
    /// What the last one comes to.
    status: u8,
}

impl Shown<'_> {
    fn is_enough(&self) -> bool {
        self.args.count.is_some_and(|count| self.count >= count)
    }

    fn as_lines(&mut self, mut hearing: Hearing, signals: &Signals) -> Result<u8, Failure> {
        loop {
            let happened = wait(signals, hearing.descriptor()).map_err(not_written)?;
            if let Some(signal) = happened {
                hearing.end();
                return Ok(die(signals, signal));
            }
            while let Some(round) = hearing.next() {
                let merged = match round {
                    Round::End(end) => return end.map(|()| self.status),
                    Round::Report(merged) => merged,
                };
                self.count += 1;
                self.status = status(&merged);
                let written = match self.write(&merged) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
                    written => written.map(|()| !self.is_enough()).map_err(not_written),
                };
                match written {
                    Ok(true) => {}
                    end => {
                        hearing.end();
                        return end.map(|_| self.status);
                    }
                }
            }
        }
    }

    fn write(&self, merged: &Merged) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.options.json {
            let document = merge::document(merged).map_err(|failure| io::Error::other(failure.to_string()))?;
            out.write_all(document.as_bytes())?;
        } else {
            let head = format!("job  {}  refresh {}\n", clock(seconds_since_1970()), self.count);
            let mut out = AutoStream::new(&mut out, self.color);
            writeln!(out, "{head}{}", text::page(merged, terminal_width()))?;
        }
        out.flush()
    }

    fn on_terminal(&mut self, mut hearing: Hearing, signals: &Signals, every: Duration) -> Result<u8, Failure> {
        let failed = |error: io::Error| Failure::new(format!("the terminal cannot be used any more: {error}"));
        let color =
            self.color != ColorChoice::Never && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut screen = Terminal::take().map_err(failed)?;
        let mut page = Page::new(every, color);
        let mut last: Option<Box<Merged>> = None;
        let end = 'view: loop {
            if let Err(error) = screen.draw(|frame| page.draw(frame)) {
                break Err(failed(error));
            }
            let happened = match screen.wait(signals, hearing.descriptor(), None) {
                Ok(happened) => happened,
                Err(error) => break Err(failed(error)),
            };
            if let Some(signal) = happened.signal {
                break Ok(Some(signal));
            }
            while let Some(round) = hearing.next() {
                match round {
                    Round::End(end) => break 'view end.map(|()| None),
                    Round::Report(merged) => {
                        self.count += 1;
                        self.status = status(&merged);
                        page.show(clock(seconds_since_1970()), &merged, screen.width());
                        last = Some(merged);
                    }
                }
            }
            for key in happened.keys {
                match page.press(key) {
                    Pressed::Show => {}
                    Pressed::Quit => break 'view Ok(None),
                    Pressed::Suspend => {
                        if let Err(error) = screen.suspend() {
                            break 'view Err(failed(error));
                        }
                    }
                }
            }
            page.fit(last.as_deref(), screen.width());
            if self.is_enough() {
                break Ok(None);
            }
        };
        // It is given back before anything is said.
        drop(screen);
        hearing.end();
        if let Some(signal) = end? {
            return Ok(die(signals, signal));
        }
        if let Some(merged) = last {
            let text = text::page(&merged, terminal_width());
            write!(AutoStream::new(io::stdout(), self.color), "{text}").map_err(not_written)?;
        }
        Ok(self.status)
    }
}

/// Waits for a signal that ends the program, or for a round.
fn wait(signals: &Signals, rounds: BorrowedFd<'_>) -> io::Result<Option<Signal>> {
    loop {
        let mut descriptors = [signals.as_fd(), rounds].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let has_round = descriptors[1].any().unwrap_or(false);
        let ends = signals.arrived().into_iter().map(|arrived| arrived.signal).find(|signal| terminal::ends(*signal));
        if ends.is_some() || has_round {
            return Ok(ends);
        }
    }
}
