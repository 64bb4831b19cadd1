//! How far worksharing loops are.

use super::*;

const STATIC: u64 = 1;
const DYNAMIC: u64 = 2;
const GUIDED: u64 = 3;

/// What a record says of a loop.
#[derive(Clone, Copy)]
struct Share {
    schedule: u64,
    next: i64,
    end: i64,
    step: i64,
    chunk: i64,
    /// Its variable is of an unsigned type, and it goes downwards.
    unsigned_down: bool,
}

const LOOP: Share = Share { schedule: DYNAMIC, next: 8, end: 20, step: 1, chunk: 4, unsigned_down: false };

/// The loop that the first of two members is in.
fn loop_of(share: Share, change: impl Fn(&mut Made, Addr)) -> Option<Loop> {
    let mut made = Made::new();
    made.team(2);
    let record = made.made(made.runtime.structs.work_share.size);
    let earlier = made.zeros(64);
    made.set(record, |s| s.work_share.sched, share.schedule);
    made.set(record, |s| s.work_share.next, share.next.cast_unsigned());
    made.set(record, |s| s.work_share.end, share.end.cast_unsigned());
    made.set(record, |s| s.work_share.incr, share.step.cast_unsigned());
    made.set(record, |s| s.work_share.chunk_size, share.chunk.cast_unsigned());
    made.set(record, |s| s.work_share.mode, u64::from(share.unsigned_down) * 2);
    let queue = made.addr_of(record, |s| s.work_share.inline_ordered_team_ids);
    made.set(record, |s| s.work_share.ordered_team_ids, queue.0);
    let thread = made.data(1);
    made.set(thread, |s| s.thread.work_share, record.0);
    made.set(thread, |s| s.thread.last_work_share, earlier.0);
    change(&mut made, record);
    let found = made.snapshot();
    assert_eq!(found.issues, []);
    found.recorded.loops.into_iter().next()
}

#[test]
fn loop_with_iterations_left_says_where_it_is() {
    for (schedule, kind) in [(DYNAMIC, LoopSchedule::Dynamic), (GUIDED, LoopSchedule::Guided)] {
        for monotonic in [0, 0x8000_0000] {
            let found = loop_of(Share { schedule: schedule | monotonic, ..LOOP }, |_, _| ()).expect("a loop");
            assert_eq!((found.schedule.get(), found.chunk.get(), &found.members[..]), (Some(kind), Some(4), &[0][..]));
            assert_eq!((found.next.get(), found.end.get(), found.step.get()), (Some(8), Some(20), Some(1)));
            assert_eq!((found.completed.get(), found.iterations.get()), (Some(0), None));
        }
    }
}

#[test]
fn chunk_of_a_dynamic_loop_is_a_number_of_iterations() {
    let chunk = |schedule, chunk, step| {
        loop_of(Share { schedule, chunk, step, ..LOOP }, |_, _| ()).expect("a loop").chunk.get()
    };
    assert_eq!(chunk(DYNAMIC, 12, 3), Some(4));
    assert_eq!(chunk(DYNAMIC, -12, -3), Some(4));
    assert_eq!(chunk(DYNAMIC, 13, 3), None);
    assert_eq!(chunk(GUIDED, 12, 3), Some(12));
    assert_eq!(chunk(GUIDED, 0, 3), None);
    assert_eq!(chunk(GUIDED, -1, 3), None);
}

#[test]
fn static_loop_has_as_many_iterations_as_steps_up_to_its_end() {
    let iterations = |next, end, step| {
        let found = loop_of(Share { schedule: STATIC, next, end, step, ..LOOP }, |_, _| ()).expect("a loop");
        assert_eq!((found.next.value(), found.schedule.get()), (None, Some(LoopSchedule::Static)));
        found.iterations.get()
    };
    assert_eq!(iterations(0, 20, 1), Some(20));
    assert_eq!(iterations(5, 20, 4), Some(4));
    assert_eq!(iterations(5, 21, 4), Some(4));
    assert_eq!(iterations(20, 0, -3), Some(7));
    assert_eq!(iterations(i64::MIN, i64::MAX, 1), Some(u64::MAX));
    assert_eq!([iterations(0, 2, 1), iterations(1, 2, 1), iterations(0, 1, 2)], [Some(2), Some(1), Some(1)]);
}

#[test]
fn loop_that_may_only_be_there_for_its_memory_tells_nothing() {
    let found = loop_of(Share { schedule: STATIC, next: 0, end: 1, step: 1, ..LOOP }, |_, _| ()).expect("a loop");
    let unknown = Fact::unknown(crate::gomp::reason::Own::LoopForMemory);
    assert_eq!((&found.iterations, found.end.value(), found.step.value()), (&unknown, None, None));
    assert_eq!((found.completed.value(), &found.members[..]), (None, &[0][..]));
    let dynamic = loop_of(Share { next: 0, end: 1, step: 1, ..LOOP }, |_, _| ()).expect("a loop");
    assert_eq!((dynamic.end.get(), dynamic.completed.get()), (Some(1), Some(0)));
}

