//! What a report says to be wrong with a process, against what the process says must be said.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::{Comparison, list};
use crate::{Situation, Truth, Verdict};

/// Compares the verdicts of a report of `ompd-inspect waits --json` with what the program expects.
///
/// A hang has one verdict, of a name the program accepts, that names all it must. Further suspects beside a deadlock are no
/// difference: other threads may wait for those that hang. `owners_recorded`: does the runtime know which threads own the locks
/// of this program ([`Truth::owners_recorded`])?
pub fn compare_verdicts(truth: &Truth, report: &Value, owners_recorded: bool) -> Comparison {
    let mut all = Comparison::default();
    let Some(expected) = &truth.expectation else {
        all.differences.push("the program does not say what is to be expected".to_owned());
        return all;
    };
    let Some(verdicts) = report["verdicts"].as_array() else {
        all.differences.push("the report has no list of verdicts".to_owned());
        return all;
    };
    let accepted = expected.accepted(owners_recorded);
    let is_expected = |verdict: &&Value| {
        serde_json::from_value::<Verdict>(verdict["verdict"].clone()).is_ok_and(|ours| ours == expected.verdict)
            && serde_json::from_value::<Situation>(verdict["situation"].clone())
                .is_ok_and(|situation| accepted.contains(&situation))
    };
    let found = verdicts.iter().find(is_expected);
    // What threads wait for that may still happen is no hang.
    let others = verdicts.iter().filter(|verdict| verdict["verdict"] != "waiting");
    for verdict in others.filter(|verdict| found.is_none_or(|found| !std::ptr::eq(found, *verdict))) {
        // Others may wait for those that hang, and are suspects.
        let harmless = found.is_some() && expected.verdict == Verdict::Deadlock && verdict["verdict"] == "suspect";
        all.holds(harmless, || format!("reported and not so: {}", in_words(verdict)));
    }
    if expected.verdict == Verdict::None {
        all.compared += 1;
        return all;
    }
    let Some(found) = found else {
        let names: Vec<String> = accepted.iter().map(Situation::to_string).collect();
        let (verdict, count) = (expected.verdict, verdicts.len());
        all.holds(false, || format!("no {verdict:?} that is {}, among {count} verdicts", names.join(" or ")));
        return all;
    };
    compare_threads(&mut all, truth, found);
    compare_objects(&mut all, truth, report, found);
    compare_tasks(&mut all, truth, report, found);
    for key in ["text", "fix"] {
        let said = found[key].as_str().is_some_and(|text| !text.trim().is_empty());
        all.holds(said, || format!("the verdict has no {key}"));
    }
    all.holds(!list(&found["evidence"]).is_empty(), || "the verdict has no evidence".to_owned());
    compare_answer(&mut all, truth, report);
    all
}

/// The answer has the verdict's word, and names a thread of the hang, a place in the source and what to do. If the hang is at a
/// lock with a name, it has the name.
fn compare_answer(all: &mut Comparison, truth: &Truth, report: &Value) {
    let Some(expected) = &truth.expectation else { return };
    let answer = &report["answer"];
    let part = |key: &str| answer[key].as_str().unwrap_or_default();
    let word = if expected.verdict == Verdict::Deadlock { "DEADLOCK" } else { "SUSPECT" };
    all.equal("the first word of the answer", &part("word"), &word);
    let cause = part("cause");
    // Those that others wait for are the cause.
    let roles = if expected.missing.is_empty() { &expected.threads } else { &expected.missing };
    let lwps: Vec<i32> = roles.iter().flat_map(|role| truth.with_role(role)).map(|thread| thread.lwp).collect();
    let named = lwps.iter().any(|lwp| {
        let number = threads(report).find(|(_, thread)| thread["lwp"] == *lwp).map(|(_, t)| &t["thread_num"]["value"]);
        cause.contains(&format!("id {lwp})")) || number.and_then(Value::as_u64).is_some_and(|n| names_thread(cause, n))
    });
    all.holds(named || lwps.is_empty(), || format!("the cause names none of {lwps:?}: {cause}"));
    all.holds(has_place(cause), || format!("the cause has no place: {cause}"));
    all.holds(!part("fix").is_empty(), || "the answer does not say what to do".to_owned());
    let locks: Vec<&str> = list(&report["runtimes"])
        .iter()
        .flat_map(|runtime| list(&runtime["locks"]))
        .filter_map(|lock| lock["name"].as_str())
        .filter(|name| expected.objects.iter().any(|object| object == name))
        .collect();
    let whole = format!("{} {cause} {}", part("text"), part("fix"));
    let lock = locks.is_empty() || locks.iter().any(|name| whole.contains(name));
    all.holds(lock, || format!("the answer names none of {locks:?}: {whole}"));
}

