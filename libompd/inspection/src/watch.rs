//! A live process: stopped, read and looked at again until a verdict is confirmed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use ompd_process::live::{Live, StillRead, listing};
use ompd_process::{Holder, OpenError, OpenOptions, Pause, Target as _};
use ompd_runtime::model::{Issue, TeamId, Trouble};
use ompd_runtime::os::Blocked;
use ompd_runtime::waits_for::{self, Certainty, Node, Verdict};
use ompd_runtime::{Runtime, discover_by};
use ompd_stack::{Cache, Stacks, Unwound};

use crate::look::Places;
use crate::progress::{self, Moved, Progress};
use crate::turns::Turns;
use crate::{Inspection, Verdicts, Wanted, look};

/// Time between two looks that the user did not ask for, in milliseconds; there is one look more than that. A stop interrupts the
/// calls that threads sleep in. Before the next stop they need the processor for long enough to go back to sleep.
const BETWEEN_LOOKS: [u64; 4] = [1, 5, 10, 20];

/// A suspicion is looked at once more after this time, as what it rests on may end. What moves meanwhile is not stuck.
pub(crate) const SUSPECT_INTERVAL: Duration = Duration::from_millis(500);

/// How often a process is opened that executes another program in the meantime.
pub(crate) const OPENED: usize = 5;

/// How often a look is repeated because a thread that was left asleep woke during it.
const REPEATS: usize = 3;

/// So often what is copied in a stop may lack something, before all is read in the stop: what the process does changes too fast.
const MAX_FAILED_COPIES: u32 = 2;

/// Whatever does not change while the process runs is read before the stop, names are looked up after it.
pub(crate) fn inspect_live(pid: i32, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    let mut tries = 1;
    loop {
        match watch_process(pid, options, wanted) {
            // What was read of its files is of the program before.
            Err(OpenError::Executed { .. }) if tries < OPENED => tries += 1,
            Err(error) => return Err(error),
            Ok(mut inspection) => {
                let pid = inspection.process.pid.unwrap_or(pid);
                // A file of each thread is read for that. They are shown together with verdicts.
                if wanted.verdicts == Verdicts::Confirmed {
                    inspection.children = listing::children(&options.proc_root, pid);
                }
                return Ok(inspection);
            }
        }
    }
}

fn watch_process(pid: i32, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    let mut watch = Watch::open(pid, options, wanted)?;
    let (began, first) = watch.look(Live::stop)?;
    let (mut at, mut before, mut last) = (began, None, None);
    // A thread that moves and returns to where it was has moved.
    let mut meanwhile = Moved::default();
    for _ in 1..wanted.samples {
        std::thread::sleep(wanted.interval.saturating_sub(at.elapsed()));
        let (now, look) = watch.look(Live::stop)?;
        meanwhile.add(&progress::compare(last.as_ref().unwrap_or(&first), &look, now - at), &look);
        before = last.replace(look);
        at = now;
    }
    let Some(mut last) = last else { return watch.settled(first) };
    let before = before.as_ref().unwrap_or(&first);
    last.waits_for.verdicts.retain(|verdict| has(before, verdict));
    if last.waits_for.verdicts.is_empty() {
        last = watch.settled(last)?;
    }
    let mut progress = progress::compare(&first, &last, at - began);
    meanwhile.tell(&mut progress, &last);
    drop_moving(&mut last, &progress);
    last.progress = last.process.held_by.is_none().then_some(progress);
    Ok(last)
}

/// A process that is looked at any number of times.
pub(crate) struct Watch<'a> {
    pub(crate) live: Live,
    runtimes: Vec<Box<dyn Runtime>>,
    places: Places,
    pub(crate) wanted: Wanted<'a>,
    cache: Cache,
    /// When the last look has read processor times.
    pub(crate) cpu_at: Instant,
    /// Threads of which registers are needed that only a stop shows.
    held: BTreeSet<i32>,
    /// Whether these are stopped for the whole read: a stop for their registers alone was in vain.
    holds: bool,
    /// How often something was missing in what was copied in a stop.
    copies_fail: u32,
}

