//! How far worksharing regions are.

use ompd_runtime::model::*;

use super::Page;
use crate::escape::escape;
use crate::words;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.loops.is_empty() {
        let text = "no team is in a worksharing region that the runtime keeps a record of (loops with a plain static \
                    schedule have none: each thread computes its own share)";
        page.wrapped("  ", anstyle::Style::new(), text, 2);
        return;
    }
    let rows = snapshot.loops.iter().map(|of| {
        let team = snapshot.team(of.team);
        let region = team.and_then(words::region).unwrap_or_else(|| "?".to_owned());
        let chunk = of.chunk.get().filter(|chunk| *chunk > 0).map_or_else(String::new, |chunk| format!(",{chunk}"));
        let turn = match of.ordered_turn.flat() {
            Some(number) => format!("; ordered: thread {number}'s turn"),
            None => String::new(),
        };
        vec![
            of.team.0.to_string(),
            region,
            of.kind.get().map_or("?", LoopKind::word).to_owned(),
            format!("{}{chunk}", of.schedule.get().map_or("?", LoopSchedule::word)),
            progress(of) + &turn,
            match of.members.len() {
                0 => "none".to_owned(),
                1 => format!("thread {}", words::ranges(&of.members)),
                _ => format!("threads {}", words::ranges(&of.members)),
            },
            of.completed.get().map_or_else(|| "?".to_owned(), |count| words::count(count as usize, "thread")),
        ]
    });
    let rows = rows.collect();
    page.table(&["team", "region", "kind", "schedule", "progress", "in it", "through"], rows);
    let mut reasons = Vec::new();
    let iterations = snapshot.loops.iter().filter_map(|of| of.iterations.why());
    let not_posted = snapshot.loops.iter().filter_map(|of| of.doacross.value()?.as_ref()?.missing.why());
    for why in iterations.chain(not_posted) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    for why in reasons {
        page.wrapped(" ?  ", anstyle::Style::new(), &escape(&why.to_string()), 4);
    }
    for of in &snapshot.loops {
        if let Some(Some(doacross)) = of.doacross.value() {
            let text = format!("team {}, doacross, iterations counted from 0: {}", of.team.0, posted(doacross));
            page.wrapped("", anstyle::Style::new(), &text, 4);
        }
    }
    for of in snapshot.loops.iter().filter(|of| !of.shares.is_empty()) {
        let shares: Vec<String> = of
            .shares
            .iter()
            .map(|share| match share.left {
                Some((from, to)) => format!("thread {}: {} left", share.member, to.saturating_sub(from)),
                None => format!("thread {}: none left", share.member),
            })
            .collect();
        page.wrapped("", anstyle::Style::new(), &format!("team {}: {}", of.team.0, shares.join(", ")), 4);
    }
}

/// What is known of how far a doacross loop is, in words.
fn posted(of: &Doacross) -> String {
    let mut parts = Vec::new();
    match (of.posted.get(), of.furthest.value()) {
        (Some(0), _) | (None, Some(None)) => parts.push("no iteration has been posted".to_owned()),
        (Some(count), Some(Some(last))) => {
            parts.push(format!("{count} iterations posted, {} is the last of them", words::iteration(last)));
        }
        (None, Some(Some(last))) => parts.push(format!("iterations posted up to {}", words::iteration(last))),
        (Some(count), _) => parts.push(format!("{count} iterations posted")),
        (None, None) => parts.push("which iterations have been posted is not known".to_owned()),
    }
    match of.missing.value() {
        Some(Some(first)) => parts.push(format!("the first that has not been is {}", words::iteration(first))),
        Some(None) => parts.push("all that there are".to_owned()),
        None => {}
    }
    let members = of.members.iter().map(|posted| match &posted.last {
        Some(last) => format!("thread {} {}", posted.member, words::iteration(last)),
        None => format!("thread {} none", posted.member),
    });
    let members: Vec<String> = members.collect();
    if !members.is_empty() {
        parts.push(format!("last of each: {}", members.join(", ")));
    }
    parts.join("; ")
}

