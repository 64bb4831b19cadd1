//! How far worksharing loops are.

use super::*;

const STATIC_CHUNKED: u64 = 33;
const DYNAMIC: u64 = 35;
const GUIDED_ANALYTICAL: u64 = 43;
const GUIDED: u64 = 42;
const GREEDY: u64 = 40;
const BALANCED: u64 = 41;
const STEAL: u64 = 44;

/// What members have noted of a loop.
#[derive(Clone, Copy)]
struct Share {
    schedule: u64,
    wide: bool,
    first: i64,
    step: i64,
    iterations: u64,
    chunk: u64,
    /// Chunks, or iterations, that were handed out.
    given: u64,
}

const LOOP: Share = Share { schedule: DYNAMIC, wide: true, first: 0, step: 1, iterations: 100, chunk: 8, given: 3 };

/// A loop that the first two of three members are in: its shared part, and theirs.
struct InLoop {
    made: Made,
    shared: Addr,
    own: [Addr; 2],
}

impl InLoop {
    fn new(share: Share) -> InLoop {
        let mut made = Made::new();
        let team = made.team(3);
        let s = &made.runtime.structs;
        let (dispatch, stride) = (s.team.dispatch.offset().expect("a field"), s.disp.size.get().expect("a size"));
        let dispatch = made.target.read_ptr(team.offset(dispatch)).expect("the members' places");
        let shared = made.made(|s| s.loop_shared.size);
        let wide = share.wide;
        made.set(shared, |s| if wide { s.loop_shared.iteration64 } else { s.loop_shared.iteration32 }, share.given);
        let own = [0, 1].map(|member| {
            let own = made.made(|s| s.loop_private.size);
            let place = dispatch.offset(member * stride);
            made.set(place, |s| s.disp.sh_current, shared.0);
            made.set(place, |s| s.disp.pr_current, own.0);
            made.set(own, |s| s.loop_private.type_size, if wide { 8 } else { 4 });
            made.set(own, |s| s.loop_private.schedule, share.schedule);
            let (first, step) = (share.first.cast_unsigned(), share.step.cast_unsigned());
            made.set(own, |s| if wide { s.loop_private.lb64 } else { s.loop_private.lb32 }, first);
            made.set(own, |s| if wide { s.loop_private.st64 } else { s.loop_private.st32 }, step);
            made.set(own, |s| if wide { s.loop_private.tc64 } else { s.loop_private.tc32 }, share.iterations);
            made.set(own, |s| if wide { s.loop_private.chunk64 } else { s.loop_private.chunk32 }, share.chunk);
            own
        });
        InLoop { made, shared, own }
    }

    fn read(&self) -> Loop {
        let found = self.made.snapshot();
        assert_eq!(found.issues, []);
        let [only] = &found.recorded.loops[..] else { panic!("one loop") };
        only.clone()
    }

    /// Why the loops of the team could not be read.
    fn issue(&self) -> String {
        let found = self.made.snapshot();
        assert!(found.recorded.loops.is_empty());
        let [issue] = &found.issues[..] else { panic!("one issue") };
        format!("{issue:?}")
    }
}

fn read(share: Share) -> Loop {
    InLoop::new(share).read()
}

#[test]
fn dynamic_loop_has_handed_out_whole_chunks() {
    for wide in [true, false] {
        let found = read(Share { wide, ..LOOP });
        assert_eq!((found.schedule.get(), found.chunk.get()), (Some(LoopSchedule::Dynamic), Some(8)));
        assert_eq!(
            (found.iterations.get(), found.handed_out.get(), found.exhausted.get()),
            (Some(100), Some(24), Some(false))
        );
        assert_eq!((found.next.get(), found.end.get(), found.step.get()), (Some(24), Some(100), Some(1)));
        assert_eq!((&found.members[..], found.completed.get()), (&[0, 1][..], Some(0)));
        assert_eq!(found.ordered_turn.get(), Some(None));
    }
    // The counter goes on while members find that there is no more.
    let found = read(Share { given: 15, ..LOOP });
    assert_eq!((found.handed_out.get(), found.exhausted.get(), found.next.get()), (Some(100), Some(true), Some(100)));
    let last = read(Share { given: 12, ..LOOP });
    assert_eq!((last.handed_out.get(), last.exhausted.get()), (Some(96), Some(false)));
}

#[test]
fn bounds_are_told_by_the_variable_of_the_loop() {
    let bounds = |first, step, wide| {
        let found = read(Share { first, step, wide, ..LOOP });
        (found.next.get(), found.end.get())
    };
    assert_eq!(bounds(50, -1, true), (Some(26), Some(-50)));
    assert_eq!(bounds(-10, 2, false), (Some(38), Some(190)));
    // Of a loop over nothing but negative numbers, and of one that leaves the range of its variable, the sign is not known.
    assert_eq!(bounds(-200, 1, true), (None, None));
    assert_eq!(bounds(i64::from(i32::MAX) - 10, 1, false), (None, None));
    assert_eq!(bounds(i64::MAX - 10, 1, true), (None, None));
}

#[test]
fn guided_loops_count_iterations_or_do_not_tell() {
    let found = read(Share { schedule: GUIDED, given: 30, ..LOOP });
    assert_eq!(
        (found.schedule.get(), found.handed_out.get(), found.next.get()),
        (Some(LoopSchedule::Guided), Some(30), Some(30))
    );
    let found = read(Share { schedule: GUIDED_ANALYTICAL, ..LOOP });
    assert_eq!(found.handed_out, Fact::unknown(crate::kmp::reason::Own::UnequalChunks));
    assert_eq!((found.exhausted.value(), found.next.value(), found.iterations.get()), (None, None, Some(100)));
}

