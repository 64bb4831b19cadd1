//! Control variables that are lists, of processes whose memory is not what a runtime leaves there.

use ompd_process::{Addr, Live, OpenOptions, Target, TargetExt};
use ompd_runtime::discover;
use ompd_runtime::icvs::{BIND, NTHREADS};
use ompd_runtime::model::*;
use test_programs::{ChangedTarget, Env, Launch, Opt, build, combinations};

/// The lists of the thread with this number in the outer team.
fn lists(target: &dyn Target, base: Addr, lwp: i32) -> (Fact<Vec<IcvValue>>, Fact<Vec<IcvValue>>) {
    let runtimes = discover(target, &[]);
    let runtime = runtimes.iter().find(|runtime| runtime.info().base == base).expect("the runtime");
    let snapshot = runtime.snapshot(target);
    let icvs = &snapshot.thread_by_lwp(lwp).expect("the thread").icvs;
    // The value of the task itself does not depend on the list.
    assert_eq!((icvs.count(&NTHREADS), icvs.bind(&BIND)), (Some(6), Some(ProcBind(3))));
    (icvs.list(&NTHREADS), icvs.list(&BIND))
}

#[test]
fn lists_that_cannot_be_are_not_shown() {
    for (toolchain, on) in combinations() {
        let program = build("lists", toolchain, Opt::O2, &[]).expect("the program builds");
        let launch = Launch::new(&program, on, Env::Settled).variable("OMP_NUM_THREADS", "7,6,5,4");
        let running = launch.variable("OMP_PROC_BIND", "spread,close,spread").start().expect("the program starts");
        let coordinator = running.truth.threads.iter().find(|thread| thread.role.starts_with("coordinator"));
        let lwp = coordinator.expect("the thread of the outer team").lwp;
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("open");
        live.stop().expect("stop");

        let runtimes = discover(&live, &[]);
        let runtime = runtimes.iter().max_by_key(|runtime| runtime.snapshot(&live).threads.len()).expect("a runtime");
        let base = runtime.info().base;
        let bias = live.modules().iter().find(|module| module.base() == base).expect("its module").bias;
        let variable = |name: &str| {
            let entry = runtime.info().layout.iter().find(|entry| entry.name == name);
            let value = &entry.unwrap_or_else(|| panic!("{toolchain:?} on {on:?}: no {name}")).value;
            let digits = value.strip_prefix("0x").expect("an address");
            Addr(u64::from_str_radix(digits, 16).expect("an address")).offset(bias)
        };
        let forged = |at: Addr, bytes: &[u8]| lists(&ChangedTarget::new(&live).with_bytes(at, bytes), base, lwp);
        let nothing = forged(Addr(8), &[]);
        let counts = |all: &[u64]| all.iter().copied().map(IcvValue::Count).collect::<Vec<_>>();
        let bind = vec![IcvValue::Bind(ProcBind(3)), IcvValue::Bind(ProcBind(4))];
        let nthreads = counts(&[6, 5, 4]);
        assert_eq!((nothing.0.value(), nothing.1.value()), (Some(&nthreads), Some(&bind)), "{toolchain:?} on {on:?}");

        let (list, length, width) = match on.is_kmp() {
            true => {
                let list = variable("__kmp_nested_nth");
                (list, list.offset(12), 4)
            }
            false => (variable("gomp_nthreads_var_list"), variable("gomp_nthreads_var_list_len"), 8),
        };
        let what = |what: &str| format!("{toolchain:?} on {on:?}, {what}");
        let items = live.read_ptr(list).expect("the list");
        let length_of = |n: u64| n.to_le_bytes()[..width].to_vec();
        for n in [257, 1 << 20, u64::from(u32::MAX), u64::MAX] {
            let (found, other) = forged(length, &length_of(n));
            assert!(found.value().is_none(), "{}", what(&format!("{n} items")));
            assert_eq!(other.value(), Some(&bind), "{}", what("the other list"));
        }
        // The list is as long as the runtime says, and no longer.
        assert_eq!(forged(length, &length_of(3)).0.value(), Some(&counts(&[6, 5])), "{}", what("3 items"));
        assert_eq!(forged(length, &length_of(2)).0.value(), Some(&counts(&[6])), "{}", what("2 items"));
        // Nowhere to read from, and an item that is none.
        assert!(forged(list, &8u64.to_le_bytes()).0.value().is_none(), "{}", what("an address of nothing"));
        let third = items.offset(2 * width as u64);
        assert!(forged(third, &vec![0; width]).0.value().is_none(), "{}", what("no threads"));
        if !on.is_kmp() {
            // It does not begin with what the process began with.
            assert!(forged(items, &[9]).0.value().is_none(), "{}", what("another first item"));
            assert!(forged(length, &length_of(0)).0.value().is_none(), "{}", what("a list of nothing"));
            assert_eq!(forged(list, &[0; 8]).0.value(), Some(&counts(&[6])), "{}", what("no list"));
        }
        live.resume().expect("resume");
        drop(live);
        running.release().expect("the program's end");
    }
}
