//! Places, and the schedule of loops.

use super::*;
use crate::icvs::RUN_SCHED;

/// A process with sets of processors, each of 16 bytes, and places that lead to some of them.
fn with_places(sets: &[[u64; 2]], places: &[u64], change: impl Fn(&mut Made)) -> Placement {
    let mut made = Made::new();
    made.team(1);
    let memory = made.zeros(16 * sets.len() as u64);
    for (word, at) in sets.iter().flatten().zip((memory.0..).step_by(8)) {
        made.write(Addr(at), *word, 8);
    }
    let list = made.zeros(8 * places.len().max(1) as u64);
    for (place, at) in places.iter().zip((list.0..).step_by(8)) {
        made.write(Addr(at), memory.0 + 16 * place, 8);
    }
    made.write(made.variable(schema::PLACES), list.0, 8);
    made.write(made.variable(schema::PLACES_LEN), places.len() as u64, 8);
    let thread = made.data(1);
    made.set(thread, |s| s.thread.place, 2);
    made.set(thread, |s| s.thread.partition_off, 1);
    made.set(thread, |s| s.thread.partition_len, 2);
    change(&mut made);
    made.snapshot().threads.remove(0).placement
}

#[test]
fn thread_is_bound_to_the_processors_of_its_place() {
    let cpus = |placement: &Placement| placement.cpus.value().cloned().flatten().map(|cpus| cpus.to_vec());
    let sets = [[0b11, 0], [0b1001 << 60, 0b1], [1, 1 << 63]];
    let found = with_places(&sets, &[0, 1, 2], |_| ());
    assert_eq!((found.place.flat(), cpus(&found)), (Some(1), Some(vec![60, 63, 64])));
    assert_eq!(found.partition.flat(), Some(Partition { first: 1, last: 2 }));
    let last = with_places(&sets, &[0, 1, 2], |made| made.set(made.data(1), |s| s.thread.place, 3));
    assert_eq!((last.place.flat(), cpus(&last)), (Some(2), Some(vec![0, 127])));
    // Places without processors were taken out of the list.
    let sparse = with_places(&[[1, 0], [0, 0], [2, 0], [4, 0]], &[0, 2, 3], |_| ());
    assert_eq!(cpus(&sparse), Some(vec![1]));
    let beyond = with_places(&sets, &[0, 1, 2], |made| made.set(made.data(1), |s| s.thread.place, 4));
    assert_eq!((beyond.place.flat(), beyond.cpus.value()), (Some(3), None));
}

#[test]
fn thread_that_is_bound_to_no_place_is_not_bound() {
    let sets = [[1, 0], [2, 0]];
    let unbound = with_places(&sets, &[0, 1], |made| made.set(made.data(1), |s| s.thread.place, 0));
    assert_eq!((unbound.place.get(), unbound.cpus.value()), (Some(None), Some(&None)));
    let none = with_places(&sets, &[0, 1], |made| made.write(made.variable(schema::PLACES), 0, 8));
    assert_eq!((none.place.get(), none.partition.get(), none.cpus.value()), (Some(None), Some(None), Some(&None)));
}

#[test]
fn partition_that_is_not_within_the_places_is_unknown() {
    let sets = [[1, 0], [2, 0], [4, 0]];
    let of = |first, length| {
        let found = with_places(&sets, &[0, 1, 2], |made| {
            made.set(made.data(1), |s| s.thread.partition_off, first);
            made.set(made.data(1), |s| s.thread.partition_len, length);
        });
        found.partition.get()
    };
    assert_eq!(of(0, 3), Some(Some(Partition { first: 0, last: 2 })));
    assert_eq!(of(2, 1), Some(Some(Partition { first: 2, last: 2 })));
    assert_eq!(of(0, 0), Some(None), "places are not used yet");
    for (first, length) in [(0, 4), (3, 1), (u64::from(u32::MAX), 2)] {
        assert_eq!(of(first, length), None, "{first} {length}");
    }
}

#[test]
fn schedule_of_loops_is_that_of_the_task() {
    let of = |kind, chunk| {
        let mut made = Made::new();
        let team = made.team(1);
        let task = made.addr_of(team, |s| s.team.implicit_task);
        let icv = made.addr_of(task, |s| s.task.icv);
        made.set(icv, |s| s.icv.schedule, kind);
        made.set(icv, |s| s.icv.chunk, chunk);
        made.snapshot().threads.remove(0).icvs.get(&RUN_SCHED).value().cloned()
    };
    let schedule = |kind, monotonic, chunk| Some(IcvValue::Schedule(Schedule { kind, monotonic, chunk }));
    assert_eq!(of(2, 7), schedule(2, false, 7));
    assert_eq!(of(0x8000_0001, 0), schedule(1, true, 0));
    assert_eq!(of(3, 1), schedule(3, false, 1));
}