#[test]
fn static_loops_have_shares_that_nobody_hands_out() {
    for schedule in [STATIC_CHUNKED, GREEDY, BALANCED] {
        let found = read(Share { schedule, ..LOOP });
        assert_eq!((found.schedule.get(), found.handed_out.value()), (Some(LoopSchedule::Static), None));
        assert_eq!(found.handed_out, Fact::unknown(Common::OwnShares));
    }
    // The chunk of a balanced loop is a member's whole share.
    let balanced = read(Share { schedule: BALANCED, ..LOOP });
    assert_eq!((balanced.chunk.value(), balanced.end.value()), (None, None));
    assert_eq!(read(Share { schedule: STATIC_CHUNKED, ..LOOP }).chunk.get(), Some(8));
    assert_eq!(read(Share { schedule: STATIC_CHUNKED, chunk: 0, ..LOOP }).chunk.value(), None);
}

#[test]
fn shares_that_others_may_take_from_are_told_by_their_chunks() {
    const READY: u64 = 2;
    let mut all = InLoop::new(Share { schedule: STEAL, ..LOOP });
    for (own, (from, to)) in all.own.into_iter().zip([(2, 5), (10, 13)]) {
        all.made.set(own, |s| s.loop_private.count64, from);
        all.made.set(own, |s| s.loop_private.ub64, to);
        all.made.set(own, |s| s.loop_private.steal_flag, READY);
    }
    let found = all.read();
    let shares: Vec<_> = found.shares.iter().map(|share| (share.member, share.left)).collect();
    // The last chunk is shorter.
    assert_eq!(shares, [(0, Some((16, 40))), (1, Some((80, 100)))]);
    assert_eq!(found.handed_out, Fact::unknown(crate::kmp::reason::Own::UnbegunShares), "the third has not begun");
    // The third has been there and has no more.
    let shared = all.shared;
    all.made.set(shared, |s| s.loop_shared.num_done64, 1);
    let found = all.read();
    assert_eq!((found.handed_out.get(), found.completed.get()), (Some(100 - 24 - 20), Some(1)));
    assert_eq!(found.next, Fact::unknown(crate::kmp::reason::Own::NextChunkOfEach));
    // What is being taken from counts for nothing.
    all.made.set(all.own[0], |s| s.loop_private.steal_flag, READY + 1);
    all.made.set(all.own[1], |s| s.loop_private.count64, 13);
    assert!(all.read().shares.iter().all(|share| share.left.is_none()));
}

#[test]
fn turn_of_an_ordered_loop_is_that_of_the_member_whose_chunk_has_the_iteration() {
    let turn = |iteration| {
        let mut all = InLoop::new(LOOP);
        for (own, (from, to)) in all.own.into_iter().zip([(8, 15), (0, 7)]) {
            all.made.set(own, |s| s.loop_private.ordered, 1);
            all.made.set(own, |s| s.loop_private.ordered_lower64, from);
            all.made.set(own, |s| s.loop_private.ordered_upper64, to);
        }
        let shared = all.shared;
        all.made.set(shared, |s| s.loop_shared.ordered64, iteration);
        all.read().ordered_turn.get()
    };
    assert_eq!(
        [turn(0), turn(7), turn(8), turn(15), turn(16)],
        [Some(Some(1)), Some(Some(1)), Some(Some(0)), Some(Some(0)), Some(None)]
    );
}

#[test]
fn sections_of_gcc_are_a_loop_that_begins_at_one() {
    let kind = |first, chunk, cancels| {
        let mut all = InLoop::new(Share { first, chunk, given: 1, ..LOOP });
        let variable = all.made.variable(schema::CANCEL);
        all.made.write(variable, cancels, 4);
        all.read().kind.get()
    };
    assert_eq!(kind(1, 1, 0), Some(LoopKind::LoopOrSections));
    assert_eq!([kind(0, 1, 0), kind(1, 2, 0)], [Some(LoopKind::Loop); 2]);
    // Members of a cancelled loop leave no trace of that.
    assert_eq!([kind(0, 1, 1), kind(1, 1, 1)], [None; 2]);
}

#[test]
fn members_that_tell_of_different_loops_are_an_issue() {
    let with = |change: fn(&mut InLoop)| {
        let mut all = InLoop::new(LOOP);
        change(&mut all);
        all.issue()
    };
    let other = with(|all| all.made.set(all.own[1], |s| s.loop_private.tc64, 99));
    assert!(other.contains("kmp-members-disagree"), "{other}");
    with(|all| all.made.set(all.own[1], |s| s.loop_private.schedule, GUIDED));
    with(|all| all.made.set(all.own[0], |s| s.loop_private.type_size, 2));
    with(|all| all.own.into_iter().for_each(|own| all.made.set(own, |s| s.loop_private.schedule, 99)));
}

#[test]
fn team_of_one_thread_shares_nothing() {
    let mut all = InLoop::new(LOOP);
    let s = &all.made.runtime.structs;
    let team = s.info.team.offset().expect("a field");
    let team = all.made.target.read_ptr(all.made.thread(1).offset(team)).expect("the team");
    all.made.set(team, |s| s.team.serialized, 1);
    assert!(all.made.snapshot().recorded.loops.is_empty());
}
