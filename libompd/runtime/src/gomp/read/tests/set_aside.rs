//! Members of teams that execute a target region on the host.

use super::*;
use crate::gomp::reason::Own;
use crate::handmade::with_symbols;

/// Where the function for target regions is.
const ENTRY: u64 = 0x7_0100;
const ENTRY_BYTES: u64 = 0x40;

/// What lies on the stack of the member.
struct Stack {
    team: bool,
    pool: bool,
    returns_to: u64,
    /// Bytes from the stack pointer on.
    at: u64,
}

const WHOLE: Stack = Stack { team: true, pool: true, returns_to: ENTRY + 0x10, at: 0 };

/// A team of three of which the member with this number has its data zeroed, and a stack with this.
fn with_member(number: u64, stack: &Stack) -> (Made, Addr) {
    let mut made = Made::new();
    let team = made.team(3);
    let lwp = number as i32 + 1;
    let data = made.data(lwp);
    let pool = made.target.read_u64(made.addr_of(data, |s| s.thread.thread_pool)).expect("a pool");
    for at in 0..made.runtime.structs.thread.size.get().expect("a size") {
        made.write(data.offset(at), 0, 1);
    }
    // Pieces that are read begin and end with pages.
    let memory = made.zeros(5 * 4096).0.next_multiple_of(4096) + 24;
    let words = [if stack.team { team.0 } else { 1 }, 2, stack.returns_to, if stack.pool { pool } else { 3 }];
    for (word, at) in words.into_iter().zip((memory + stack.at..).step_by(8)) {
        made.write(Addr(at), word, 8);
    }
    let sp = Arch::X86_64.machine.facts().expect("facts of the machine").registers.stack_pointer;
    made.target.threads[number as usize].registers.as_mut().expect("registers").general[usize::from(sp)] = memory;
    let module = with_symbols(&[("GOMP_target_ext", ENTRY, ENTRY_BYTES)], true);
    made.target.modules[0].file = module.file;
    (made, team)
}

fn members(made: &Made) -> Vec<Option<i32>> {
    made.snapshot().teams.remove(0).members
}

#[test]
fn thread_that_executes_a_target_region_on_the_host_is_still_a_member() {
    // Number 0 is known by the pool, the others by the team.
    for number in 0..3 {
        let (made, _) = with_member(number, &WHOLE);
        let found = made.snapshot();
        assert_eq!(found.teams[0].members, [Some(1), Some(2), Some(3)], "{number}");
        let own = found.threads.iter().find(|thread| thread.lwp == Some(number as i32 + 1)).expect("the thread");
        assert_eq!((own.team.value(), own.thread_num.value()), (None, None), "what it is to itself is put aside");
    }
}

#[test]
fn only_a_stack_with_all_that_the_call_leaves_there_is_believed() {
    let left_out = |stack: &Stack| members(&with_member(2, stack).0);
    let without = [Some(1), Some(2), None];
    assert_eq!(left_out(&Stack { team: false, ..WHOLE }), without);
    assert_eq!(left_out(&Stack { pool: false, ..WHOLE }), without);
    // A return address lies behind a call: it may be where the function ends, and not where it begins.
    let returning = |returns_to| left_out(&Stack { returns_to, ..WHOLE });
    assert_eq!(returning(ENTRY), without);
    assert_eq!(returning(ENTRY + ENTRY_BYTES + 1), without);
    let all = [Some(1), Some(2), Some(3)];
    assert_eq!([returning(ENTRY + 1), returning(ENTRY + ENTRY_BYTES)], [all, all]);
    // Further up on the stack, in another page, and where there is no stack any more.
    let at = |at| left_out(&Stack { at, ..WHOLE });
    assert_eq!(at(2 * 4096 + 8), all);
    assert_eq!(at(3 * 4096 - 24 - 16), all, "they lie in two pages");
}

#[test]
fn thread_that_uses_openmp_in_the_target_region_is_a_member_and_what_its_data_says() {
    let (mut made, _) = with_member(2, &WHOLE);
    let inner = made.team(1);
    let (data, of_inner) = (made.data(3), made.data(4));
    for at in (0..made.runtime.structs.thread.size.get().expect("a size")).step_by(8) {
        let word = made.target.read_u64(of_inner.offset(at)).expect("a word");
        made.write(data.offset(at), word, 8);
        made.write(of_inner.offset(at), 0, 8);
    }
    let found = made.snapshot();
    let of = |descriptor| found.teams.iter().find(|team| team.descriptor == descriptor).expect("a team");
    assert_eq!(of(inner).members, [Some(3)]);
    assert_eq!(found.teams[0].members, [Some(1), Some(2), Some(3)]);
}

/// What a thread waits for in its target region is read like that of any other.
#[test]
fn wait_in_a_target_region_is_known() {
    let (mut made, _) = with_member(2, &WHOLE);
    let lock = made.zeros(8);
    made.write(lock, 2, 4);
    let general = made.target.threads[2].registers.as_ref().expect("registers").general;
    made.sleeps(3, lock, 2);
    made.target.threads[2].registers.as_mut().expect("registers").general = general;
    let found = made.snapshot();
    let own = found.threads.iter().find(|thread| thread.lwp == Some(3)).expect("the thread");
    // Of a word that the program owns, only names say more.
    assert_eq!((own.role.why(), own.wait.why()), (Some(&Own::SetAside.into()), Some(&Own::UnknownWord.into())));
}

#[test]
fn one_other_member_is_enough() {
    let (mut made, _) = with_member(2, &WHOLE);
    let data = made.data(2);
    made.set(data, |s| s.thread.team, 0);
    assert_eq!(members(&made), [Some(1), None, Some(3)]);
}

#[test]
fn member_is_not_looked_for_where_the_functions_for_target_regions_are_unknown() {
    let (mut made, _) = with_member(2, &WHOLE);
    made.target.modules[0].file = Err(Vec::new());
    assert_eq!(members(&made), [Some(1), Some(2), None]);
}
