//! What has changed between two looks.

use anstyle::Style;

use super::{HEADING, Page};
use crate::words;
use ompd_inspection::Inspection;
use ompd_inspection::progress::{NOTHING, Progress, TeamProgress, ThreadProgress};

pub fn render(page: &mut Page, inspection: &Inspection, progress: &Progress) {
    let seconds = progress.elapsed.as_secs_f64();
    page.blank();
    let moving = progress.teams.iter().filter(|team| team.moved).count();
    let changes = moving + progress.begun + progress.ended;
    let ran = progress.threads.iter().filter(|t| used(t)).count();
    let text = match (changes, ran) {
        // A thread may have run for less than that, and come back to its place.
        (0, 0) => format!(
            "none seen in {seconds:.1} s: each OpenMP thread is at the same place, and used at most {} ms of processor time",
            NOTHING.as_millis()
        ),
        (0, n) => format!("none to be seen in {seconds:.1} s, but {} used processor time", words::count(n, "thread")),
        _ => format!("in {seconds:.1} s between two looks"),
    };
    page.wrapped("PROGRESS  ", HEADING, &text, 10);
    for team in &progress.teams {
        let snapshot = &inspection.runtimes[team.runtime];
        let Some(members) = snapshot.team(team.team) else { continue };
        let mut parts = of_team(team);
        let running: Vec<&ThreadProgress> = progress.members(members).filter(|t| used(t)).collect();
        match running.as_slice() {
            [] => {}
            [one] => parts.push(busy(one, team.moved)),
            many => {
                let cpu: f64 = many.iter().filter_map(|t| t.cpu).map(|cpu| cpu.as_secs_f64()).sum();
                parts.push(format!("{} used {cpu:.2} s of processor time", words::count(many.len(), "thread")));
            }
        }
        if parts.is_empty() {
            parts.push(if team.moved { "threads have moved" } else { "nothing has changed" }.to_owned());
        }
        page.wrapped("  - ", Style::new(), &format!("team {}: {}", team.team.0, parts.join("; ")), 4);
    }
    if progress.begun + progress.ended > 0 {
        let text = format!("{} begun, {} ended", words::count(progress.begun, "team"), progress.ended);
        page.wrapped("  - ", Style::new(), &text, 4);
    }
}

fn used(thread: &ThreadProgress) -> bool {
    thread.cpu.is_some_and(|cpu| cpu > NOTHING)
}

fn busy(thread: &ThreadProgress, team_moved: bool) -> String {
    let cpu = thread.cpu.map_or(0.0, |cpu| cpu.as_secs_f64());
    let still = if thread.moved || team_moved { "" } else { " at the same place" };
    format!("LWP {} used {cpu:.2} s of processor time{still}", thread.lwp)
}

fn of_team(team: &TeamProgress) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(barriers) = team.barriers.filter(|n| *n > 0) {
        parts.push(format!("{} passed", words::count(usize::try_from(barriers).unwrap_or(usize::MAX), "barrier")));
    }
    if let Some((before, after)) = team.loop_progress.filter(|(before, after)| before != after) {
        parts.push(format!("loop from {before} to {after}"));
    }
    let (before, after) = team.tasks;
    if before != after {
        parts.push(format!("{before} tasks, now {after}"));
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ompd_runtime::model::TeamId;

    use super::*;

    #[test]
    fn team_is_said_to_have_passed_what_it_has_passed() {
        let still = TeamProgress {
            runtime: 0,
            team: TeamId(0),
            barriers: None,
            loop_progress: None,
            tasks: (2, 2),
            moved: false,
        };
        assert_eq!(of_team(&still), [""; 0]);
        assert_eq!(of_team(&TeamProgress { barriers: Some(0), loop_progress: Some((4, 4)), ..still.clone() }), [""; 0]);
        let moved = TeamProgress { barriers: Some(1), loop_progress: Some((4, 9)), tasks: (2, 0), ..still };
        assert_eq!(of_team(&moved), ["1 barrier passed", "loop from 4 to 9", "2 tasks, now 0"]);
    }

    #[test]
    fn thread_that_computes_at_one_place_is_said_to_do_so() {
        let thread = |cpu, moved| ThreadProgress { lwp: 7, cpu: Some(cpu), moved };
        let computes = thread(Duration::from_millis(250), false);
        assert_eq!(busy(&computes, false), "LWP 7 used 0.25 s of processor time at the same place");
        assert_eq!(busy(&computes, true), "LWP 7 used 0.25 s of processor time");
        assert_eq!(busy(&thread(Duration::from_millis(250), true), false), "LWP 7 used 0.25 s of processor time");
        let is_used = |cpu| used(&thread(cpu, false));
        assert_eq!((is_used(NOTHING), is_used(NOTHING + Duration::from_nanos(1))), (false, true));
        assert!(!used(&ThreadProgress { cpu: None, ..computes }));
    }
}