/// A member that has no record before this one is in the loop only if that has iterations left.
#[test]
fn record_that_may_be_of_an_earlier_region_counts_while_iterations_are_left() {
    let inside = |share: Share, cancelled: u64| {
        let found = loop_of(share, |made, _| {
            made.set(made.data(1), |s| s.thread.last_work_share, 0);
            made.write(made.variable(schema::CANCEL), cancelled, 1);
        });
        found.map(|found| found.kind.get())
    };
    assert_eq!(inside(LOOP, 0), Some(Some(LoopKind::LoopOrSections)));
    assert_eq!(inside(Share { schedule: GUIDED, ..LOOP }, 0), Some(Some(LoopKind::Loop)));
    assert_eq!(inside(LOOP, 1), None, "it may have been cancelled");
    assert_eq!(inside(Share { schedule: STATIC, ..LOOP }, 0), None);
    // Which way the loop goes says where its end is.
    for (next, end, step, is_left) in [
        (19, 20, 1, true),
        (20, 20, 1, false),
        (21, 20, 1, false),
        (1, 0, -1, true),
        (0, 0, -1, false),
        (-1, 0, -1, false),
        (-20, -10, 1, true),
        (-10, -20, -1, true),
    ] {
        for schedule in [DYNAMIC, GUIDED] {
            let found = inside(Share { schedule, next, end, step, chunk: step, ..LOOP }, 0);
            // Signs that differ leave open whether the loop is signed: only a flag of dynamic loops tells.
            let open = (next < 0) != (end < 0) && schedule == GUIDED;
            assert_eq!(found.is_some(), is_left && !open, "{schedule}: {next} to {end} by {step}");
        }
    }
    let down = Share { next: -1, end: 5, step: -1, chunk: -1, unsigned_down: true, ..LOOP };
    assert!(inside(down, 0).is_some(), "from the largest number down");
    assert!(inside(Share { next: 5, ..down }, 0).is_none());
}

#[test]
fn record_of_another_construct_is_no_loop() {
    assert!(loop_of(Share { schedule: 0, ..LOOP }, |_, _| ()).is_none(), "a single with copyprivate");
    assert!(loop_of(Share { step: 0, ..LOOP }, |_, _| ()).is_none(), "and what was there before");
    assert!(loop_of(LOOP, |made, _| made.set(made.data(1), |s| s.thread.work_share, 0)).is_none());
}

#[test]
fn members_that_are_through_with_a_loop_are_counted() {
    let through = |share: Share, completed, awaited| {
        let found = loop_of(share, |made, record| {
            made.set(record, |s| s.work_share.threads_completed, completed);
            let team = made.target.read_ptr(made.addr_of(made.data(1), |s| s.thread.team)).expect("a team");
            made.set(team, |s| s.team.barrier_awaited, awaited);
        });
        found.expect("a loop").completed.get()
    };
    let over = Share { next: 20, ..LOOP };
    assert_eq!(through(LOOP, 1, 1), Some(0), "iterations are left");
    assert_eq!(through(over, 1, 2), Some(1), "with nowait");
    assert_eq!(through(over, 0, 1), Some(1), "those at the barrier");
    assert_eq!(through(over, 0, 2), Some(0));
}

#[test]
fn turn_in_an_ordered_loop_is_that_of_the_first_in_its_queue() {
    let turn = |share: Share, used, current, waits: bool| {
        let found = loop_of(share, |made, record| {
            made.set(record, |s| s.work_share.ordered_num_used, used);
            made.set(record, |s| s.work_share.ordered_cur, current);
            let queue = made.addr_of(record, |s| s.work_share.inline_ordered_team_ids);
            made.write(queue, 1, 4);
            made.write(queue.offset(4), 0, 4);
            if waits {
                let word = made.addr_of(made.data(1), |s| s.thread.release);
                made.sleeps(1, word, 0);
            }
        });
        found.expect("a loop").ordered_turn.get()
    };
    assert_eq!(turn(LOOP, 2, 0, true), Some(Some(1)));
    assert_eq!(turn(LOOP, 2, 1, true), Some(Some(0)));
    assert_eq!(turn(LOOP, 0, 1, true), Some(None), "nobody has iterations");
    assert_eq!(turn(Share { schedule: STATIC, ..LOOP }, 0, 1, true), Some(Some(1)));
    assert_eq!(turn(LOOP, 2, 0, false), None, "nobody waits: it may have no ordered clause");
}

/// A doacross loop over numbers of these shifts, with an element of the array for each of `cells`.
fn doacross(share: Share, shifts: &[u32], cells: &[u64], change: impl Fn(&mut Made, Addr)) -> Option<Doacross> {
    let found = loop_of(share, |made, record| {
        let size = made.runtime.structs.doacross.size.get().expect("a size");
        let memory = made.zeros(size + 64 * (cells.len() as u64 + 2));
        let counts = made.addr_of(memory, |s| s.doacross.shift_counts);
        let array = Addr((counts.0 + 4 * shifts.len() as u64).next_multiple_of(64));
        for (shift, at) in shifts.iter().zip((counts.0..).step_by(4)) {
            made.write(Addr(at), (*shift).into(), 4);
        }
        for (cell, at) in cells.iter().zip((array.0..).step_by(64)) {
            made.write(Addr(at), *cell, 8);
        }
        made.set(memory, |s| s.doacross.chunk_size, share.chunk.cast_unsigned());
        made.set(memory, |s| s.doacross.elt_sz, 64);
        made.set(memory, |s| s.doacross.ncounts, shifts.len() as u64);
        made.set(memory, |s| s.doacross.flattened, 1);
        made.set(memory, |s| s.doacross.array, array.0);
        made.set(record, |s| s.work_share.doacross, memory.0);
        change(made, memory);
    });
    found.and_then(|found| found.doacross.value().cloned().flatten())
}

