//! Which threads are idle in a pool, and what a fork leaves of one.

use super::*;

/// The pool of the threads, and the array of its threads.
fn pool(made: &Made) -> (Addr, Addr) {
    let pool = made.target.read_ptr(made.addr_of(made.data(1), |s| s.thread.thread_pool)).expect("a pool");
    (pool, made.target.read_ptr(made.addr_of(pool, |s| s.pool.threads)).expect("its threads"))
}

/// What a team of three shows after a change: the threads of the pool, and of each thread its LWP, its role and its team.
type Seen = (Vec<Option<i32>>, Vec<(Option<i32>, Option<Role>, Option<TeamId>)>);

fn seen(change: impl Fn(&mut Made, Addr)) -> Seen {
    let mut made = Made::new();
    let team = made.team(3);
    change(&mut made, team);
    let found = made.snapshot();
    let [pool] = &found.pools[..] else { panic!("one pool") };
    let threads = found.threads.iter().map(|thread| (thread.lwp, thread.role.get(), thread.team.flat())).collect();
    (pool.threads.clone(), threads)
}

const IN_TEAM: Option<TeamId> = Some(TeamId(0));

#[test]
fn worker_whose_team_is_the_last_one_of_its_pool_is_idle() {
    let (pool, threads) = seen(|made, team| {
        let (pool, _) = pool(made);
        made.set(pool, |s| s.pool.last_team, team.0);
        made.set(made.data(1), |s| s.thread.team, 0);
    });
    assert_eq!(pool, [Some(1), Some(2), Some(3)]);
    let idle = |lwp| (Some(lwp), Some(Role::IdleWorker), None);
    assert_eq!(threads, [(Some(1), Some(Role::Initial), None), idle(2), idle(3)]);
}

#[test]
fn worker_in_no_team_is_idle_if_the_pool_lists_it() {
    let (_, threads) = seen(|made, _| made.set(made.data(3), |s| s.thread.team, 0));
    assert_eq!(threads[2], (Some(3), Some(Role::IdleWorker), None));
    // The first entry is the thread that has begun the region.
    let (_, threads) = seen(|made, _| made.set(made.data(1), |s| s.thread.team, 0));
    assert_eq!(threads[0], (Some(1), Some(Role::Initial), None));
}

#[test]
fn worker_that_ends_has_left_its_pool_and_its_team_is_unknown() {
    let mut made = Made::new();
    made.team(3);
    made.set(made.data(3), |s| s.thread.thread_pool, 0);
    made.target.threads[2].registers.as_mut().expect("registers").pc = handmade::CODE;
    let thread = made.snapshot().threads.remove(2);
    let why = match thread.team {
        Fact::Unknown { why, .. } => why.to_string(),
        known => panic!("{known:?}"),
    };
    assert_eq!(why, Reason::from(crate::gomp::reason::Own::Unsettled).to_string());
}

#[test]
fn entry_of_a_thread_that_is_not_there_counts_only_if_it_still_names_the_pool() {
    let with_entry = |names_pool| {
        seen(|made, _| {
            let (pool, threads) = pool(made);
            let gone = made.made(made.runtime.structs.thread.size);
            let named = if names_pool { pool.0 } else { 0 };
            made.set(gone, |s| s.thread.thread_pool, named);
            let entries = made.zeros(8 * 5);
            for number in 0..3 {
                let entry = made.target.read_u64(threads.offset(8 * number)).expect("an entry");
                made.write(entries.offset(8 * number), entry, 8);
            }
            // The first again, as the array may have it.
            made.write(entries.offset(24), gone.0, 8);
            let first = made.data(1);
            made.write(entries.offset(32), first.0, 8);
            made.set(pool, |s| s.pool.threads, entries.0);
            made.set(pool, |s| s.pool.threads_used, 5);
        })
        .0
    };
    assert_eq!(with_entry(true), [Some(1), Some(2), Some(3), None], "a fork left it behind");
    assert_eq!(with_entry(false), [Some(1), Some(2), Some(3)], "it has ended");
}

#[test]
fn thread_with_the_memory_of_a_worker_that_a_fork_left_behind_is_none_of_the_runtimes() {
    let taken = |change: fn(&mut Made)| {
        seen(|made, _| {
            made.set(made.data(3), |s| s.thread.thread_pool, 0);
            change(made);
        })
    };
    // It executes code of the program, and has the place of the worker.
    let (pool, threads) = taken(|_| ());
    assert_eq!((pool, threads.len()), (vec![Some(1), Some(2), None], 2));
    // It executes the runtime's code, as a worker does that has just begun.
    let in_runtime = taken(|made| made.target.threads[2].registers.as_mut().expect("registers").pc = handmade::CODE);
    assert_eq!((in_runtime.0, in_runtime.1.len()), (vec![Some(1), Some(2), Some(3)], 3));
    // It has another number.
    let (pool, threads) = taken(|made| made.set(made.data(3), |s| s.thread.team_id, 1));
    assert_eq!((pool, threads.len()), (vec![Some(1), Some(2), Some(3)], 3));
    // It is in another team.
    let (pool, threads) = taken(|made| {
        let other = made.zeros(4096);
        made.set(made.data(3), |s| s.thread.team, other.0);
    });
    assert_eq!((pool, threads.len()), (vec![Some(1), Some(2), Some(3)], 3));
    assert!(!threads.iter().any(|(lwp, _, team)| *lwp == Some(3) && *team == IN_TEAM));
}
