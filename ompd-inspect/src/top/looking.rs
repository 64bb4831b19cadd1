//! The looks of `top`: one at each process for each refresh.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ompd_inspection::{Verdicts, Wanted, Watched};
use ompd_process::{OpenError, OpenOptions};
use ompd_report::escape::escape;
use ompd_report::text::{self, How, View};
use ompd_report::top::{Process, Refresh, process};
use ompd_runtime::LayoutsFrom;

use crate::inputs;
use crate::inspecting::longest_pause;
use crate::output::Failure;

/// Processor times of less than this say little: the first look waits so long.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);

/// The process ids that targets name.
///
/// # Errors
/// One of them is a core file, or no process id.
pub fn process_ids<'n>(targets: impl IntoIterator<Item = &'n str>) -> Result<Vec<i32>, Failure> {
    let id = |target: &str| {
        let name = escape(target);
        match target.parse::<i32>() {
            Ok(pid) if target.bytes().all(|byte| byte.is_ascii_digit()) => Ok(pid),
            _ if target == "-" || Path::new(target).exists() => Err(Failure::with_remedy(
                format_args!("top needs a running process; {name} is a file"),
                format_args!("see the threads of a core file: ompd-inspect threads {name}"),
            )),
            _ => Err(Failure::with_remedy(
                format_args!("{name} is no process id"),
                format_args!("look its id up (pgrep -a NAME), or use --name {name}"),
            )),
        }
    };
    targets.into_iter().map(id).collect()
}

/// Processes that are looked at again and again.
#[derive(Debug)]
pub struct Looker<'a> {
    slots: Vec<Slot<'a>>,
    options: &'a OpenOptions,
    layouts: LayoutsFrom<'a>,
    number: u64,
    opened: Instant,
}

#[derive(Debug)]
struct Slot<'a> {
    pid: i32,
    watched: Option<Watched<'a>>,
    /// What the last look has found.
    shown: Process,
}

impl<'a> Looker<'a> {
    /// Opens the processes. Those that cannot be opened say why in each refresh.
    ///
    /// # Errors
    /// None can be opened.
    pub fn open(pids: &[i32], options: &'a OpenOptions, layouts: LayoutsFrom<'a>) -> Result<Looker<'a>, Failure> {
        let slot = |pid: &i32| Slot { pid: *pid, watched: None, shown: Process { pid: *pid, ..Process::default() } };
        let slots = pids.iter().map(slot).collect();
        let mut looker = Looker { slots, options, layouts, number: 0, opened: Instant::now() };
        let mut failure = None;
        for slot in &mut looker.slots {
            if let Err(error) = slot.open(options, layouts) {
                failure.get_or_insert(inputs::not_opened(&slot.pid.to_string(), error));
            }
        }
        match failure {
            Some(failure) if looker.slots.iter().all(|slot| slot.watched.is_none()) => Err(failure),
            _ => Ok(looker),
        }
    }

    /// Looks once at each process that has not ended. Each is held for less than half of the interval, whatever happens.
    pub fn look(&mut self, interval: Duration) -> Refresh {
        let max_pause = longest_pause(self.options, interval);
        if self.number == 0 {
            std::thread::sleep(FIRST_INTERVAL.saturating_sub(self.opened.elapsed()));
        }
        self.number += 1;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut refresh = Refresh::new(self.number, time);
        for slot in &mut self.slots {
            slot.look(self.options, self.layouts, max_pause);
            refresh.processes.push(slot.shown.clone());
        }
        refresh
    }

    /// The stack of a thread at the last look, as lines of at most `width` columns. The process is not stopped.
    pub fn stack(&self, pid: i32, lwp: i32, width: u16) -> Vec<String> {
        let inspection =
            self.slots.iter().find(|slot| slot.shown.pid == pid).and_then(|slot| slot.watched.as_ref()?.last());
        let Some(inspection) = inspection else { return vec!["The process was not read.".to_owned()] };
        let how = How { width: Some(width), ..How::default() };
        text::plain(&text::render(inspection, View::Stack(lwp), how)).lines().map(str::to_owned).collect()
    }
}

impl<'a> Slot<'a> {
    fn open(&mut self, options: &'a OpenOptions, layouts: LayoutsFrom<'a>) -> Result<(), OpenError> {
        let verdicts = Verdicts::OfEachLook;
        let wanted = Wanted { layouts, locals: false, verdicts, samples: 2, interval: Duration::ZERO, turns: None };
        match Watched::open(self.pid, options, wanted) {
            Ok(watched) => {
                self.watched = Some(watched);
                Ok(())
            }
            Err(error) => {
                self.refused(&error);
                Err(error)
            }
        }
    }

    fn look(&mut self, options: &'a OpenOptions, layouts: LayoutsFrom<'a>, max_pause: Duration) {
        if self.shown.ended || self.watched.is_none() && self.open(options, layouts).is_err() {
            return;
        }
        let Some(watched) = &mut self.watched else { return };
        match watched.look(max_pause) {
            Ok(inspection) => {
                let pid = inspection.process.pid.unwrap_or(self.pid);
                if let Some(inspection) = watched.last() {
                    self.shown = process(pid, inspection, watched.cpu_shares());
                }
            }
            Err(error) => self.refused(&error),
        }
    }

    fn refused(&mut self, error: &OpenError) {
        if matches!(error, OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. }) {
            self.shown.ended = true;
            self.shown.refusal = None;
            return;
        }
        let remedy = error.remedy().map(|remedy| format!("; {}", escape(&remedy))).unwrap_or_default();
        self.shown.refusal = Some(format!("{}{remedy}", escape(&error.to_string())));
    }
}
