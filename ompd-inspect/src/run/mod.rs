//! `ompd-inspect run`: starts a program, and reports when it hangs or its time is over.
//!
//! While the program uses processor time nothing but that is looked at. Only a process that uses none is stopped and
//! inspected, less and less often. The program and what it has started end before this process does.

mod idle;
mod program;
mod record;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use ompd_process::live::listing::{self, ProcessEntry};
use ompd_report::escape::escape;

use crate::args::{FailOn, Options, RunArgs};
use crate::inspecting::{FAILED, Inspecting};
use crate::output::{Failure, ReportFile, redacted};
use crate::signals::Signals;
use idle::Idle;
use program::{NotStarted, Program, take_signals, wait};
use report::{Occasion, Reported};

/// The time of the program was over (as timeout(1)).
const TIME_OVER: u8 = 124;
/// This program failed before it could start the other (as timeout(1) and env(1)).
const FAILED_ITSELF: u8 = 125;
/// The program cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;

/// Time between two looks at the processor time.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks whether an inspection is done.
const WHILE_INSPECTING: Duration = Duration::from_millis(20);

/// Runs the program; gives the exit status, and says on standard error what there is to say.
pub fn run(args: &RunArgs, options: &Options, color: ColorChoice) -> u8 {
    let say = |text: &str| {
        let mut err = AutoStream::new(io::stderr(), color);
        // Nothing is left to be done if standard error is closed.
        let _ = err.write_all(redacted(options.redactor().as_ref(), text).as_bytes());
    };
    let fail = |failure: &Failure| say(&format!("ompd-inspect: {failure}\n"));
    let prepare = |path: &PathBuf| ReportFile::prepare(path, "--on-hang");
    let prepared = check(options).and_then(|()| {
        let variables = if args.record { record::variables()? } else { Vec::new() };
        Ok((args.on_hang.as_ref().map(prepare).transpose()?, variables))
    });
    let (on_hang, variables) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            fail(&failure);
            return FAILED_ITSELF;
        }
    };
    let started = take_signals().map_err(NotStarted::Itself).and_then(|signals| {
        let program = Program::start(&args.program, &variables, &signals)?;
        Ok((signals, program))
    });
    let (signals, mut program) = match started {
        Ok(started) => started,
        Err(not_started) => {
            fail(&Failure::new(not_started.to_string()));
            return match not_started {
                NotStarted::NotFound(_) => NOT_FOUND,
                NotStarted::NotExecutable(..) => NOT_EXECUTABLE,
                NotStarted::Itself(_) => FAILED_ITSELF,
            };
        }
    };
    let inspecting = Inspecting::new(options, false, true);
    let watching = Watching { args, options, inspecting: &inspecting, signals: &signals };
    let reported = match watching.watch(&mut program) {
        End::Own(status) => return status,
        End::Reported(reported) => reported,
    };
    let status = match reported.occasion {
        Occasion::Hang => FAILED,
        Occasion::Time => TIME_OVER,
    };
    let name = escape(&args.program.first().map(|name| name.to_string_lossy()).unwrap_or_default());
    let (pid, seconds) = (program.pid(), program.age().as_secs_f64());
    let what = match reported.occasion {
        Occasion::Hang => format!("hangs, {seconds:.1} s after its start"),
        Occasion::Time => format!("has not ended in {seconds:.1} s"),
    };
    say(&format!("ompd-inspect: {name} (process {pid}) {what}\n"));
    let mut redactor = options.redactor();
    if let Some(redactor) = &mut redactor {
        redactor.hide_directories(&inspecting.directories());
    }
    say(&redacted(redactor.as_ref(), &reported.text));
    let json = redacted(redactor.as_ref(), &reported.json);
    if let Err(failure) = on_hang.map_or(Ok(()), |file| file.write(|out| out.write_all(json.as_bytes()))) {
        fail(&failure);
    }
    let left = program.end(&signals, &options.proc_root, args.kill_after);
    if left > 0 {
        let what = if left == 1 { "1 process does" } else { &format!("{left} processes do") };
        say(&format!("ompd-inspect: {what} not end after SIGKILL (uninterruptible sleep)\n"));
    }
    status
}

/// Refuses options that mean nothing here.
fn check(options: &Options) -> Result<(), Failure> {
    let meaningless = [
        (options.json, "--json", "write the report as JSON with --on-hang FILE"),
        (options.output.is_some(), "--output", "reports are on standard error; redirect it, or use --on-hang FILE"),
        (options.name.is_some(), "--name", "leave it out: the program is inspected with all its child processes"),
        (options.user, "--user", "leave it out: the program is inspected with all its child processes"),
    ];
    match meaningless.into_iter().find(|(is_set, ..)| *is_set) {
        Some((_, option, remedy)) => Err(Failure::with_remedy(format_args!("run has no option {option}"), remedy)),
        None => Ok(()),
    }
}

/// How a program came to its end, or is to.
enum End {
    /// By itself, or by a signal that was passed on: with this exit status.
    Own(u8),
    /// There is a report, and the program is still there.
    Reported(Reported),
}

/// What a program is watched by.
struct Watching<'a> {
    args: &'a RunArgs,
    options: &'a Options,
    inspecting: &'a Inspecting<'a>,
    signals: &'a Signals,
}

impl Watching<'_> {
    fn watch(&self, program: &mut Program) -> End {
        let deadline = self.args.timeout.and_then(|time| program.began().checked_add(time));
        let interval = INTERVAL.min(self.args.idle / 4).max(WHILE_INSPECTING);
        let mut idle = Idle::new(self.args.idle);
        loop {
            let now = Instant::now();
            let time = deadline.map_or(interval, |deadline| interval.min(deadline.saturating_duration_since(now)));
            wait(self.signals, time, program.uncollected());
            if let Some(status) = program.collect() {
                return End::Own(status);
            }
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let family = family(&self.options.proc_root, program.pid());
            let due = idle.due(&family, Instant::now());
            if !is_over && due.is_empty() {
                continue;
            }
            let occasion = if is_over { Occasion::Time } else { Occasion::Hang };
            let hangs = self.options.fail_on.unwrap_or(FailOn::Deadlock);
            let reported = thread::scope(|scope| {
                let look = || report::inspect(&family, &due, occasion, hangs, self.inspecting, self.options);
                let inspection = scope.spawn(look);
                // Ends of processes are collected later: until then the inspection may be tracing them.
                while !inspection.is_finished() {
                    wait(self.signals, WHILE_INSPECTING, program.uncollected());
                }
                inspection.join().unwrap_or(None)
            });
            if let Some(status) = program.collect() {
                return End::Own(status);
            }
            match reported {
                Some(reported) => return End::Reported(reported),
                None => idle.inspected(&due),
            }
        }
    }
}

/// The program and all that it has started.
fn family(proc_root: &Path, pid: i32) -> Vec<ProcessEntry> {
    ProcessEntry::find(proc_root, pid).into_iter().chain(listing::descendants(proc_root, pid)).collect()
}