impl<'a> Watch<'a> {
    /// Opens the process and finds its runtimes. It is not stopped yet.
    pub(crate) fn open(pid: i32, options: &OpenOptions, wanted: Wanted<'a>) -> Result<Watch<'a>, OpenError> {
        let _turn = wanted.turns.map(Turns::take);
        let live = Live::open(pid, options)?;
        ompd_stack::prepare(live.arch().machine);
        let runtimes = discover_by(&live, wanted.layouts);
        let places = Places::of(&live);
        Ok(Watch {
            live,
            runtimes,
            places,
            wanted,
            cache: Cache::default(),
            cpu_at: Instant::now(),
            held: BTreeSet::new(),
            holds: false,
            copies_fail: 0,
        })
    }
}

/// What stops have cost, perhaps in vain.
#[derive(Default)]
struct InVain {
    pause: Duration,
    stops: u32,
}

impl InVain {
    fn add<T>(&mut self, look: &StillRead<T>) {
        self.pause += look.pause;
        self.stops += look.stops;
    }
}

impl Watch<'_> {
    /// Reads the process while its threads sleep, and makes sense of it. If all of them have to be stopped: what the attempt cost.
    fn look_still(&mut self) -> Result<Result<(Instant, Inspection), InVain>, OpenError> {
        if self.live.pause() == Pause::Never
            && let Some(holder) = self.live.other_tracer()
            && let Some(look) = self.look_held(holder)?
        {
            return Ok(Ok(look));
        }
        self.look_unstopped()
    }

    /// As [`Watch::look_still`], also of a process that another one holds.
    fn look_unstopped(&mut self) -> Result<Result<(Instant, Inspection), InVain>, OpenError> {
        let is_held = self.live.process().held_by.is_some();
        let never = is_held || self.live.pause() == Pause::Never;
        // Variables of the program lie in registers that only a stop shows.
        if !never && (self.live.pause() == Pause::Brief || self.wanted.locals) {
            return Ok(Err(InVain::default()));
        }
        let (mut cost, mut repeats) = (InVain::default(), 0);
        loop {
            let (began, stopped_at) = (Instant::now(), SystemTime::now());
            let read = |live: &Live| {
                let stacks = live.unplanned(|live| Stacks::capture(live));
                look::read(live, &self.runtimes, &self.places, stacks)
            };
            let none = BTreeSet::new();
            let held = if self.holds { &self.held } else { &none };
            let Some(mut still) = self.live.read_still(held, read)? else { return Ok(Err(cost)) };
            let is_torn = !still.moved.is_empty();
            if is_torn && repeats < REPEATS && never {
                repeats += 1;
                continue;
            }
            if is_torn && (is_held || !never) || !never && self.live.was_cut_short() {
                cost.add(&still);
                return Ok(Err(cost));
            }
            still.found.stopped_at = Some(stopped_at);
            self.cpu_at = Instant::now();
            still.found.cpu = if self.wanted.samples > 1 { self.live.cpu_times() } else { HashMap::new() };
            let found = self.finish_still(&mut still, never, &mut repeats)?;
            cost.add(&still);
            let Some(mut inspection) = found else {
                self.holds = true;
                continue;
            };
            (inspection.pause, inspection.stops) = (Some(cost.pause), cost.stops);
            inspection.stopped_threads = Some(still.stopped);
            if is_held {
                // One moment shows less of a thread that spins than two, and whether a call has returned is not shown.
                inspection.waits_for.verdicts.iter_mut().for_each(|verdict| verdict.certainty = Certainty::Suspect);
            }
            if is_torn {
                inspection.waits_for.verdicts.clear();
                inspection.issues.push(Issue::new("target", Trouble::Ran { lwps: still.moved }));
            }
            return Ok(Ok((began, inspection)));
        }
    }