/// True if the text has `thread 3` or `threads 0-1,3`.
fn names_thread(text: &str, number: u64) -> bool {
    let mut words = text.split([' ', ':', ';']).peekable();
    while let Some(word) = words.next() {
        if !matches!(word, "thread" | "threads") {
            continue;
        }
        let ranges = words.peek().copied().unwrap_or_default().split(',');
        let mut bounds = ranges.filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
        });
        if bounds.any(|(first, last)| (first..=last).contains(&number)) {
            return true;
        }
    }
    false
}

/// True if the text has a file of C, C++ or Fortran with a line: `app.c:12`.
fn has_place(text: &str) -> bool {
    let mut words = text.split([' ', ',', ';', '(', ')']);
    words.any(|word| {
        let Some((file, line)) = word.split_once(':') else { return false };
        [".c", ".h", ".cc", ".f90"].iter().any(|end| file.ends_with(end)) && line.parse::<u32>().is_ok()
    })
}

fn in_words(verdict: &Value) -> String {
    let word = |key: &str| verdict[key].as_str().unwrap_or("?").to_owned();
    format!("{}, {}: {}", word("verdict"), word("situation"), word("text"))
}

fn compare_threads(all: &mut Comparison, truth: &Truth, found: &Value) {
    let Some(expected) = &truth.expectation else { return };
    let named: BTreeSet<i64> = list(&found["threads"]).iter().filter_map(Value::as_i64).collect();
    all.equal("numbers among the threads of the verdict", &named.len(), &list(&found["threads"]).len());
    for role in expected.threads.iter().chain(&expected.missing) {
        for thread in truth.with_role(role) {
            let lwp = thread.lwp;
            all.holds(named.contains(&lwp.into()), || format!("{role} (LWP {lwp}) is not named"));
        }
    }
    for lwp in named {
        let known = truth.threads.iter().any(|thread| i64::from(thread.lwp) == lwp);
        all.holds(known, || format!("LWP {lwp} is named, and no thread of the program waits there"));
    }
}

fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// All threads the report has, with the runtime's part of the report each is in.
fn threads(report: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    list(&report["runtimes"]).iter().flat_map(|runtime| list(&runtime["threads"]).iter().map(move |t| (runtime, t)))
}

fn compare_objects(all: &mut Comparison, truth: &Truth, report: &Value, found: &Value) {
    let Some(expected) = &truth.expectation else { return };
    let named: BTreeSet<u64> = list(&found["objects"]).iter().filter_map(number).collect();
    for name in &expected.objects {
        let Some(address) = truth.object(name) else { continue };
        // Locks of libomp lie elsewhere, and the variable has but a number. What the report says of a thread that, in
        // truth, waits for this lock names the same one.
        let waiters = truth.threads.iter().filter(|thread| thread.wait_object == Some(address));
        let mut names: BTreeSet<u64> = waiters
            .flat_map(|waiter| threads(report).filter(|(_, thread)| thread["lwp"] == waiter.lwp))
            .filter_map(|(_, thread)| number(&thread["wait"]["value"]["object"]))
            .collect();
        names.insert(address.0);
        all.holds(!names.is_disjoint(&named), || format!("{name} ({address:?}) is not among the objects {named:x?}"));
    }
}

