//! What a report may lose, and what it may not say, when something could not be read.

use serde_json::Value;

/// Lists of a runtime, with what tells their items apart.
const LISTS: [(&str, &str); 6] = [
    ("threads", "descriptor"),
    ("teams", "descriptor"),
    ("tasks", "descriptor"),
    ("locks", "object"),
    ("loops", "descriptor"),
    ("icvs", "name"),
];
/// Members that refer to an item of a list by its place there.
const REFERENCES: [(&str, &str); 6] = [
    ("team", "teams"),
    ("parent", "teams"),
    ("task", "tasks"),
    ("generating", "tasks"),
    ("lock", "locks"),
    ("of_task", "tasks"),
];
/// Members that say how something is known, and not what.
const EVIDENCE: [&str; 3] = ["origin", "detail", "said"];

/// Functions around `main` and around the functions of threads. Their frames are not shown unless symbols of others are missing.
const OUTERMOST: [&str; 6] =
    ["__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl", "_start", "start_thread", "clone3"];

/// Names of states that stand for more special ones too (OpenMP 5.2, 19.4.4.28).
const GENERAL: [&str; 2] = ["wait_mutex", "wait_barrier"];

/// What is said of a wait for one of two kinds of locks, if symbols do not tell which.
const UNDECIDED: &str = "lock or critical";

/// What a report says that the report of an undisturbed run does not say, or says otherwise.
pub(super) fn contradictions(expected: &Value, seen: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for runtime in items(seen, "runtimes") {
        let base = &runtime["base"];
        match items(expected, "runtimes").into_iter().find(|other| other["base"] == *base) {
            Some(other) => of_runtime(other, runtime, &mut wrong),
            None => wrong.push(format!("a runtime at {base}")),
        }
    }
    // Frames of libraries are folded into the calls that led there, as far as these are known: only the program's have to be the same.
    let program = expected["process"]["exe"].as_str().and_then(|path| path.rsplit('/').next());
    let stack = |of: &Value, lwp: &Value| items(of, "stacks").into_iter().find(|stack| stack["lwp"] == *lwp).cloned();
    // A stack that ends early may end within what is not shown of a whole one.
    let whole = |stack: &&Value| stack["end"]["complete"] == true;
    for seen in items(seen, "stacks").into_iter().filter(whole) {
        let frames = |stack: &Value| stack["frames"].as_array().cloned().unwrap_or_default();
        let known = stack(expected, &seen["lwp"]).map(|stack| frames(&stack)).unwrap_or_default();
        for frame in frames(seen) {
            let same = |other: &&Value| other["address"] == frame["address"];
            let functions: Vec<&Value> = known.iter().filter(same).map(|other| &other["function"]).collect();
            let function = &frame["function"];
            if is_place(function) || function.as_str().is_some_and(|name| OUTERMOST.contains(&name)) {
                continue;
            }
            if functions.is_empty() && program.is_some_and(|program| frame["module"] != program) {
                continue;
            }
            if functions.is_empty() {
                wrong.push(format!("a frame of thread {} at {} in {function}", seen["lwp"], frame["address"]));
            } else if !functions.contains(&function) {
                wrong.push(format!("thread {} at {} is in {function}", seen["lwp"], frame["address"]));
            }
        }
    }
    let word = |of: &Value| of["answer"]["word"].as_str().unwrap_or_default().to_owned();
    if rank(&word(seen)) > rank(&word(expected)) {
        wrong.push(format!("{} for {}", word(seen), word(expected)));
    }
    // Of the same certainty it has to be the same hang.
    for verdict in items(seen, "verdicts").into_iter().filter(|verdict| verdict["verdict"] != "waiting") {
        let same = |other: &&Value| ["verdict", "situation", "threads"].iter().all(|key| other[*key] == verdict[*key]);
        let is_weaker = rank(&word(seen)) < rank(&word(expected));
        if !is_weaker && !items(expected, "verdicts").iter().any(same) {
            wrong.push(format!("{} {} of {}", verdict["verdict"], verdict["situation"], verdict["threads"]));
        }
    }
    wrong
}