/// `52 of 100 handed out (52%)`, or what is known of it.
pub fn progress(of: &Loop) -> String {
    match (of.handed_out.get(), of.iterations.get()) {
        (Some(out), Some(all)) if all > 0 => {
            let percent = u128::from(out.min(all)) * 100 / u128::from(all);
            format!("{out} of {all} handed out ({percent}%)")
        }
        (Some(out), _) => format!("{out} handed out"),
        (None, Some(all)) if of.schedule.get() == Some(LoopSchedule::Static) => {
            format!("{all} iterations, shared out beforehand")
        }
        (None, _) => match (of.next.get(), of.end.get(), of.step.get()) {
            (Some(_), Some(end), Some(step)) if of.left() == Some(0) => {
                format!("all handed out (up to {end}, step {step})")
            }
            // As a signed variable it would be past the end.
            (Some(next), Some(end), Some(step)) if of.left().is_some() && (step > 0) == (next >= end) => {
                format!("next {}, up to {}, step {step}", next as u64, end as u64)
            }
            (Some(next), Some(end), Some(step)) => format!("next {next}, up to {end}, step {step}"),
            _ => "?".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use ompd_runtime::Origin;
    use ompd_runtime::model::{Common, TeamId};

    use super::*;

    fn known<T>(value: T) -> Fact<T> {
        Fact::known(value, Origin::Dwarf)
    }

    fn unknown<T>() -> Fact<T> {
        Fact::unknown(Common::NotRecordedByRuntime)
    }

    #[test]
    fn progress_of_a_loop_is_shown_by_counts_or_by_its_variable() {
        let counts = |handed_out: Option<u64>, iterations: Option<u64>, schedule| Loop {
            schedule: known(schedule),
            iterations: iterations.map_or_else(unknown, known),
            handed_out: handed_out.map_or_else(unknown, known),
            ..Loop::unknown(TeamId(0), Common::NotRecordedByRuntime)
        };
        let of = |out, all| progress(&counts(out, all, LoopSchedule::Dynamic));
        assert_eq!(of(Some(52), Some(150)), "52 of 150 handed out (34%)");
        assert_eq!(of(Some(4), Some(3)), "4 of 3 handed out (100%)", "a torn read");
        assert_eq!(of(Some(1), Some(1)), "1 of 1 handed out (100%)");
        assert_eq!(of(Some(0), Some(0)), "0 handed out");
        assert_eq!(of(Some(7), None), "7 handed out");
        assert_eq!(of(None, Some(9)), "?");
        assert_eq!(progress(&counts(None, Some(9), LoopSchedule::Static)), "9 iterations, shared out beforehand");
        let by_variable = |next, end, step| {
            let of = counts(None, None, LoopSchedule::Dynamic);
            progress(&Loop { next: known(next), end: known(end), step: known(step), ..of })
        };
        assert_eq!(by_variable(9, 10, 2), "next 9, up to 10, step 2");
        assert_eq!(by_variable(10, 10, 2), "all handed out (up to 10, step 2)");
        assert_eq!(by_variable(10, 10, 0), "next 10, up to 10, step 0", "a torn read");
        assert_eq!(by_variable(11, 10, -2), "next 11, up to 10, step -2");
        assert_eq!(by_variable(10, 10, -2), "all handed out (up to 10, step -2)");
        assert_eq!(
            by_variable(-1, 0, -1),
            "next -1, up to 0, step -1",
            "signed and over, or unsigned and at its beginning"
        );
        let over = Loop { exhausted: known(true), ..Loop::unknown(TeamId(0), Common::NotRecordedByRuntime) };
        let over = Loop { next: known(-1), end: known(0), step: known(-1), ..over };
        assert_eq!(progress(&over), "all handed out (up to 0, step -1)");
        // An unsigned variable that passes the middle of its range.
        assert_eq!(by_variable(9, i64::MIN, 1), "next 9, up to 9223372036854775808, step 1");
    }

    #[test]
    fn posted_iterations_of_a_doacross_loop_are_said_as_far_as_they_are_known() {
        let nothing = || Doacross {
            dimensions: 2,
            posted: unknown(),
            furthest: unknown(),
            missing: unknown(),
            members: Vec::new(),
        };
        let said = |posted: Option<u64>, furthest: Option<Option<Vec<u64>>>| {
            let (posted, furthest) = (posted.map_or_else(unknown, known), furthest.map_or_else(unknown, known));
            super::posted(&Doacross { posted, furthest, ..nothing() })
        };
        assert_eq!(said(None, None), "which iterations have been posted is not known");
        assert_eq!(said(Some(0), None), "no iteration has been posted");
        assert_eq!(said(None, Some(None)), "no iteration has been posted");
        assert_eq!(said(Some(3), None), "3 iterations posted");
        assert_eq!(said(None, Some(Some(vec![4]))), "iterations posted up to 4");
        assert_eq!(said(Some(3), Some(Some(vec![1, 2]))), "3 iterations posted, (1, 2) is the last of them");
        let members = vec![Posted { member: 0, last: Some(vec![4]) }, Posted { member: 1, last: None }];
        let behind = Doacross { posted: known(3), missing: known(Some(vec![2])), members, ..nothing() };
        assert_eq!(
            super::posted(&behind),
            "3 iterations posted; the first that has not been is 2; last of each: thread 0 4, thread 1 none"
        );
        let over = Doacross { posted: known(3), missing: known(None), ..nothing() };
        assert_eq!(super::posted(&over), "3 iterations posted; all that there are");
    }
}