    /// Makes sense of what was read while threads slept, and stops those for their registers of which it needs more. `None` if that
    /// was in vain: all has to be read while these threads are stopped.
    fn finish_still(
        &mut self,
        still: &mut StillRead<look::Read>,
        never: bool,
        repeats: &mut usize,
    ) -> Result<Option<Inspection>, OpenError> {
        let mut stops = !never && !self.holds && !self.held.is_empty();
        let mut known: Option<Unwound> = None;
        loop {
            if stops && (self.holds || !self.live.add_registers(still, &self.held, |live, read| read.is_in(live))?) {
                return Ok(None);
            }
            let may_add = !never && *repeats <= REPEATS;
            *repeats += 1;
            self.cache.take_unseen();
            let unwound = match known.take() {
                None => look::unwind(&self.live, &self.runtimes, &still.found, &self.cache),
                Some(mut known) => {
                    let held = |lwp| self.held.contains(&lwp);
                    look::unwind_again(&self.live, &self.runtimes, &still.found, &mut known, &held, &self.cache);
                    known
                }
            };
            stops = may_add && self.hold_unseen();
            if stops {
                known = Some(unwound);
                continue;
            }
            let report = look::follow(&self.live, &self.runtimes, &still.found, unwound, &self.cache);
            stops = may_add && self.hold_unseen();
            if stops {
                known = Some(report.into_unwound());
                continue;
            }
            let read = still.found.clone();
            let inspection = look::conclude(&self.live, &self.runtimes, read, report, self.wanted, &self.cache);
            stops = may_add && self.hold_unseen();
            if !stops {
                return Ok(Some(inspection));
            }
            known = Some(inspection.stacks.into_unwound());
        }
    }

    /// Adds sleeping threads to those that are stopped, if their stacks need registers that only a stop shows. False if none does.
    fn hold_unseen(&mut self) -> bool {
        let unseen = self.cache.take_unseen();
        let new = unseen.into_iter().filter(|lwp| !self.held.contains(lwp) && self.live.may_be_stopped(*lwp));
        let new: Vec<i32> = new.collect();
        self.held.extend(&new);
        !new.is_empty()
    }

    /// Reads the process, stopped if it has to be, and makes sense of it. Also when that was.
    pub(crate) fn look(
        &mut self,
        stop: impl FnOnce(&mut Live) -> Result<(), OpenError>,
    ) -> Result<(Instant, Inspection), OpenError> {
        let _turn = self.wanted.turns.map(Turns::take);
        let InVain { mut pause, mut stops } = match self.look_still()? {
            Ok(look) => return Ok(look),
            Err(in_vain) => in_vain,
        };
        let live = &mut self.live;
        let (runtimes, places) = (&self.runtimes, &self.places);
        if live.needs_rehearsal() {
            live.rehearse(|live| look::read(live, runtimes, places, Stacks::default()));
        }
        let mut began = Instant::now();
        let mut stopped_at = SystemTime::now();
        if let Err(error) = stop(live) {
            let OpenError::OtherTracer { tracer, ref name, .. } = error else { return Err(error) };
            return self.look_held(Holder { pid: tracer, name: name.clone() })?.ok_or(error);
        }
        let mut repeats = 0;
        let mut read = loop {
            let stacks = Stacks::capture(live);
            let is_copied = live.has_plan() && self.copies_fail < MAX_FAILED_COPIES && !live.is_late();
            let read = if is_copied {
                pause += live.resume_with_copy().unwrap_or_else(|| began.elapsed());
                let read = look::read(live, runtimes, places, stacks);
                live.end_copy().then_some(read)
            } else {
                let read = look::read(live, runtimes, places, stacks);
                pause += live.resume().unwrap_or_else(|| began.elapsed());
                Some(read)
            };
            match read {
                Some(read) if live.woken().is_empty() || repeats == REPEATS => break read,
                Some(_) => repeats += 1,
                None => self.copies_fail += 1,
            }
            stops += 1;
            (began, stopped_at) = (Instant::now(), SystemTime::now());
            live.stop_again()?;
        };
        let mut asleep = false;
        if live.was_cut_short()
            && live.woken().is_empty()
            && let Some(whole) = live.read_asleep(|live| {
                let stacks = live.unplanned(|live| Stacks::capture(live));
                look::read(live, runtimes, places, stacks)
            })
        {
            (read, asleep) = (whole, true);
        }
        read.pause = Some(pause);
        read.stopped_at = Some(stopped_at);
        self.cpu_at = Instant::now();
        read.cpu = if self.wanted.samples > 1 { live.cpu_times() } else { HashMap::new() };
        let mut inspection = look::finish(live, &self.runtimes, read, self.wanted, &self.cache);
        inspection.stops += stops;
        inspection.read_asleep = asleep;
        if !live.woken().is_empty() {
            inspection.waits_for.verdicts.clear();
            let woke = live.woken().iter().map(|lwp| Issue::new("target", Trouble::Woke { lwp: *lwp }));
            inspection.issues.extend(woke);
        }
        Ok((began, inspection))
    }

