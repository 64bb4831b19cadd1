//! What may end a hang that is no thread of it, no handler of a signal, and no process with which it shares a lock.

use ompd_process::{Addr, Module, Target};

use crate::os::{OsState, Outsider, may_refer_to};
use crate::waits_for::{Verdict, joins};

/// What may end these hangs. `runtimes` are the bases of those of OpenMP, which cancel only threads of their own. A canceller that
/// is found by `dlsym` is not seen. To be called once the target runs again.
pub fn find(target: &dyn Target, os: &OsState, verdicts: &[Verdict], runtimes: &[Addr]) -> Vec<Outsider> {
    const RING: &str = "anon_inode:[io_uring]";
    let surroundings = target.surroundings();
    let sharers = surroundings.as_ref().map(|of| of.sharers()).unwrap_or_default();
    let mut found: Vec<Outsider> = sharers.into_iter().map(|of| Outsider::Process(of.pid)).collect();
    if target.maps(RING) || surroundings.is_some_and(|of| of.has_descriptor(RING)) {
        found.push(Outsider::Ring);
    }
    if verdicts.iter().any(|verdict| joins(&verdict.core, os)) {
        let cancels = |name: &str| name == "pthread_cancel";
        let calls = |module: &&Module| may_refer_to(module, runtimes, &cancels);
        found.extend(target.modules().iter().find(calls).map(|module| Outsider::Canceller(module.path.clone())));
    }
    found
}
