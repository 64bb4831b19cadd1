//! `ompd-inspect top`: the threads of running processes, looked at again and again.
//!
//! Each refresh is one stop of each process. On a terminal keys change the view; elsewhere a block of lines follows another.

mod lines;
mod looking;
mod rows;
#[cfg(test)]
mod samples;
mod screen;
mod view;
mod worker;

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use ompd_process::OpenOptions;
use ompd_report::top::Refresh;

use crate::args::{Options, TopArgs};
use crate::inspecting::{COMPLETE, Layouts, open_options};
use crate::many;
use crate::output::Failure;
use crate::signals::Signals;
use crate::terminal::{self, Terminal, die, take_signals};
use looking::{Looker, process_ids};
use rows::{Sort, Tone};
use view::{Action, View};
use worker::{Reply, Request, Worker};

pub use lines::{clock, seconds};

/// Time between two refreshes, unless it is given.
const INTERVAL: Duration = Duration::from_secs(2);
/// The shortest time between two refreshes.
const SHORTEST: Duration = Duration::from_millis(200);

/// Shows the threads of the processes until the user or `--count` ends it, or all processes have ended.
///
/// # Errors
/// None can be inspected, or nothing can be written.
pub fn top(args: &TopArgs, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    check("top", options)?;
    let named = &args.targets;
    let pids = match many::targets(options, named)? {
        Some(targets) => process_ids(targets.iter().map(|target| target.name.as_str()))?,
        None => process_ids(named.iter().map(String::as_str))?,
    };
    let interval = interval(options);
    let open = open_options(options);
    let layouts = Layouts::new(options);
    let top = Top { pids, open, layouts, interval, count: args.count, json: options.json };
    if !options.json && terminal::is_there() {
        let color = color != ColorChoice::Never && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        top.on_terminal(color)
    } else {
        top.as_lines()
    }
}

/// Time between two refreshes.
pub fn interval(options: &Options) -> Duration {
    options.interval.unwrap_or(INTERVAL).max(SHORTEST)
}

/// Refuses options that mean nothing in a live view.
///
/// # Errors
/// Such an option is set.
pub fn check(command: &str, options: &Options) -> Result<(), Failure> {
    let meaningless = [
        (options.samples > 1, "--samples", "say how many refreshes there are with --count N"),
        (options.fail_on.is_some(), "--fail-on", "use it for a single report"),
        (options.output.is_some(), "--output", "redirect standard output"),
        (options.redact, "--redact", "use it for a single report"),
    ];
    match meaningless.into_iter().find(|(is_set, ..)| *is_set) {
        Some((_, option, remedy)) => {
            Err(Failure::with_remedy(format_args!("{command} has no option {option}"), remedy))
        }
        None => Ok(()),
    }
}

/// What is shown, and how often.
struct Top {
    pids: Vec<i32>,
    open: OpenOptions,
    layouts: Layouts,
    interval: Duration,
    count: Option<u64>,
    json: bool,
}

/// When the next look is due after one that lasted from `began` to `ended`. Between two looks a process runs for at least a
/// quarter of the interval.
fn due(began: Instant, ended: Instant, interval: Duration) -> Instant {
    (began + interval).max(ended + interval / 4)
}

fn have_ended(refresh: &Refresh) -> bool {
    refresh.processes.iter().all(|process| process.ended)
}

fn not_written(error: io::Error) -> Failure {
    Failure::new(format!("cannot write to standard output: {error}"))
}

