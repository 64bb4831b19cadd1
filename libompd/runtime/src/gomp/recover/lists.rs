//! Where a stripped libgomp keeps the items of control variables that are lists.

use ompd_layout::code::{Event, Expr, Kind, Limits, Load, Run};

use super::Recipes;
use crate::gomp::schema::{BIND_LIST, BIND_LIST_LEN, NTHREADS_LIST, NTHREADS_LIST_LEN};
use crate::recover::unanimous;

/// Bytes of an item, the control variable that it is for, and names of the list and of its length.
const VARIABLES: [(u8, &str, [&str; 2]); 2] =
    [(8, "nthreads_var", [NTHREADS_LIST, NTHREADS_LIST_LEN]), (1, "bind_var", [BIND_LIST, BIND_LIST_LEN])];

impl Recipes<'_> {
    /// `gomp_team_start`, at `entry`: `if (gomp_nthreads_var_list != NULL && thr->ts.level < gomp_nthreads_var_list_len)
    /// nthreads_var = gomp_nthreads_var_list[thr->ts.level]; … team->implicit_task[0].icv.nthreads_var = nthreads_var;`, and
    /// the same of `bind_var`, the items of which have one byte. `tasks` is where the implicit tasks lie in the team,
    /// `first` a look at the function.
    pub(super) fn lists(&mut self, entry: u64, tasks: i64, first: &Run) {
        let function = "gomp_team_start";
        let mut found = self.all(first, tasks);
        let mut far = None;
        // What is done with lists is off the beaten path, and may lie behind all the loops over threads. More ways are gone only
        // where fewer do not show it.
        for paths in [64, 256] {
            if found.iter().all(Option::is_some) {
                break;
            }
            let limits = Limits { paths, ..Limits::default() };
            let Some(run) = self.decoder.run_at_within(function, entry, &limits) else { return };
            found = self.all(&run, tasks);
            far = Some(run);
        }
        let run = far.as_ref().unwrap_or(first);
        for ((width, member, names), found) in VARIABLES.into_iter().zip(found) {
            match found {
                Some(found) => {
                    for (name, addr) in names.into_iter().zip(found) {
                        self.decoder.global(name, addr);
                    }
                    // An item is as wide as what it is stored to.
                    if let Some(field) = self.decoder.known("gomp_task_icv", member) {
                        self.decoder.field("gomp_task_icv", member, field.offset as i64, width);
                    }
                }
                None => self.decoder.not_found_at(function, Some(entry), names[0], run),
            }
        }
    }

    /// What [`Recipes::list`] finds of each.
    fn all(&self, run: &Run, tasks: i64) -> [Option<[u64; 2]>; 2] {
        VARIABLES.map(|(width, member, _)| self.list(run, tasks, member, width))
    }

    /// The addresses of the list and of its length, of which an item of `width` bytes is what the member gets.
    fn list(&self, run: &Run, tasks: i64, member: &str, width: u8) -> Option<[u64; 2]> {
        const TEAM: u8 = 4;
        let offset = |of: &str, name: &str| Some(self.decoder.known(of, name)?.offset as i64);
        let member = tasks.checked_add(offset("gomp_task", "icv")?)?.checked_add(offset("gomp_task_icv", member)?)?;
        let gets = |value: &Expr| {
            let mut stores = run.stores().filter(|s| s.size == width && s.value == *value);
            stores.any(|s| s.addr.split().1 == member && s.addr.split().0.as_arg() == Some(TEAM))
        };
        let level = offset("gomp_thread", "ts.level")?;
        let is_level = |value: &Expr| value.as_load(4).is_some_and(|addr| self.in_thread(addr) == Some(level));
        // On each way to an item its level has been compared with the length.
        let mut found = Vec::new();
        for path in run.paths() {
            let mut length = None;
            for event in path {
                match event {
                    Event::Compare(c) if c.size == 8 => {
                        let sides = [(&c.left, &c.right), (&c.right, &c.left)];
                        let against = |(one, other): (&Expr, &Expr)| {
                            is_level(&other.split().0).then(|| one.as_load(8)?.as_const())?
                        };
                        length = sides.into_iter().find_map(against).or(length);
                    }
                    Event::Load(load) if load.size == width => {
                        if let Some((list, _)) = item(load).filter(|(_, index)| is_level(index))
                            && gets(&load.value())
                        {
                            found.push(length.filter(|length| *length != list).map(|length| [list, length]));
                        }
                    }
                    _ => {}
                }
            }
        }
        unanimous(found.into_iter())?
    }
}

/// Of an item of a list that a variable points to: where that variable lies, and the subscript, less a constant.
fn item(load: &Load) -> Option<(u64, Expr)> {
    let (base, _) = load.addr.split();
    let Kind::Index { base, index, scale } = base.kind() else { return None };
    if *scale != u64::from(load.size) {
        return None;
    }
    let variable = |value: &Expr| value.as_load(8)?.as_const();
    // The sum of two values does not show which of them is the subscript where items are of one byte.
    match (variable(base), variable(index)) {
        (Some(list), None) => Some((list, index.clone())),
        (None, Some(list)) if *scale == 1 => Some((list, base.clone())),
        _ => None,
    }
}
