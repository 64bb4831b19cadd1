//! What is aimed at, beside what was reached in the same run.

use std::fmt::Write as _;

use super::Limit;

/// One goal. The benchmark succeeds without it, but not without its limits.
pub struct Goal {
    what: String,
    /// At most this, or at least.
    most: bool,
    goal: f64,
    unit: &'static str,
    /// Nothing if it was not measured.
    measured: Option<f64>,
}

impl Goal {
    /// A value that may be this at most.
    pub fn most(what: impl Into<String>, goal: f64, unit: &'static str, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), most: true, goal, unit, measured }
    }

    /// A value that must be this at least.
    pub fn least(what: impl Into<String>, goal: f64, unit: &'static str, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), most: false, goal, unit, measured }
    }

    fn is_reached(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(if self.most { measured <= self.goal } else { measured >= self.goal })
    }

    fn bound(&self) -> String {
        let word = if self.most { "at most" } else { "at least" };
        format!("{word} {} {}", self.goal, self.unit)
    }

    /// The goal as a limit, if it was measured.
    pub fn limit(&self) -> Option<Limit> {
        let (measured, kept) = (self.measured?, self.is_reached()?);
        Some(Limit { what: format!("{}, {}", self.what, self.bound()), measured, unit: self.unit, kept })
    }
}

/// All goals as a table.
pub fn table(goals: &[Goal]) -> String {
    let mut text = String::from("| goal | bound | measured | |\n|---|---|---:|---|\n");
    for goal in goals {
        let verdict = match goal.is_reached() {
            Some(true) => "reached",
            Some(false) => "**not reached**",
            None => "not measured",
        };
        let measured = goal.measured.map_or_else(|| "–".to_owned(), |value| format!("{value:.2} {}", goal.unit));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {measured} | {verdict} |", goal.what, goal.bound());
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_said() {
        let goals = [
            Goal::most("pause", 1.3, "×", Some(1.3)),
            Goal::most("pause", 1.3, "×", Some(1.4)),
            Goal::least("gdb's time", 20.0, "×", Some(19.0)),
            Goal::least("gdb's time", 20.0, "×", None),
        ];
        let text = table(&goals);
        let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
        let verdicts: Vec<&str> = rows.filter_map(|line| line.trim_end_matches(" |").rsplit(" | ").next()).collect();
        assert_eq!(verdicts, ["reached", "**not reached**", "**not reached**", "not measured"]);
        assert!(text.contains("| pause | at most 1.3 × | 1.40 × | **not reached** |"), "{text}");
        assert_eq!(goals.iter().filter_map(Goal::limit).count(), 3);
    }
}
