//! Values of options.

use std::time::Duration;

use clap::ValueEnum;
use ompd_process::Pause;
use ompd_runtime::Origin;
use ompd_runtime::waits_for::Certainty;

/// A source of layouts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OriginName {
    /// Debug information.
    Dwarf,
    /// Tables the runtime exports about itself.
    Table,
    /// Symbol tables.
    Symbol,
    /// The runtime's instructions.
    Code,
    /// Layouts shipped with this program.
    Profile,
}

impl From<OriginName> for Origin {
    fn from(name: OriginName) -> Origin {
        match name {
            OriginName::Dwarf => Origin::Dwarf,
            OriginName::Table => Origin::Table,
            OriginName::Symbol => Origin::Symbol,
            OriginName::Code => Origin::Code,
            OriginName::Profile => Origin::Profile,
        }
    }
}

/// A verdict that makes the command fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A proven hang.
    Deadlock,
    /// A hang that something from outside may end.
    Suspect,
    /// Threads that wait for one that may still let them continue.
    Waiting,
}

impl FailOn {
    /// Whether a verdict is as certain as this, or more.
    pub fn includes(self, certainty: Certainty) -> bool {
        certainty
            <= match self {
                FailOn::Deadlock => Certainty::Deadlock,
                FailOn::Suspect => Certainty::Suspect,
                FailOn::Waiting => Certainty::Waiting,
            }
    }
}

/// When to stop a process.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PauseWhen {
    /// If it does not stand still by itself.
    Auto,
    /// For each look.
    Brief,
    /// Never.
    Never,
}

impl From<PauseWhen> for Pause {
    fn from(when: PauseWhen) -> Pause {
        match when {
            PauseWhen::Auto => Pause::Auto,
            PauseWhen::Brief => Pause::Brief,
            PauseWhen::Never => Pause::Never,
        }
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A time with an optional unit; seconds without one.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let with_unit = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = with_unit.unwrap_or((text, 1.0));
    let seconds: Option<f64> = number.parse().ok().map(|n: f64| n * unit);
    let seconds = seconds.filter(|s| (0.0..=604_800.0).contains(s));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time such as 1s, 0.5, 200ms, 5m or 2h is wanted, at most a week".to_owned())
}

pub(super) fn lead(text: &str) -> Result<Duration, String> {
    let most = crate::job::MOST_AHEAD;
    let is_short = |time: &Duration| *time <= most;
    duration(text).ok().filter(is_short).ok_or_else(|| format!("a time of at most {} s is wanted", most.as_secs()))
}

/// How many hosts are asked at once.
pub(super) fn fanout(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| "a number from 1 to 1024 is wanted".to_owned())
}

/// A time in milliseconds.
pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| "a number of milliseconds is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "-1s", "nan", "1e9s", "1d", "m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