/// What an undisturbed run reports and this one does not.
pub(super) fn losses(expected: &Value, seen: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    for runtime in items(expected, "runtimes") {
        let base = &runtime["base"];
        let Some(other) = items(seen, "runtimes").into_iter().find(|other| other["base"] == *base) else {
            lost.push(format!("the runtime at {base}"));
            continue;
        };
        for (list, key) in LISTS {
            let there = |item: &&Value| items(other, list).iter().any(|other| other[key] == item[key]);
            let gone = items(runtime, list).into_iter().filter(|item| !there(item));
            lost.extend(gone.map(|item| format!("{list} {}", item[key])));
        }
    }
    let word = |of: &Value| of["answer"]["word"].as_str().unwrap_or("none").to_owned();
    if word(seen) != word(expected) {
        lost.push(format!("{} for {}", word(seen), word(expected)));
    }
    lost
}

/// True if it is no name of a function but a place in a file, by which a frame goes whose function is unknown.
fn is_place(name: &Value) -> bool {
    name.as_str().is_none_or(|name| name.contains("+0x"))
}

/// Orders answers by what they claim.
fn rank(word: &str) -> u8 {
    match word {
        "DEADLOCK" => 2,
        "SUSPECT" => 1,
        _ => 0,
    }
}

fn items<'a>(of: &'a Value, list: &str) -> Vec<&'a Value> {
    of[list].as_array().into_iter().flatten().collect()
}

fn of_runtime(expected: &Value, seen: &Value, wrong: &mut Vec<String>) {
    for (list, key) in LISTS {
        for item in items(seen, list) {
            let name = &item[key];
            if name.is_null() {
                continue;
            }
            match items(expected, list).into_iter().find(|other| other[key] == *name) {
                Some(other) => of_value((expected, other), (seen, item), &format!("{list} {name}"), wrong),
                None => wrong.push(format!("{list} {name}, which is not there")),
            }
        }
    }
}

/// Compares two values, each with the runtime it belongs to. The object of a barrier is the word that the thread sleeps on, or else the
/// team: both are true.
fn of_value(expected: (&Value, &Value), seen: (&Value, &Value), path: &str, wrong: &mut Vec<String>) {
    match (expected.1, seen.1) {
        // What is lost, and what was never known.
        (_, Value::Null) => {}
        (_, Value::Object(members)) if members.contains_key("unknown") => {}
        (_, Value::String(kind)) if kind == UNDECIDED => {}
        // A state that does not say what of its kind it is.
        (_, Value::Object(members))
            if GENERAL.iter().any(|state| members.get("name").is_some_and(|name| name == state)) => {}
        (Value::Object(other), Value::Object(members)) => {
            let is_barrier = members.get("kind").is_some_and(|kind| kind == "barrier");
            let compared = |name: &str| !(EVIDENCE.contains(&name) || is_barrier && name == "object");
            for (name, member) in members.iter().filter(|(name, _)| compared(name)) {
                let path = format!("{path} {name}");
                match (other.get(name), REFERENCES.iter().find(|(reference, _)| reference == name)) {
                    (Some(known), Some((_, list))) => {
                        let known = (expected.0, known);
                        of_reference(known, (seen.0, member), list, &path, wrong);
                    }
                    (Some(known), None) if name == "value" && member.is_null() && !known.is_null() => {
                        wrong.push(format!("{path} is nothing, not {known}"));
                    }
                    (Some(known), None) => of_value((expected.0, known), (seen.0, member), &path, wrong),
                    // A value where none was known. Other members explain values, and come with what is unknown.
                    (None, _) if name == "value" && !member.is_null() => wrong.push(format!("{path} is {member}")),
                    (None, _) => {}
                }
            }
        }
        (Value::Array(other), Value::Array(members)) => {
            for member in members.iter().filter(|member| !member.is_null() && !other.contains(member)) {
                if !member.is_object() {
                    wrong.push(format!("{path} has {member}"));
                }
            }
        }
        (known, other) if known != other && is_place(other) && other.is_string() => {}
        (known, other) if known != other => wrong.push(format!("{path} is {other}, not {known}")),
        _ => {}
    }
}

