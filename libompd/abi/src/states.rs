//! Thread states by number and name (OpenMP 5.2, section 19.4.4.27; OpenMP 6.0, section 33.31).

use crate::types::Word;

/// A state, and from which version of the interface on up to before which other it is enumerated.
struct Listed {
    number: Word,
    name: &'static str,
    since: Word,
    until: Word,
}

const fn always(number: Word, name: &'static str) -> Listed {
    Listed { number, name, since: 0, until: Word::MAX }
}

const fn since(since: Word, number: Word, name: &'static str) -> Listed {
    Listed { number, name, since, until: Word::MAX }
}

/// The state that an enumeration begins with (`ompt_state_undefined`).
pub(crate) const UNDEFINED: Word = 0x102;

/// All states these runtimes can be in; none of those that targets and reductions have, which are not told apart from work.
const STATES: &[Listed] = &[
    always(0x000, "ompt_state_work_serial"),
    always(0x001, "ompt_state_work_parallel"),
    always(0x010, "ompt_state_wait_barrier"),
    always(0x011, "ompt_state_wait_barrier_implicit_parallel"),
    always(0x012, "ompt_state_wait_barrier_implicit_workshare"),
    Listed { until: 202_411, ..always(0x013, "ompt_state_wait_barrier_implicit") },
    always(0x014, "ompt_state_wait_barrier_explicit"),
    since(202_011, 0x015, "ompt_state_wait_barrier_implementation"),
    since(202_011, 0x016, "ompt_state_wait_barrier_teams"),
    always(0x020, "ompt_state_wait_taskwait"),
    always(0x021, "ompt_state_wait_taskgroup"),
    always(0x040, "ompt_state_wait_mutex"),
    always(0x041, "ompt_state_wait_lock"),
    always(0x042, "ompt_state_wait_critical"),
    always(0x043, "ompt_state_wait_atomic"),
    always(0x044, "ompt_state_wait_ordered"),
    always(0x100, "ompt_state_idle"),
    always(0x101, "ompt_state_overhead"),
    always(UNDEFINED, "ompt_state_undefined"),
];

fn of_version(version: Word) -> impl Iterator<Item = &'static Listed> {
    STATES.iter().filter(move |state| state.since <= version && version < state.until)
}

/// A state of a version, for a state that it does not have: OpenMP 5.0 has no number for barriers the runtime itself needs.
pub(crate) fn in_version(number: Word, version: Word) -> Word {
    if of_version(version).any(|state| state.number == number) { number } else { 0x010 }
}

/// Whether there is such a state, in any version.
pub(crate) fn is_one(number: Word) -> bool {
    STATES.iter().any(|state| state.number == number)
}

/// Whether threads in this state wait for a lock or the like: only then a wait id means something (OpenMP 5.2, 19.4.4.29).
pub(crate) fn is_wait_for_mutex(number: Word) -> bool {
    (0x040..0x080).contains(&number)
}

/// The state enumerated after `current`, its name, and whether more follow; `None` if `current` is no state of this version.
pub(crate) fn after(current: Word, version: Word) -> Option<(Word, &'static str, bool)> {
    let states: Vec<&Listed> = of_version(version).collect();
    // It is the last one as well: what a thread is in of which nothing tells.
    let next = match current {
        UNDEFINED => 0,
        _ => states.iter().position(|state| state.number == current)? + 1,
    };
    states.get(next).map(|state| (state.number, state.name, next + 1 < states.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_enumerated_once_and_unknown_ones_are_refused() {
        for version in [201_811, 202_011, 202_111, 202_411] {
            let (mut at, mut seen) = (UNDEFINED, Vec::new());
            while let Some((next, name, more)) = after(at, version) {
                assert!(name.starts_with("ompt_state_") && !seen.contains(&next));
                seen.push(next);
                at = next;
                assert_eq!(more, next != UNDEFINED);
                if !more {
                    break;
                }
            }
            assert_eq!(seen.contains(&0x015), version >= 202_011);
            assert_eq!(seen.contains(&0x013), version < 202_411);
            assert_eq!(after(0x015, version).is_some(), version >= 202_011);
            assert!(after(0x999, version).is_none() && after(-1, version).is_none());
        }
        assert!(STATES.iter().all(|state| is_one(state.number)) && !is_one(0x999) && !is_one(-1));
        let waiting = |number| is_wait_for_mutex(number);
        assert!(waiting(0x040) && waiting(0x044) && waiting(0x07f) && !waiting(0x03f) && !waiting(0x080));
        assert_eq!(in_version(0x015, 201_811), 0x010);
        assert_eq!(in_version(0x015, 202_111), 0x015);
    }
}
