//! Which processes use no processor time, and which have used some for long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ompd_process::live::listing::ProcessEntry;

/// The longest time between two inspections of a process that stays idle.
const LONGEST: Duration = Duration::from_secs(60);
/// A process that is busy for so many times as long as one has to be idle is inspected too: threads may spin where they wait.
const BUSY: u32 = 10;
/// The longest time between two inspections of a process that stays busy.
const LONGEST_BUSY: Duration = Duration::from_secs(600);
/// An idle process uses at most one part in so many of a processor: a timer that looks at something now and then.
const SHARE: u64 = 100;

/// Processes, and since when each is idle or busy.
#[derive(Debug)]
pub struct Idle {
    /// How long a process is idle before it is inspected.
    after: Duration,
    /// By process id.
    seen: HashMap<i32, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// When the process began, in ticks since boot.
    started: u64,
    /// Processor time it had used when it became idle, in ticks.
    ticks: u64,
    since: Instant,
    /// How long it is to be idle for the next inspection.
    wanted: Duration,
    /// When it was last idle or, while busy, inspected.
    busy_since: Instant,
    /// How long it is to be busy for the next inspection.
    busy_wanted: Duration,
}

impl Idle {
    /// Processes are due when they have been idle for so long, or busy for [`BUSY`] times as long.
    pub fn new(after: Duration) -> Idle {
        Idle { after, seen: HashMap::new() }
    }

    /// The processes of the family that are due for an inspection.
    pub fn due(&mut self, family: &[ProcessEntry], now: Instant) -> Vec<i32> {
        let after = self.after;
        self.seen.retain(|pid, _| family.iter().any(|process| process.pid == *pid));
        let is_due = |process: &&ProcessEntry| {
            let fresh = || Seen {
                started: process.started,
                ticks: process.ticks,
                since: now,
                wanted: after,
                busy_since: now,
                busy_wanted: after.saturating_mul(BUSY),
            };
            let seen = self.seen.entry(process.pid).or_insert_with(fresh);
            let idle = now - seen.since;
            let used = process.ticks.saturating_sub(seen.ticks);
            // Stopped by job control it does nothing, and that is meant.
            let is_stopped = matches!(process.state, 'T' | 't');
            let is_other = seen.started != process.started;
            if is_other || used.saturating_mul(SHARE) > ticks(idle) || is_stopped {
                let (busy_since, busy_wanted) = (seen.busy_since, seen.busy_wanted);
                *seen = fresh();
                if is_stopped || is_other {
                    return after.is_zero() && !is_stopped;
                }
                if now - busy_since < busy_wanted {
                    (seen.busy_since, seen.busy_wanted) = (busy_since, busy_wanted);
                    return after.is_zero();
                }
                seen.busy_wanted = busy_wanted.saturating_mul(2).min(LONGEST_BUSY.max(busy_wanted));
                return true;
            }
            let is_due = idle >= seen.wanted;
            if is_due {
                (seen.busy_since, seen.busy_wanted) = (now, after.saturating_mul(BUSY));
            }
            is_due
        };
        family.iter().filter(is_due).map(|process| process.pid).collect()
    }

    /// These were inspected and do not hang: they are due again when they have been idle for twice as long.
    pub fn inspected(&mut self, pids: &[i32]) {
        for pid in pids {
            if let Some(seen) = self.seen.get_mut(pid) {
                seen.wanted += seen.wanted.clamp(Duration::from_millis(100), LONGEST);
            }
        }
    }
}

/// A time in ticks.
fn ticks(time: Duration) -> u64 {
    // The unit of processor times in procfs, which is this on all machines (USER_HZ).
    const A_SECOND: u128 = 100;
    u64::try_from(time.as_millis() * A_SECOND / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_process_is_due_when_it_is_idle_and_then_less_often() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let mut process = ProcessEntry::find(Path::new("/proc"), own).expect("this process");
        process.state = 'S';
        let mut idle = Idle::new(Duration::from_secs(3));
        let began = Instant::now();
        let mut due = |process: &ProcessEntry, seconds: u64, inspected: bool| {
            let due = idle.due(std::slice::from_ref(process), began + Duration::from_secs(seconds));
            if inspected {
                idle.inspected(&due);
            }
            !due.is_empty()
        };
        assert!(!due(&process, 0, true));
        assert!(!due(&process, 2, true));
        // Less than a hundredth of a processor.
        process.ticks += 2;
        assert!(due(&process, 3, true));
        assert!(!due(&process, 5, true));
        assert!(due(&process, 6, true));
        assert!(!due(&process, 11, true) && due(&process, 12, true));
        // It computes.
        process.ticks += 1000;
        assert!(!due(&process, 30, true));
        assert!(!due(&process, 32, true) && due(&process, 33, true));
        process.state = 'T';
        assert!(!due(&process, 100, true));
        process.state = 'S';
        // It computes for ten times as long, and then for twice that.
        let busy: Vec<u64> = (101..=230)
            .filter(|second| {
                process.ticks += 100;
                due(&process, *second, true)
            })
            .collect();
        assert_eq!(busy, [130, 190]);
        process.state = 'T';
        assert!(!due(&process, 240, true));
        process.state = 'S';
        // Another process with the same id.
        process.started += 1;
        assert!(!due(&process, 250, true) && due(&process, 253, true));
    }
}
