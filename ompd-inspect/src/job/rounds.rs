//! Reports that come from each host again and again: rounds with one report of each.

use std::collections::{BTreeMap, BTreeSet};

use ompd_jobs::Merged;

/// The reports of one round, and which hosts still report.
#[derive(Debug)]
pub struct Rounds {
    /// What was known to be missing before.
    missing: Merged,
    /// Hosts that are asked and have not ended.
    hosts: BTreeSet<String>,
    /// Those that have ever reported.
    heard: BTreeSet<String>,
    /// Those that had ranks in the last report.
    with_ranks: BTreeSet<String>,
    /// Reports of this round, by host.
    reports: BTreeMap<String, Merged>,
    /// Why hosts report no more although their ranks have not ended.
    lost: BTreeMap<String, String>,
}

impl Rounds {
    /// Of these hosts.
    pub fn of(hosts: &[String], missing: Merged) -> Rounds {
        Rounds {
            missing,
            hosts: hosts.iter().cloned().collect(),
            heard: BTreeSet::new(),
            with_ranks: BTreeSet::new(),
            reports: BTreeMap::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Takes a report. Of two from a host in one round the later one counts.
    pub fn take(&mut self, host: String, report: Merged) {
        let has_ranks = !report.inspected.is_empty() || !report.failures.is_empty();
        match has_ranks {
            true => self.with_ranks.insert(host.clone()),
            false => self.with_ranks.remove(&host),
        };
        self.heard.insert(host.clone());
        self.reports.insert(host, report);
    }

    /// The host will report no more. `why`: the reason, which counts if it had ranks, or has never reported.
    pub fn end(&mut self, host: &str, why: &str) {
        if self.hosts.remove(host) && (self.with_ranks.remove(host) || !self.heard.contains(host)) {
            self.lost.insert(host.to_owned(), why.to_owned());
        }
    }

    /// Hosts that report no more although their ranks have not ended, with the reason.
    pub fn lost(&self) -> &BTreeMap<String, String> {
        &self.lost
    }

    /// Whether each host that has not ended has reported.
    pub fn is_complete(&self) -> bool {
        self.hosts.iter().all(|host| self.reports.contains_key(host))
    }

    /// All of this round together; the next one begins. Hosts that have not reported are named with the reason.
    pub fn finish(&mut self, why: &str) -> Merged {
        let mut all = self.missing.clone();
        for host in self.hosts.iter().filter(|host| !self.reports.contains_key(*host)) {
            all.add_failure(&format!("host {host}"), why);
        }
        for (host, why) in &self.lost {
            all.add_failure(&format!("host {host}"), why);
        }
        std::mem::take(&mut self.reports).into_values().for_each(|report| all.merge(report));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of a process that could not be inspected.
    fn report(what: &str) -> Merged {
        let mut merged = Merged::default();
        merged.add_failure(what, "x");
        merged
    }

    fn told(merged: &Merged) -> Vec<String> {
        let of =
            |(failure, of): (&ompd_jobs::Failure, &ompd_jobs::Targets)| format!("{}: {}", of.targets, failure.reason);
        merged.failures.iter().map(of).collect()
    }

    #[test]
    fn a_round_has_the_last_report_of_each_host_and_names_who_is_late() {
        let mut rounds = Rounds::of(&["a".to_owned(), "b".to_owned()], report("before"));
        rounds.take("a".to_owned(), report("one"));
        assert!(!rounds.is_complete());
        rounds.take("a".to_owned(), report("two"));
        assert_eq!(told(&rounds.finish("late")), ["host b: late", "before,two: x"]);
        rounds.take("a".to_owned(), report("one"));
        rounds.take("b".to_owned(), report("two"));
        assert!(rounds.is_complete());
        assert_eq!(told(&rounds.finish("late")), ["before,one,two: x"]);
    }

    #[test]
    fn a_host_whose_ranks_have_ended_is_not_missed() {
        let mut rounds = Rounds::of(&["a".to_owned(), "b".to_owned(), "c".to_owned()], Merged::default());
        rounds.take("a".to_owned(), Merged::default());
        rounds.end("a", "status 0");
        rounds.take("b".to_owned(), report("one"));
        rounds.end("b", "signal 9");
        rounds.end("c", "no such host");
        // Its end is heard of in a later round than its last report.
        let mut late = Rounds::of(&["a".to_owned()], Merged::default());
        late.take("a".to_owned(), Merged::default());
        late.finish("late");
        late.end("a", "status 0");
        assert!(late.lost().is_empty());
        assert!(rounds.is_complete() && rounds.hosts.is_empty());
        assert_eq!(told(&rounds.finish("late")), ["host c: no such host", "host b: signal 9", "one: x"]);
    }
}
