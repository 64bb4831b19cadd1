//! Where a stripped libomp keeps the items of control variables that are lists.

use ompd_layout::code::{Compare, Event, Expr, Limits, Load, Run};

use super::{Recipes, internal, through_threads};
use crate::kmp::schema::{NESTED_BIND, NESTED_NTH};
use crate::recover::{unanimous, values};

/// Argument of the functions below that is the number of the calling thread.
const GTID: u8 = 1;

impl Recipes<'_> {
    /// `__kmp_serialized_parallel`, which `__kmpc_serialized_parallel` hands its arguments to: `if (__kmp_nested_nth.used &&
    /// (level + 1 < __kmp_nested_nth.used)) this_thr->th.th_current_task->td_icvs.nproc = __kmp_nested_nth.nth[level + 1];`,
    /// and the same of `proc_bind`. From LLVM 19 on the first list is that of `this_thr->th.th_team->t.t_nested_nth` if there
    /// is one. Which control variable gets an item is told by `omp_get_max_threads` and `omp_get_proc_bind`.
    pub(super) fn lists(&mut self) {
        let function = "__kmpc_serialized_parallel";
        let Some(outer) = self.decoder.run(function) else { return };
        let mut entries = vec![outer.entry()];
        entries.extend(outer.calls().filter(|c| c.args[1].as_arg() == Some(GTID)).filter_map(internal));
        entries.dedup();
        let variables = [
            ("omp_get_max_threads", NESTED_NTH, "kmp_nested_nthreads", "nth"),
            ("omp_get_proc_bind", NESTED_BIND, "kmp_nested_proc_bind", "bind_types"),
        ];
        let members = variables.map(|(accessor, ..)| self.own_icv(accessor));
        let mut all: [Vec<Found>; 2] = Default::default();
        // More ways through the functions are gone only where fewer do not show both lists.
        for paths in [32, 128] {
            let limits = Limits { paths, ..Limits::default() };
            let run = |entry: &u64| self.decoder.run_at_within(function, *entry, &limits);
            let runs: Vec<Run> = entries.iter().filter_map(run).collect();
            let found = |member: i64| runs.iter().flat_map(|run| self.found(run, member)).collect();
            all = members.map(|member| member.map(found).unwrap_or_default());
            if all.iter().all(|found| variable(found).is_some()) {
                break;
            }
        }
        for ((member, (_, global, of, items)), found) in members.into_iter().zip(variables).zip(all) {
            if member.is_none() {
                continue;
            }
            let Some((list, used)) = variable(&found) else {
                self.decoder.not_found(function, global, &outer);
                continue;
            };
            self.decoder.global(global, list);
            self.decoder.field(of, items, 0, 8);
            self.decoder.field(of, "used", used.wrapping_sub(list) as i64, 4);
            for found in found {
                if let Found::OfTeam(at) = found {
                    self.decoder.field("kmp_base_team", "t_nested_nth", at, 8);
                }
            }
        }
    }

    /// Where a control variable lies in the task of the calling thread, by the function that returns it.
    fn own_icv(&mut self, accessor: &str) -> Option<i64> {
        let run = self.decoder.run(accessor)?;
        let task = self.pointer("th_current_task")?;
        let found = unanimous(values(&run).filter_map(|value| match through_threads(&value)?.1.as_slice() {
            [(at, 8), (member, 4)] if *at == task => Some(*member),
            _ => None,
        }));
        if found.is_none() {
            self.decoder.not_found(accessor, "the control variable", &run);
        }
        found
    }

    /// The lists of which an item becomes the control variable at `member` of the current task.
    fn found(&self, run: &Run, member: i64) -> Vec<Found> {
        let gets = |value: &Expr| {
            let mut stores = run.stores().filter(|s| s.size == 4 && s.value == *value);
            stores.any(|s| self.behind("th_current_task", &s.addr) == Some(member))
        };
        let mut found = Vec::new();
        for path in run.paths() {
            let mut used = None;
            for event in path {
                match event {
                    // The level counted last is the one that is looked up.
                    Event::Compare(c) => used = used_by(c).or(used),
                    Event::Load(load) if load.size == 4 => {
                        let Some((list, level)) = item(load).filter(|_| gets(&load.value())) else { continue };
                        let of_team = list.as_load(8).and_then(|at| self.behind("th_team", at));
                        match (list.as_const(), &used) {
                            (Some(list), Some((used, compared))) if *compared == level => {
                                found.push(Found::Variable { list, used: *used });
                            }
                            (None, _) => found.extend(of_team.map(Found::OfTeam)),
                            _ => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// A list.
enum Found {
    /// Of the process: where the variable lies that points to it, and the number of its items.
    Variable { list: u64, used: u64 },
    /// Of a team: where in the team the pointer to its struct lies.
    OfTeam(i64),
}

/// The list of the process, and the number of its items, if all ways show the same.
fn variable(found: &[Found]) -> Option<(u64, u64)> {
    let variable = unanimous(found.iter().filter_map(|found| match found {
        Found::Variable { list, used } => Some((*list, *used)),
        Found::OfTeam(_) => None,
    }));
    // The list is the first member of its struct in every release.
    variable.filter(|(list, used)| (8..=16).contains(&used.wrapping_sub(*list)))
}

/// Of `LIST[level + 1]`: where the pointer to the list lies, and the level.
fn item(load: &Load) -> Option<(Expr, Expr)> {
    let item = load.addr.as_indexed().filter(|item| item.scale == 4 && item.offset == 4)?;
    Some((item.base.as_load(8)?.clone(), item.index))
}

/// Of a comparison of `level + 1` with a variable: where that lies, and the level.
fn used_by(compare: &Compare) -> Option<(u64, Expr)> {
    let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
    sides.into_iter().filter(|_| compare.size == 4).find_map(|(one, other)| {
        let (level, plus) = other.split();
        (plus == 1).then(|| Some((one.as_load(4)?.as_const()?, level)))?
    })
}
