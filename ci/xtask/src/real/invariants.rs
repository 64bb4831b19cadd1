//! What holds in every report, whatever the program does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What does not hold in a report: each a sentence.
pub fn broken(report: &Value) -> Vec<String> {
    let lwps: BTreeSet<i64> = list(report, "os_threads").filter_map(|thread| thread["lwp"].as_i64()).collect();
    let mut broken = Vec::new();
    if lwps.len() != list(report, "os_threads").count() {
        broken.push("a thread of the process is listed twice".to_owned());
    }
    for (index, runtime) in list(report, "runtimes").enumerate() {
        let of = Of { runtime, lwps: &lwps };
        let all = [of.indices(), of.chains(), of.threads(), of.teams(), of.tasks(), of.loops(), of.locks()];
        broken.extend(all.into_iter().flatten().map(|what| format!("runtime {index}: {what}")));
    }
    broken
}

fn list<'v>(of: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    of[key].as_array().into_iter().flatten()
}

/// The value of what is read, if it is known and not null.
fn known<'v>(item: &'v Value, key: &str) -> Option<&'v Value> {
    item[key].get("value").filter(|value| !value.is_null())
}

fn number(item: &Value, key: &str) -> Option<i64> {
    known(item, key).and_then(Value::as_i64)
}

fn index(item: &Value, key: &str) -> Option<usize> {
    number(item, key).and_then(|index| usize::try_from(index).ok())
}

/// A runtime of a report.
struct Of<'v> {
    runtime: &'v Value,
    lwps: &'v BTreeSet<i64>,
}

impl<'v> Of<'v> {
    fn count(&self, key: &str) -> usize {
        self.runtime[key].as_array().map_or(0, Vec::len)
    }