fn compare_tasks(all: &mut Comparison, truth: &Truth, report: &Value, found: &Value) {
    let Some(expected) = &truth.expectation else { return };
    let named: BTreeSet<u64> = list(&found["tasks"]).iter().filter_map(number).collect();
    let mut waiting = 0;
    for name in &expected.tasks {
        if truth.tasks.iter().any(|task| task.function == *name) {
            waiting += 1;
            continue;
        }
        for thread in truth.with_role(name) {
            let running = threads(report).find(|(_, found)| found["lwp"] == thread.lwp).and_then(|(runtime, found)| {
                let index = usize::try_from(found["task"]["value"].as_u64()?).ok()?;
                number(&list(&runtime["tasks"]).get(index)?["descriptor"])
            });
            let is_named = running.is_some_and(|descriptor| named.contains(&descriptor));
            all.holds(is_named, || format!("the task that {name} runs ({running:x?}) is not among {named:x?}"));
        }
    }
    // Nobody can tell which is which before they run, or when they have.
    let tasks = list(&report["runtimes"]).iter().flat_map(|runtime| list(&runtime["tasks"]));
    let run: BTreeSet<u64> = tasks.filter(|t| !t["lwp"].is_null()).filter_map(|t| number(&t["descriptor"])).collect();
    let idle = named.difference(&run).count();
    all.holds(idle >= waiting, || format!("{idle} tasks that no thread runs are named, {waiting} there are"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A holds lock a and waits for b; the owner of b has lock b and waits for a; a task waits.
    fn truth(expect: &Value) -> Truth {
        let thread = |role: &str, lwp: i32, object: &str| {
            json!({ "thread": {
                "role": role, "lwp": lwp, "pthread": format!("{lwp:#x}"), "wait": "lock", "wait_object": object,
            }})
        };
        let lock = |name: &str, address: &str, owner: i32| {
            let fields = json!({ "name": name, "kind": "lock", "address": address, "owner": owner, "depth": 1 });
            json!({ "lock": fields })
        };
        let lines = [
            json!({ "program": { "name": "one", "pid": 7, "openmp": 201_511 } }),
            thread("first", 7, "0xb0"),
            thread("second", 8, "0xa0"),
            lock("a", "0xa0", 7),
            lock("b", "0xb0", 8),
            json!({ "task": {
                "function": "queued", "address": "0x10", "state": "queued", "creator": 7, "depend": "0x0" } }),
            json!({ "expect": expect }),
            json!({ "ready": true, "coordinator": 8 }),
        ];
        Truth::read(&mut lines.iter().map(|line| Ok(line.to_string()))).expect("a truth")
    }

    fn cycle() -> Value {
        json!({
            "verdict": "deadlock", "situation": "lock_cycle", "without_owners": "closed_waits", "also": [],
            "threads": ["first", "second"], "missing": [], "objects": ["a", "b"], "tasks": ["queued"],
        })
    }

    fn report(situation: &str) -> Value {
        json!({
            "runtimes": [{
                "threads": [
                    { "lwp": 7, "wait": { "value": { "object": "0x00000000000000b0" } }, "task": { "value": 0 } },
                    // As libomp has it: the lock is not where the variable is.
                    { "lwp": 8, "wait": { "value": { "object": "0xa123" } }, "task": { "value": 1 } },
                ],
                "tasks": [
                    { "descriptor": "0x100", "lwp": 7 },
                    { "descriptor": "0x200", "lwp": 8 },
                    { "descriptor": "0x300", "lwp": null },
                ],
            }],
            "answer": {
                "word": "DEADLOCK", "text": "they wait", "cause": "thread 0 (id 7): waits for lock b, a.c:3", "fix": "do not",
            },
            "verdicts": [{
                "verdict": "deadlock", "situation": situation, "text": "they wait", "fix": "do not", "evidence": ["x"],
                "threads": [7, 8], "objects": ["0xb0", "0xa123"], "tasks": ["0x300"],
            }],
        })
    }

    fn differences(expect: &Value, report: &Value, owners_recorded: bool) -> Vec<String> {
        let truth = truth(expect);
        assert_eq!(truth.expectation_contradictions(), Vec::<String>::new());
        compare_verdicts(&truth, report, owners_recorded).differences
    }

    #[test]
    fn a_true_verdict_passes() {
        assert_eq!(differences(&cycle(), &report("lock_cycle"), true), Vec::<String>::new());
        assert_eq!(differences(&cycle(), &report("closed_waits"), false), Vec::<String>::new());
        let mut expect = cycle();
        expect["also"] = json!(["missing_member"]);
        assert_eq!(differences(&expect, &report("missing_member"), true), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_name_is_a_difference() {
        // What is not so was reported, what is so was not.
        assert_eq!(differences(&cycle(), &report("closed_waits"), true).len(), 2);
        // Where owners are not recorded, either will do.
        assert_eq!(differences(&cycle(), &report("lock_cycle"), false).len(), 0);
        assert_eq!(differences(&cycle(), &report("closed_waits"), false).len(), 0);
        assert_eq!(differences(&cycle(), &report("of no such name"), true).len(), 2);
        let mut weak = report("lock_cycle");
        weak["verdicts"][0]["verdict"] = json!("suspect");
        assert_eq!(differences(&cycle(), &weak, true).len(), 2);
    }

    #[test]
    fn what_is_lacking_is_a_difference() {
        for (key, without) in [
            ("threads", json!([7])),
            ("threads", json!([7, 8, 9])),
            ("threads", json!([7, 8, "9"])),
            ("objects", json!(["0xb0"])),
            ("objects", json!(["0xa123"])),
            ("tasks", json!([])),
            ("tasks", json!(["0x100"])),
            ("text", json!("")),
            ("fix", json!(null)),
            ("evidence", json!([])),
        ] {
            let mut report = report("lock_cycle");
            report["verdicts"][0][key] = without;
            let found = differences(&cycle(), &report, true);
            assert_eq!(found.len(), 1, "{key}: {found:?}");
        }
        let mut none = report("lock_cycle");
        none["verdicts"] = json!([]);
        assert_eq!(differences(&cycle(), &none, true).len(), 1);
        none["verdicts"] = json!(null);
        assert_eq!(differences(&cycle(), &none, true).len(), 1);
    }

    #[test]
    fn an_answer_without_thread_place_or_fix_is_a_difference() {
        for (key, instead) in [
            ("word", json!("SUSPECT")),
            ("cause", json!("thread 1 (id 9): waits for lock b, a.c:3")),
            ("cause", json!("thread 0 (id 7): waits for lock b")),
            ("cause", json!(null)),
            ("fix", json!("")),
        ] {
            let mut report = report("lock_cycle");
            report["answer"][key] = instead;
            let found = differences(&cycle(), &report, true);
            assert!(!found.is_empty(), "{key}");
        }
    }

    #[test]
    fn threads_are_found_by_number_and_places_by_file_and_line() {
        assert!(names_thread("threads 0-1,3: wait", 3) && names_thread("a; thread 12 (id 4)", 12));
        assert!(!names_thread("threads 0-1,3: wait", 2) && !names_thread("3 threads", 3) && !names_thread("thread", 0));
        assert!(has_place("usleep, a.c:10, in f") && has_place("(b.f90:7)"));
        assert!(!has_place("a.c: 10") && !has_place("12:30") && !has_place("a.py:3"));
    }

    #[test]
    fn one_hang_has_one_deadlock() {
        let mut twice = report("lock_cycle");
        let verdict = twice["verdicts"][0].clone();
        twice["verdicts"] = json!([verdict, verdict]);
        assert_eq!(differences(&cycle(), &twice, true).len(), 1);
        // A suspect beside it is possible.
        twice["verdicts"][1]["verdict"] = json!("suspect");
        assert_eq!(differences(&cycle(), &twice, true), Vec::<String>::new());
        // Not so beside a suspect.
        let mut expect = cycle();
        expect["verdict"] = json!("suspect");
        twice["verdicts"][0]["verdict"] = json!("suspect");
        twice["answer"]["word"] = json!("SUSPECT");
        assert_eq!(differences(&expect, &twice, true).len(), 1);
    }

    #[test]
    fn a_healthy_program_has_none() {
        let none = json!({
            "verdict": "none", "also": [], "threads": [], "missing": [], "objects": [], "tasks": [],
        });
        let mut report = report("lock_cycle");
        for (verdict, expected) in [("deadlock", 1), ("suspect", 1)] {
            report["verdicts"][0]["verdict"] = json!(verdict);
            assert_eq!(differences(&none, &report, true).len(), expected);
        }
        report["verdicts"] = json!([]);
        assert_eq!(differences(&none, &report, false), Vec::<String>::new());
    }

    #[test]
    fn the_task_a_thread_runs_is_found() {
        let mut expect = cycle();
        expect["tasks"] = json!(["second"]);
        let mut report = report("lock_cycle");
        let truth = truth(&expect);
        // Its thread runs no explicit task.
        assert_eq!(truth.expectation_contradictions().len(), 1);
        assert_eq!(compare_verdicts(&truth, &report, true).differences.len(), 1);
        report["verdicts"][0]["tasks"] = json!(["0x200"]);
        assert_eq!(compare_verdicts(&truth, &report, true).differences, Vec::<String>::new());
    }
}