impl Top {
    /// One block, or one line of JSON, for each refresh.
    fn as_lines(&self) -> Result<u8, Failure> {
        let mut looker = Looker::open(&self.pids, &self.open, self.layouts.from())?;
        loop {
            let began = Instant::now();
            let refresh = looker.look(self.interval);
            let text = if self.json { lines::json(&refresh)? } else { lines::block(&refresh, Sort::default()) };
            let mut out = io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(COMPLETE),
                written => written.map_err(not_written)?,
            }
            if have_ended(&refresh) || self.count.is_some_and(|count| refresh.number >= count) {
                return Ok(COMPLETE);
            }
            let now = Instant::now();
            std::thread::sleep(due(began, now, self.interval).saturating_duration_since(now));
        }
    }

    /// The view, until a key, a signal or the end of all processes ends it.
    fn on_terminal(self, color: bool) -> Result<u8, Failure> {
        let refused = |error: io::Error| Failure::new(format!("the terminal cannot be used: {error}"));
        let signals = take_signals().map_err(refused)?;
        let worker = Worker::start(self.pids, self.open, self.layouts).map_err(refused)?;
        let mut terminal = Terminal::take().map_err(refused)?;
        let mut session = Session {
            view: View::new(self.interval),
            worker,
            signals: &signals,
            color,
            count: self.count,
            opened: Instant::now(),
            began: None,
            ended: None,
            suspend: false,
        };
        let end = session.run(&mut terminal);
        // It is given back before anything is said.
        drop(terminal);
        match end? {
            End::Signal(signal) => return Ok(die(&signals, signal)),
            End::Asked => {}
            End::Processes(refresh) => {
                let lines = rows::heads(&refresh, 0).into_iter().filter(|(tone, _)| *tone == Tone::Heading);
                let text: String = lines.map(|(_, line)| format!("{line}\n")).collect();
                crate::output::write_all(&mut io::stdout().lock(), &text).map_err(not_written)?;
            }
        }
        Ok(COMPLETE)
    }
}

/// Why the view ends.
enum End {
    Asked,
    Signal(nix::sys::signal::Signal),
    Processes(Refresh),
}

/// The view, and what it waits for.
struct Session<'a> {
    view: View,
    worker: Worker,
    signals: &'a Signals,
    color: bool,
    count: Option<u64>,
    /// When the view was opened, and the first look due.
    opened: Instant,
    /// When the last look was asked for.
    began: Option<Instant>,
    /// When it ended; `None` while it is under way.
    ended: Option<Instant>,
    /// Ctrl-Z was pressed while a look was under way: to stop then would keep the process stopped.
    suspend: bool,
}

impl Session<'_> {
    /// When the next look is due; `None` while one is under way, or the view is paused. No key makes it due earlier.
    fn due(&self) -> Option<Instant> {
        match (self.began, self.ended) {
            (None, _) => Some(self.opened),
            (Some(began), Some(ended)) if !self.view.paused => Some(due(began, ended, self.view.interval)),
            _ => None,
        }
    }

    fn run(&mut self, terminal: &mut Terminal) -> Result<End, Failure> {
        let failed = |error: io::Error| Failure::new(format!("the terminal cannot be used any more: {error}"));
        loop {
            let now = Instant::now();
            if self.due().is_some_and(|due| due <= now) {
                self.worker.ask(Request::Look { interval: self.view.interval });
                (self.began, self.ended) = (Some(now), None);
            }
            terminal.draw(|frame| screen::draw(frame, &mut self.view, self.color)).map_err(failed)?;
            let time = self.due().map(|due| due.saturating_duration_since(Instant::now()));
            let happened = terminal.wait(self.signals, self.worker.as_fd(), time).map_err(failed)?;
            if let Some(signal) = happened.signal {
                return Ok(End::Signal(signal));
            }
            while let Some(reply) = self.worker.reply()? {
                if let Some(end) = self.take(reply)? {
                    return Ok(end);
                }
            }
            for key in happened.keys {
                match self.view.press(key) {
                    Action::Show => {}
                    Action::Quit => return Ok(End::Asked),
                    Action::Suspend => self.suspend = true,
                    Action::Stack { pid, lwp } => {
                        self.worker.ask(Request::Stack { pid, lwp, width: terminal.width() });
                    }
                }
            }
            let is_looking = self.began.is_some() && self.ended.is_none();
            if self.suspend && !is_looking {
                self.suspend = false;
                terminal.suspend().map_err(failed)?;
            }
        }
    }

    fn take(&mut self, reply: Reply) -> Result<Option<End>, Failure> {
        match reply {
            Reply::Failed(failure) => return Err(failure),
            Reply::Stack(lines) => self.view.show_stack(lines),
            Reply::Refresh(refresh) => {
                self.ended = Some(Instant::now());
                if have_ended(&refresh) {
                    return Ok(Some(End::Processes(refresh)));
                }
                if self.count.is_some_and(|count| refresh.number >= count) {
                    return Ok(Some(End::Asked));
                }
                self.view.show(refresh);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_look_delays_the_next_one() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let interval = Duration::from_secs(2);
        assert_eq!(due(began, at(3), interval), at(2000));
        assert_eq!(due(began, at(1900), interval), at(2400));
        assert_eq!(due(began, at(9000), interval), at(9500));
    }
}