#[test]
fn doacross_loop_with_static_chunks_says_what_each_member_has_posted() {
    // Chunks of 4 in turn: the first member has posted 0 to 2, the second 4 to 6.
    let share = Share { schedule: STATIC, next: 0, ..LOOP };
    let found = doacross(share, &[0], &[3, 7], |_, _| ()).expect("a doacross loop");
    assert_eq!((found.dimensions, found.furthest.value()), (1, Some(&Some(vec![6]))));
    assert_eq!(found.missing.value(), Some(&Some(vec![3])));
    let posted: Vec<_> = found.members.iter().map(|of| (of.member, of.last.clone())).collect();
    assert_eq!(posted, [(0, Some(vec![2])), (1, Some(vec![6]))]);
    let begins = doacross(share, &[0], &[0, 0], |_, _| ()).expect("a doacross loop");
    assert_eq!((begins.furthest.value(), begins.missing.value()), (Some(&None), Some(&Some(vec![0]))));
    let ends = doacross(share, &[0], &[20, 16], |_, _| ()).expect("a doacross loop");
    assert_eq!(ends.missing.value(), Some(&None), "all were posted");
}

#[test]
fn doacross_loop_whose_chunks_are_handed_out_says_what_is_missing() {
    // Two chunks of 4 were handed out.
    let found = doacross(LOOP, &[0], &[4, 6], |_, _| ()).expect("a doacross loop");
    assert_eq!((found.furthest.value(), found.missing.value()), (Some(&Some(vec![5])), Some(&Some(vec![6]))));
    let first = doacross(LOOP, &[0], &[2, 6], |_, _| ()).expect("a doacross loop");
    assert_eq!((first.furthest.value(), first.missing.value()), (Some(&Some(vec![5])), Some(&Some(vec![2]))));
    let given = doacross(LOOP, &[0], &[4, 8], |_, _| ()).expect("a doacross loop");
    assert_eq!(given.missing.value(), Some(&Some(vec![8])), "nobody has got it");
    let over = Share { next: 20, ..LOOP };
    let ends = doacross(over, &[0], &[4, 8, 12, 16, 20], |_, _| ()).expect("a doacross loop");
    assert_eq!(ends.missing.value(), Some(&None));
}

#[test]
fn doacross_loop_with_two_dimensions_is_known_by_both_counters() {
    let share = Share { schedule: STATIC, next: 0, ..LOOP };
    let found = doacross(share, &[8, 0], &[(2 << 8) + 5 + 1, 0], |_, _| ()).expect("a doacross loop");
    assert_eq!((found.dimensions, found.furthest.value()), (2, Some(&Some(vec![2, 5]))));
    assert_eq!(found.missing.value(), None, "how many iterations an inner loop has, is not kept");
    let posted: Vec<_> = found.members.iter().map(|of| of.last.clone()).collect();
    assert_eq!(posted, [Some(vec![2, 5]), None]);
}

#[test]
fn record_that_is_no_doacross_loop_is_not_taken_for_one() {
    let share = Share { schedule: STATIC, next: 0, ..LOOP };
    let none = |change: fn(&mut Made, Addr)| doacross(share, &[0], &[3, 7], change).is_none();
    assert!(!none(|_, _| ()));
    assert!(none(|made, memory| made.set(memory, |s| s.doacross.ncounts, 0)));
    assert!(none(|made, memory| made.set(memory, |s| s.doacross.flattened, 2)));
    assert!(none(|made, memory| made.set(memory, |s| s.doacross.elt_sz, 72)));
    assert!(none(|made, memory| made.set(memory, |s| s.doacross.array, memory.0 + 8)));
    assert!(none(|made, memory| made.set(memory, |s| s.doacross.array, memory.0 + 64 * 64)));
    // A doacross loop goes from 0 on in steps of 1.
    assert!(doacross(Share { step: 2, ..share }, &[0], &[3, 7], |_, _| ()).is_none());
    // What the counters are cannot be known.
    for shifts in [&[1][..], &[64, 0], &[3, 4, 0]] {
        assert!(doacross(share, shifts, &[3, 7], |_, _| ()).is_none(), "{shifts:?}");
    }
    let wide = doacross(share, &[0], &[3, 7], |made, memory| {
        made.set(memory, |s| s.doacross.flattened, 0);
    });
    assert_eq!(wide.and_then(|wide| wide.furthest.value().cloned()), None);
}