    /// Reads a process as another tracer holds it. `None` if that one lets threads run.
    fn look_held(&mut self, holder: Holder) -> Result<Option<(Instant, Inspection)>, OpenError> {
        self.live.leave_to(Some(holder));
        let look = self.look_unstopped();
        self.live.leave_to(None);
        Ok(look?.ok())
    }

    /// A real hang is still there at a second stop: a verdict that two looks do not agree on must not be reported. A thread that
    /// waits without sleeping may be caught at a moment that shows nothing. So a process is looked at again if no thread of it is
    /// seen to move.
    fn settled(&mut self, first: Inspection) -> Result<Inspection, OpenError> {
        if self.wanted.verdicts != Verdicts::Confirmed {
            return Ok(first);
        }
        let mut earlier: Vec<Inspection> = Vec::new();
        let mut latest = first;
        loop {
            let told = |verdict: &Verdict| earlier.iter().any(|look| has(look, verdict));
            let confirmed = latest.waits_for.verdicts.iter().any(told);
            let open = !latest.waits_for.verdicts.is_empty() || waits_for::may_be_stuck(&latest.runtimes, &latest.os);
            let Some(wait) = BETWEEN_LOOKS.get(earlier.len()).filter(|_| open && !confirmed) else {
                latest.waits_for.verdicts.retain(told);
                return self.suspected(latest);
            };
            std::thread::sleep(Duration::from_millis(*wait));
            // Nothing has been executed since: another look would show the same.
            if self.live.is_still() {
                return self.suspected(latest);
            }
            let (_, mut next) = self.look(Live::stop_again)?;
            next.pause = latest.pause.zip(next.pause).map(|(one, two)| one + two);
            next.stops += latest.stops;
            earlier.push(std::mem::replace(&mut latest, next));
        }
    }

