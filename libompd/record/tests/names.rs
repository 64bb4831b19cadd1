//! What numbers of OMPT are called, compared with the header that clang brings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ompt_record::generation::Today;
use ompt_record::ompt;
use test_programs::Skip;

/// The text of clang's `omp-tools.h`; says why if there is none.
fn header() -> Option<String> {
    let asked = Command::new("clang-14").arg("-print-resource-dir").output();
    let directory = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let text = directory
        .and_then(|directory| std::fs::read_to_string(Path::new(directory.trim()).join("include/omp-tools.h")).ok());
    if text.is_none() {
        Skip::because("names of OMPT: clang-14 and its omp-tools.h are not here").show();
    }
    text
}

/// The enumerators of each enumeration, with their numbers.
fn enumerations(header: &str) -> BTreeMap<&str, Vec<(&str, u64)>> {
    let mut found: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    let mut current = None;
    for line in header.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("typedef enum ") {
            current = name.split_whitespace().next();
        } else if line.starts_with('}') {
            current = None;
        } else if let (Some(current), Some((name, number))) = (current, line.split_once('=')) {
            let number = number.trim().trim_end_matches(',');
            let number = number.strip_prefix("0x").map_or_else(|| number.parse(), |hex| u64::from_str_radix(hex, 16));
            let name = name.split_whitespace().next().expect("a name");
            // Others are made of these.
            found.entry(current).or_default().extend(number.ok().map(|number| (name, number)));
        }
    }
    found
}

#[test]
fn numbers_have_the_names_of_the_header() {
    let Some(header) = header() else { return };
    let found = enumerations(&header);
    let short = |number: u64| u16::try_from(number).expect("a short number");
    let byte = |number: u64| u8::try_from(number).expect("a byte");
    let bit = |number: u64| u32::try_from(number).expect("a bit of 32");
    let one = |names: Vec<&'static str>| <[_; 1]>::try_from(names).ok().map(|[name]| name);
    type Named<'a> = (&'a str, &'a str, &'a dyn Fn(u64) -> Option<&'static str>);
    let all: [Named<'_>; 16] = [
        ("ompt_set_result_t", "ompt_set_", &|n| ompt::set_result(byte(n))),
        ("ompt_scope_endpoint_t", "ompt_scope_", &|n| ompt::endpoint(byte(n))),
        ("ompt_thread_t", "ompt_thread_", &|n| ompt::thread(short(n))),
        ("ompt_sync_region_t", "ompt_sync_region_", &|n| ompt::sync_region(short(n))),
        ("ompt_mutex_t", "ompt_mutex_", &|n| ompt::mutex(short(n))),
        ("ompt_task_status_t", "ompt_task_", &|n| ompt::task_status(short(n))),
        ("ompt_work_t", "ompt_work_", &|n| ompt::work(short(n))),
        ("ompt_dispatch_t", "ompt_dispatch_", &|n| ompt::dispatch(short(n))),
        ("ompt_dependence_type_t", "ompt_dependence_type_", &|n| ompt::dependence(short(n))),
        ("ompt_target_t", "ompt_target_", &|n| ompt::target(short(n))),
        ("ompt_target_data_op_t", "ompt_target_data_", &|n| ompt::target_data_op(short(n))),
        ("ompt_severity_t", "ompt_", &|n| ompt::severity(short(n))),
        ("ompt_state_t", "ompt_state_", &ompt::state),
        ("ompt_task_flag_t", "ompt_task_", &|n| one(ompt::task_flags(bit(n)))),
        ("ompt_parallel_flag_t", "ompt_parallel_", &|n| one(ompt::parallel_flags(bit(n)))),
        ("ompt_cancel_flag_t", "ompt_cancel_", &|n| one(ompt::cancel_flags(bit(n)))),
    ];
    for (enumeration, prefix, named) in all {
        let enumerators = found.get(enumeration).unwrap_or_else(|| panic!("the header has no {enumeration}"));
        for (theirs, number) in enumerators {
            let shortened = theirs.strip_prefix(prefix).or_else(|| theirs.strip_prefix("ompt_"));
            assert_eq!(named(*number), shortened, "{number} of {enumeration}");
        }
    }
}

#[test]
fn every_flag_that_is_set_is_named_and_no_other() {
    assert_eq!(ompt::task_flags(0x8000_0005), ["initial", "explicit", "merged"]);
    assert_eq!(ompt::parallel_flags(0x8000_0002), ["invoker_runtime", "team"]);
    assert_eq!(ompt::cancel_flags(0x41), ["parallel", "discarded_task"]);
    assert!(ompt::task_flags(0).is_empty() && ompt::parallel_flags(0).is_empty() && ompt::cancel_flags(0).is_empty());
}

/// OpenMP 5.2 (`ompt_dispatch_t`). The header of clang 14 ends with the second.
#[test]
fn parts_of_a_loop_have_the_names_of_the_specification() {
    let names: Vec<_> = (0..=6).map(ompt::dispatch).collect();
    let known = ["iteration", "section", "ws_loop_chunk", "taskloop_chunk", "distribute_chunk"].map(Some);
    assert_eq!(names, [&[None], &known[..], &[None]].concat());
}

/// OpenMP 5.2, 15.2 (`omp_control_tool_t`) and 19.5.2.10 (`task_schedule`).
#[test]
fn commands_and_ends_of_tasks_are_those_of_the_specification() {
    let commands: Vec<_> = (0..=5).map(ompt::command).collect();
    assert_eq!(commands, [None, Some("start"), Some("pause"), Some("flush"), Some("end"), None]);
    let over: Vec<_> =
        (0..10).filter_map(|status| ompt::task_status(status).filter(|_| ompt::is_over(status))).collect();
    assert_eq!(over, ["complete", "cancel", "late_fulfill", "taskwait_complete"]);
}

#[test]
fn an_old_number_has_one_of_today_only_if_that_is_certain() {
    assert_eq!([Today::Number(3), Today::Folded(7)].map(Today::number), [Some(3), Some(7)]);
    assert_eq!([Today::OneOf(&[1, 2]), Today::Gone].map(Today::number), [None, None]);
}