/// Compares what two members refer to.
fn of_reference(expected: (&Value, &Value), seen: (&Value, &Value), list: &str, path: &str, wrong: &mut Vec<String>) {
    let key = if list == "locks" { "object" } else { "descriptor" };
    let target = |(runtime, member): (&Value, &Value)| {
        let index = member.get("value").unwrap_or(member).as_u64()?;
        let item = items(runtime, list).into_iter().nth(usize::try_from(index).ok()?)?;
        Some(item[key].clone())
    };
    if let Some(now) = target(seen)
        && target(expected).as_ref() != Some(&now)
    {
        wrong.push(format!("{path} is {now}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(word: &str, team: Value, teams: Value) -> Value {
        json!({
            "answer": {"word": word},
            "runtimes": [{
                "base": "0x1",
                "threads": [{"descriptor": "0x2", "team": team, "thread_num": {"value": 3, "origin": "code"}}],
                "teams": teams
            }],
            "stacks": [{"lwp": 5, "end": {"complete": true}, "frames": [{"address": "0x9", "function": "f"}]}]
        })
    }

    fn known() -> Value {
        report("DEADLOCK", json!({"value": 1}), json!([{"descriptor": "0x7"}, {"descriptor": "0x8"}]))
    }

    #[test]
    fn what_is_lost_is_no_contradiction() {
        assert_eq!(contradictions(&known(), &known()), [""; 0]);
        // The other team could not be read, and the number of the first has changed.
        assert_eq!(
            contradictions(&known(), &report("SUSPECT", json!({"value": 0}), json!([{"descriptor": "0x8"}]))),
            [""; 0]
        );
        let unknown = json!({"unknown": "its memory cannot be read"});
        assert_eq!(contradictions(&known(), &report("NO ANSWER", unknown, json!([]))), [""; 0]);
        assert_eq!(contradictions(&known(), &json!({})), [""; 0]);
        let mut without_symbols = known();
        without_symbols["stacks"][0]["frames"][0]["function"] = json!("program+0x9");
        assert_eq!(contradictions(&known(), &without_symbols), [""; 0]);
    }

    #[test]
    fn frames_of_libraries_may_be_unfolded() {
        let mut program = known();
        program["process"]["exe"] = json!("/bin/program");
        let mut unfolded = known();
        unfolded["stacks"][0]["frames"][0] = json!({"address": "0xb", "function": "wait", "module": "libc.so.6"});
        assert_eq!(contradictions(&program, &unfolded), [""; 0]);
        unfolded["stacks"][0]["frames"][0]["module"] = json!("program");
        assert_eq!(contradictions(&program, &unfolded).len(), 1);
    }

    #[test]
    fn what_is_gone_from_a_list_is_a_loss() {
        assert_eq!(losses(&known(), &known()), [""; 0]);
        let fewer = report("DEADLOCK", json!(null), json!([{"descriptor": "0x7"}]));
        assert_eq!(losses(&known(), &fewer), ["teams \"0x8\""]);
        assert_eq!(losses(&known(), &json!({})), ["the runtime at \"0x1\"", "none for DEADLOCK"]);
    }

    #[test]
    fn what_is_said_otherwise_is_one() {
        let wrong = |change: &dyn Fn(&mut Value)| {
            let mut report = known();
            change(&mut report);
            contradictions(&known(), &report)
        };
        assert_eq!(wrong(&|report| report["runtimes"][0]["threads"][0]["team"]["value"] = json!(0)).len(), 1);
        assert_eq!(wrong(&|report| report["runtimes"][0]["threads"][0]["thread_num"]["value"] = json!(4)).len(), 1);
        assert_eq!(wrong(&|report| report["runtimes"][0]["threads"][0]["descriptor"] = json!("0x3")).len(), 1);
        assert_eq!(wrong(&|report| report["runtimes"][0]["base"] = json!("0x4")).len(), 1);
        assert_eq!(wrong(&|report| report["stacks"][0]["frames"][0]["function"] = json!("g")).len(), 1);
        assert_eq!(wrong(&|report| report["stacks"][0]["frames"][0]["address"] = json!("0xa")).len(), 1);
        assert_eq!(wrong(&|report| report["runtimes"][0]["threads"][0]["thread_num"]["value"] = json!(null)).len(), 1);
        let other = json!([{"verdict": "deadlock", "situation": "closed_waits", "threads": [5]}]);
        assert_eq!(wrong(&|report| report["verdicts"] = other.clone()).len(), 1);
        let mut weaker = known();
        weaker["answer"]["word"] = json!("SUSPECT");
        assert_eq!(contradictions(&weaker, &known()), ["DEADLOCK for SUSPECT"]);
        // A value where none was known.
        let mut less = known();
        less["runtimes"][0]["threads"][0]["thread_num"] = json!({"unknown": "it is not kept"});
        assert_eq!(contradictions(&less, &known()).len(), 1);
    }
}