    /// Looks at a suspected hang once more.
    fn suspected(&mut self, mut confirmed: Inspection) -> Result<Inspection, OpenError> {
        // With `--samples` the looks before have shown what moves.
        if self.wanted.samples > 1 || !confirmed.waits_for.verdicts.iter().any(is_suspect) {
            return Ok(confirmed);
        }
        let (began, cpu) = (Instant::now(), self.live.cpu_times());
        std::thread::sleep(SUSPECT_INTERVAL);
        if self.live.is_still() {
            // Who is held does not move.
            confirmed.unmoved = confirmed.process.held_by.is_none().then(|| began.elapsed());
            return Ok(confirmed);
        }
        // The tracer has let it go since.
        if confirmed.process.held_by.is_some() {
            let (_, mut now) = self.look(Live::stop_again)?;
            now.waits_for.verdicts.clear();
            return Ok(now);
        }
        let used = self.live.cpu_times();
        let (at, mut later) = match self.look(Live::stop_again) {
            Ok(look) => look,
            Err(why) => {
                // What ends was not stuck. Otherwise it is as it was.
                let ended = matches!(
                    why,
                    OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. } | OpenError::Executed { .. }
                );
                confirmed.waits_for.verdicts.retain(|verdict| !ended || !is_suspect(verdict));
                return Ok(confirmed);
            }
        };
        let pause = confirmed.pause.zip(later.pause).map(|(one, two)| one + two);
        let stops = confirmed.stops + later.stops;
        let progress = progress::compare(&later, &confirmed, at - began);
        drop_moving(&mut confirmed, &progress);
        // A thread that sleeps until something from outside happens may have come back to that call between two looks.
        let ran = |lwp: &i32| {
            let used = used.get(lwp).zip(cpu.get(lwp)).map(|(after, before)| after.saturating_sub(*before));
            used.is_some_and(|used| used > progress::NOTHING)
        };
        let outside = confirmed.os.threads.iter().filter(|thread| matches!(thread.blocked, Blocked::Outside(_)));
        let running: HashSet<i32> = outside.map(|thread| thread.lwp).filter(ran).collect();
        let gets_on = |node: &Node| matches!(node, Node::Thread(lwp) if running.contains(lwp));
        confirmed.waits_for.verdicts.retain(|verdict| !is_suspect(verdict) || !verdict.core.iter().any(gets_on));
        later.waits_for.verdicts.clear();
        let mut shown = if confirmed.waits_for.verdicts.is_empty() { later } else { confirmed };
        if !shown.waits_for.verdicts.iter().any(is_suspect) {
            shown.unmoved = None;
        }
        (shown.pause, shown.stops) = (pause, stops);
        Ok(shown)
    }
}

/// Drops the suspicions of what has moved, and says of the others how long nothing did.
pub(crate) fn drop_moving(inspection: &mut Inspection, progress: &Progress) {
    let threads: HashSet<i32> = progress.threads.iter().filter(|t| t.moved).map(|t| t.lwp).collect();
    let teams: HashSet<(usize, TeamId)> =
        progress.teams.iter().filter(|t| t.moved).map(|t| (t.runtime, t.team)).collect();
    let moves = |node: &Node| match node {
        Node::Thread(lwp) => threads.contains(lwp),
        Node::Barrier(runtime, team) | Node::RegionEnd(runtime, team) | Node::RegionStart(runtime, team) => {
            teams.contains(&(*runtime, *team))
        }
        _ => false,
    };
    inspection.waits_for.verdicts.retain(|verdict| !is_suspect(verdict) || !verdict.core.iter().any(moves));
    // A process that another one holds does not move.
    let is_free = inspection.process.held_by.is_none();
    inspection.unmoved = (is_free && inspection.waits_for.verdicts.iter().any(is_suspect)).then_some(progress.elapsed);
}

pub(crate) fn is_suspect(verdict: &Verdict) -> bool {
    verdict.certainty == Certainty::Suspect
}

/// True if a look has the same verdict.
fn has(look: &Inspection, verdict: &Verdict) -> bool {
    look.waits_for.verdicts.iter().any(|own| stuck_threads(own) == stuck_threads(verdict))
}

/// What has to be the same of a verdict at two stops: its kind, and the threads it is about.
pub(crate) type Stuck = (&'static str, &'static str, Vec<i32>);

/// That of a verdict.
pub(crate) fn stuck_threads(verdict: &Verdict) -> Stuck {
    let threads = verdict.core.iter().filter_map(|node| match node {
        Node::Thread(lwp) => Some(*lwp),
        _ => None,
    });
    (verdict.certainty.word(), verdict.situation.word(), threads.collect())
}
