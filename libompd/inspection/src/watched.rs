//! A live process that is looked at again and again: what a live view shows.
//!
//! Each look is one stop. A verdict needs no further stops: it is kept if the look before has found the same. A suspicion is kept
//! if it was found for half a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ompd_process::live::Live;
use ompd_process::{OpenError, OpenOptions};
use ompd_runtime::waits_for::Verdict;

use crate::watch::{OPENED, SUSPECT_INTERVAL, Stuck, Watch, drop_moving, is_suspect, stuck_threads};
use crate::{Inspection, Wanted, progress};

/// A live process and the last look at it.
pub struct Watched<'a> {
    pid: i32,
    options: &'a OpenOptions,
    watch: Watch<'a>,
    last: Option<Last>,
    used: Used,
    shares: HashMap<i32, f64>,
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("pid", &self.pid).finish_non_exhaustive()
    }
}

struct Last {
    began: Instant,
    inspection: Inspection,
    /// Its verdicts, confirmed or not, and when each was first found.
    found: Vec<(Stuck, Instant)>,
}

/// Processor time that threads had used at a moment.
struct Used {
    at: Instant,
    by_lwp: HashMap<i32, Duration>,
}

impl Used {
    fn now(live: &Live) -> Used {
        Used { at: Instant::now(), by_lwp: live.cpu_times() }
    }

    /// The part of a processor that each thread has used since `before`, by LWP.
    fn shares(&self, before: &Used) -> HashMap<i32, f64> {
        let elapsed = self.at.saturating_duration_since(before.at).as_secs_f64();
        let share = |(lwp, now): (&i32, &Duration)| {
            // A thread that was not there, or another one with the id of one that was, has used all of it since.
            let was = before.by_lwp.get(lwp).filter(|was| *was <= now).copied().unwrap_or_default();
            (*lwp, (*now - was).as_secs_f64() / elapsed)
        };
        if elapsed > 0.0 { self.by_lwp.iter().map(share).collect() } else { HashMap::new() }
    }
}

impl<'a> Watched<'a> {
    /// Opens a process without stopping it. Of `wanted`, the interval has no meaning here.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(pid: i32, options: &'a OpenOptions, wanted: Wanted<'a>) -> Result<Watched<'a>, OpenError> {
        // Processor times are read where there are several looks.
        let watch = Watch::open(pid, options, Wanted { samples: wanted.samples.max(2), ..wanted })?;
        let used = Used::now(&watch.live);
        Ok(Watched { pid, options, watch, last: None, used, shares: HashMap::new() })
    }

    /// Looks once, and holds the process for no longer than `max_pause`. Files are opened again only if the process has mapped other code.
    ///
    /// # Errors
    /// It has ended, or was not stopped. After the latter another look may succeed.
    pub fn look(&mut self, max_pause: Duration) -> Result<&Inspection, OpenError> {
        if !self.watch.live.renew()? {
            self.open_again()?;
        }
        self.watch.live.limit_pause(max_pause);
        let mut tries = 1;
        let (began, mut inspection) = loop {
            match self.watch.look(Live::stop_again) {
                Err(OpenError::Executed { .. }) if tries < OPENED => {
                    tries += 1;
                    self.open_again()?;
                    self.watch.live.limit_pause(max_pause);
                }
                look => break look?,
            }
        };
        let used = Used { at: self.watch.cpu_at, by_lwp: inspection.cpu.clone() };
        self.shares = used.shares(&self.used);
        self.used = used;
        let before = self.last.as_ref();
        let since = |stuck: &Stuck| {
            let known = before.and_then(|before| before.found.iter().find(|(found, _)| found == stuck));
            known.map_or(began, |(_, since)| *since)
        };
        let stuck = inspection.waits_for.verdicts.iter().map(stuck_threads);
        let found: Vec<(Stuck, Instant)> = stuck
            .map(|stuck| {
                let since = since(&stuck);
                (stuck, since)
            })
            .collect();
        let is_confirmed = |verdict: &Verdict| {
            let time = began - since(&stuck_threads(verdict));
            if is_suspect(verdict) { time >= SUSPECT_INTERVAL } else { !time.is_zero() }
        };
        inspection.waits_for.verdicts.retain(is_confirmed);
        if let Some(before) = before {
            let progress = progress::compare(&before.inspection, &inspection, began - before.began);
            drop_moving(&mut inspection, &progress);
            inspection.progress = inspection.process.held_by.is_none().then_some(progress);
        }
        inspection.waits_for.find_waiting(&inspection.runtimes, &inspection.os);
        Ok(&self.last.insert(Last { began, inspection, found }).inspection)
    }

    /// The process executes another program, or has loaded a library.
    fn open_again(&mut self) -> Result<(), OpenError> {
        self.watch = Watch::open(self.pid, self.options, self.watch.wanted)?;
        self.last = None;
        Ok(())
    }

    /// The last look.
    pub fn last(&self) -> Option<&Inspection> {
        self.last.as_ref().map(|last| &last.inspection)
    }

    /// The part of a processor that each thread used between the last two looks, by LWP. Before the second look, it is the part
    /// since the process was opened.
    pub fn cpu_shares(&self) -> &HashMap<i32, f64> {
        &self.shares
    }
}