    fn each(&self, key: &str) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
        list(self.runtime, key).enumerate()
    }

    /// What refers to another item refers to one that is there.
    fn indices(&self) -> Vec<String> {
        const REFERENCES: [(&str, &str, &str); 7] = [
            ("threads", "team", "teams"),
            ("threads", "task", "tasks"),
            ("teams", "parent", "teams"),
            ("tasks", "generating", "tasks"),
            ("tasks", "team", "teams"),
            ("tasks", "taskgroup", "taskgroups"),
            ("taskgroups", "parent", "taskgroups"),
        ];
        let mut broken = Vec::new();
        for (from, key, to) in REFERENCES {
            for (n, item) in self.each(from) {
                if number(item, key).is_some() && index(item, key).is_none_or(|index| index >= self.count(to)) {
                    broken.push(format!("the {key} of {from} {n} is none of {} {to}", self.count(to)));
                }
            }
        }
        for key in ["teams", "tasks", "taskgroups"] {
            let descriptors: Vec<&str> = self.each(key).filter_map(|(_, item)| item["descriptor"].as_str()).collect();
            if descriptors.iter().collect::<BTreeSet<_>>().len() != descriptors.len() {
                broken.push(format!("two of the {key} have the same descriptor"));
            }
        }
        broken
    }

    /// Nothing encloses or generates itself.
    fn chains(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, up) in [("teams", "parent"), ("tasks", "generating"), ("taskgroups", "parent")] {
            let above: BTreeMap<usize, usize> =
                self.each(key).filter_map(|(n, item)| Some((n, index(item, up)?))).collect();
            for begin in above.keys() {
                let chain = std::iter::successors(Some(*begin), |n| above.get(n).copied());
                if chain.take(above.len() + 2).count() > above.len() + 1 {
                    broken.push(format!("the {up} of {key} {begin} leads back to itself"));
                }
            }
        }
        broken
    }

    fn threads(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut seen = BTreeSet::new();
        let teams: Vec<&Value> = list(self.runtime, "teams").collect();
        let tasks: Vec<&Value> = list(self.runtime, "tasks").collect();
        for (n, thread) in self.each("threads") {
            let Some(lwp) = thread["lwp"].as_i64() else { continue };
            if !self.lwps.contains(&lwp) {
                broken.push(format!("thread {n} is LWP {lwp}, which the process does not have"));
            }
            if !seen.insert(lwp) {
                broken.push(format!("LWP {lwp} is two threads"));
            }
            let Some(team) = index(thread, "team").and_then(|team| teams.get(team)) else { continue };
            if let Some(own) = index(thread, "thread_num") {
                let member = &team["members"][own];
                if member.as_i64().is_some_and(|member| member != lwp) {
                    broken.push(format!("LWP {lwp} has number {own} in its team, where LWP {member} is"));
                }
                if number(team, "size").is_some_and(|size| own as i64 >= size) {
                    broken.push(format!("LWP {lwp} has number {own} in a smaller team"));
                }
            }
            let icvs = &thread["icvs"];
            for (of_task, of_team) in [("levels", "level"), ("active_levels", "active_level")] {
                // A task that is not the innermost team's has other values.
                let same_team = index(thread, "task")
                    .and_then(|task| tasks.get(task))
                    .is_some_and(|task| index(task, "team") == index(thread, "team"));
                let both = (number(icvs, of_task), number(team, of_team));
                if same_team && matches!(both, (Some(own), Some(team)) if own != team) {
                    broken.push(format!("LWP {lwp} has {of_task} {both:?}, and its team another {of_team}"));
                }
            }
        }
        broken
    }

    fn teams(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let teams: Vec<&Value> = list(self.runtime, "teams").collect();
        for (n, team) in teams.iter().enumerate() {
            let members: Vec<i64> = list(team, "members").filter_map(Value::as_i64).collect();
            let distinct: BTreeSet<i64> = members.iter().copied().collect();
            if distinct.len() != members.len() {
                broken.push(format!("team {n} has a member twice: {members:?}"));
            }
            if let Some(stranger) = distinct.iter().find(|lwp| !self.lwps.contains(*lwp)) {
                broken.push(format!("team {n} has LWP {stranger}, which the process does not have"));
            }
            let size = number(team, "size");
            let listed = team["members"].as_array().map_or(0, Vec::len) as i64;
            if size.is_some_and(|size| size < 1 || listed != 0 && listed != size) {
                broken.push(format!("team {n} has {size:?} threads and {listed} members"));
            }
            for key in ["barrier_arrived", "end_arrived"] {
                let arrived = team[key].as_i64();
                if arrived.zip(size).is_some_and(|(arrived, size)| arrived > size || arrived < 0) {
                    broken.push(format!("team {n} of {size:?} threads has {key} {arrived:?}"));
                }
            }
            let at_barrier: Vec<i64> = list(team, "at_barrier").filter_map(Value::as_i64).collect();
            let outside = size.is_some_and(|size| at_barrier.iter().any(|number| !(0..size).contains(number)));
            if outside || at_barrier.iter().collect::<BTreeSet<_>>().len() != at_barrier.len() {
                broken.push(format!("team {n} of {size:?} threads has {at_barrier:?} at its barrier"));
            }
            if known(team, "serialized").is_some_and(|serialized| *serialized == true)
                && size.is_some_and(|size| size > 1)
            {
                broken.push(format!("team {n} is serialized and has {size:?} threads"));
            }
            if let Some((level, active)) = number(team, "level").zip(number(team, "active_level"))
                && !(0..=level).contains(&active)
            {
                broken.push(format!("team {n} has the active level {active} at level {level}"));
            }
            let Some(parent) = index(team, "parent").and_then(|parent| teams.get(parent)) else { continue };
            if let Some((level, above)) = number(team, "level").zip(number(parent, "level"))
                && level != above + 1
            {
                broken.push(format!("team {n} has level {level}, and the one around it {above}"));
            }
            if let Some((own, size)) = number(team, "primary_num").zip(number(parent, "size"))
                && !(0..size).contains(&own)
            {
                broken.push(format!("the primary thread of team {n} is number {own} of {size}"));
            }
        }
        broken
    }

    fn tasks(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let tasks: Vec<&Value> = list(self.runtime, "tasks").collect();
        let mut executed: BTreeMap<i64, usize> = BTreeMap::new();
        for (n, task) in tasks.iter().enumerate() {
            if let Some(lwp) = task["lwp"].as_i64()
                && !self.lwps.contains(&lwp)
            {
                broken.push(format!("task {n} is executed by LWP {lwp}, which the process does not have"));
            }
            let state = known(task, "state").and_then(Value::as_str);
            if let (Some("running"), Some(lwp)) = (state, task["lwp"].as_i64()) {
                *executed.entry(lwp).or_default() += 1;
            }
            let waits = number(task, "unmet").is_some_and(|unmet| unmet > 0);
            if waits && matches!(state, Some("running" | "suspended")) {
                broken.push(format!("task {n} is {state:?}, and waits for others to be over"));
            }
            let generated = tasks.iter().filter(|other| {
                index(other, "generating") == Some(n)
                    && known(other, "kind").is_some_and(|kind| *kind == "explicit" || *kind == "undeferred")
            });
            if let Some(children) = number(task, "unfinished_children") {
                let there = generated.count() as i64;
                if children < 0 || there > children {
                    broken.push(format!("task {n} has {children} children that are not over, and {there} are listed"));
                }
            }
        }
        for (lwp, times) in executed {
            if times > 1 {
                broken.push(format!("LWP {lwp} executes {times} tasks at once"));
            }
        }
        broken
    }

    fn loops(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (n, one) in self.each("loops") {
            let handed_out = number(one, "handed_out").zip(number(one, "iterations"));
            if handed_out.is_some_and(|(out, all)| out > all) {
                broken.push(format!("of loop {n} {handed_out:?} iterations are handed out"));
            }
            let team = one["team"].as_u64().and_then(|team| self.runtime["teams"].get(team as usize));
            let Some(team) = team else {
                broken.push(format!("the team of loop {n} is not listed"));
                continue;
            };
            let Some(size) = number(team, "size") else { continue };
            let members: Vec<i64> = list(one, "members").filter_map(Value::as_i64).collect();
            if members.iter().any(|member| !(0..size).contains(member)) {
                broken.push(format!("loop {n} has the members {members:?} of {size}"));
            }
            if number(one, "completed").is_some_and(|completed| !(0..=size).contains(&completed)) {
                broken.push(format!("more are through with loop {n} than the team has"));
            }
        }
        broken
    }

    fn locks(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (n, lock) in self.each("locks") {
            let owner = known(lock, "owner").and_then(|owner| owner["lwp"].as_i64());
            let waiters: Vec<i64> = list(lock, "waiters").filter_map(Value::as_i64).collect();
            if let Some(stranger) = waiters.iter().chain(&owner).find(|lwp| !self.lwps.contains(*lwp)) {
                broken.push(format!("lock {n} is of LWP {stranger}, which the process does not have"));
            }
            let held = known(lock, "held").and_then(Value::as_bool);
            if owner.is_some() && held == Some(false) {
                broken.push(format!("lock {n} is not held, and LWP {owner:?} has it"));
            }
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sound() -> Value {
        let read = |value: Value| json!({"value": value, "origin": "code"});
        json!({
            "os_threads": [{"lwp": 1}, {"lwp": 2}],
            "runtimes": [{
                "threads": [
                    {"lwp": 1, "team": read(json!(1)), "task": read(json!(0)), "thread_num": read(json!(0)),
                     "icvs": {"levels": read(json!(1))}},
                    {"lwp": 2, "team": read(json!(1)), "task": read(json!(1)), "thread_num": read(json!(1))},
                ],
                "teams": [
                    {"descriptor": "0x1", "size": read(json!(1)), "level": read(json!(0)), "members": [1]},
                    {"descriptor": "0x2", "size": read(json!(2)), "level": read(json!(1)), "parent": read(json!(0)),
                     "primary_num": read(json!(0)), "members": [1, 2], "at_barrier": [1], "barrier_arrived": 1},
                ],
                "tasks": [
                    {"descriptor": "0x3", "team": read(json!(1)), "lwp": 1, "state": read(json!("running")),
                     "unfinished_children": read(json!(1))},
                    {"descriptor": "0x4", "team": read(json!(1)), "lwp": 2, "state": read(json!("running")),
                     "generating": read(json!(0)), "kind": read(json!("explicit"))},
                ],
                "taskgroups": [],
                "loops": [{"team": 1, "members": [0], "handed_out": read(json!(1)), "iterations": read(json!(4))}],
                "locks": [{"owner": read(json!({"lwp": 1})), "held": read(json!(true)), "waiters": [2]}],
            }],
        })
    }

    #[test]
    fn what_goes_together_is_not_broken() {
        assert_eq!(broken(&sound()), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_cannot_be_is_found() {
        for (at, value, expected) in [
            ("/os_threads/1/lwp", json!(1), "listed twice"),
            ("/runtimes/0/threads/0/team/value", json!(7), "is none of 2 teams"),
            ("/runtimes/0/teams/1/descriptor", json!("0x1"), "the same descriptor"),
            ("/runtimes/0/teams/1/parent/value", json!(1), "leads back to itself"),
            ("/runtimes/0/threads/1/lwp", json!(1), "two threads"),
            ("/runtimes/0/threads/1/lwp", json!(9), "which the process does not have"),
            ("/runtimes/0/threads/1/thread_num/value", json!(0), "has number 0 in its team, where LWP 1 is"),
            ("/runtimes/0/threads/0/icvs/levels/value", json!(2), "and its team another level"),
            ("/runtimes/0/teams/1/members", json!([1, 1]), "a member twice"),
            ("/runtimes/0/teams/1/members", json!([1, 9]), "which the process does not have"),
            ("/runtimes/0/teams/1/size/value", json!(3), "threads and 2 members"),
            ("/runtimes/0/teams/1/barrier_arrived", json!(3), "has barrier_arrived"),
            ("/runtimes/0/teams/1/at_barrier", json!([2]), "at its barrier"),
            ("/runtimes/0/teams/1/level/value", json!(3), "and the one around it 0"),
            ("/runtimes/0/teams/1/primary_num/value", json!(1), "is number 1 of 1"),
            ("/runtimes/0/tasks/1/lwp", json!(1), "executes 2 tasks at once"),
            ("/runtimes/0/tasks/0/unfinished_children/value", json!(0), "and 1 are listed"),
            ("/runtimes/0/loops/0/handed_out/value", json!(5), "iterations are handed out"),
            ("/runtimes/0/loops/0/members", json!([2]), "has the members"),
            ("/runtimes/0/locks/0/held/value", json!(false), "is not held"),
            ("/runtimes/0/locks/0/waiters", json!([9]), "which the process does not have"),
        ] {
            let mut report = sound();
            *report.pointer_mut(at).expect("it is there") = value;
            let broken = broken(&report);
            assert!(broken.iter().any(|what| what.contains(expected)), "{at}: {broken:?}");
        }
    }
}
