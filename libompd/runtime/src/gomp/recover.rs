//! What a stripped libgomp gives away: the functions it exports read the very fields that are wanted.
//!
//! Each recipe names the C it recognises, from `libgomp/{parallel,icv,critical,atomic,barrier,task,ordered,team}.c`.
//! Only what the code computes counts, not its instructions. What a recipe found helps the next one: that something is
//! a `gomp_team` is known by the field of `gomp_thread` it was reached through.

use std::collections::BTreeSet;
use std::ops::Range;

use ompd_layout::code::{Call, Callee, Chain, Expr, Kind, Run, Store, TlsSlot};
use ompd_process::elf::ElfFile;

use super::schema::{
    AFFINITY_FORMAT, ATOMIC_LOCK, AVAILABLE_CPUS, CANCEL, DEF_ALLOCATOR, DEFAULT_LOCK, GLOBAL_ICV, MAX_ACTIVE_LEVELS,
    MAX_TASK_PRIORITY, NTEAMS, PLACES, PLACES_LEN, SCHEMA, TEAMS_THREAD_LIMIT, TLS_SLOT,
};
use crate::recover::{Decoder, Recovered, measured, unanimous, values};

mod lists;

pub(super) fn recover(image: &ElfFile) -> Recovered {
    let mut recipes = Recipes::new(image);
    recipes.foundations();
    recipes.task();
    recipes.explicit_task();
    recipes.taskgroup();
    recipes.barrier();
    recipes.ordered();
    recipes.team_end();
    recipes.pool();
    recipes.team_start();
    recipes.locks();
    recipes.cancellation();
    recipes.settings();
    recipes.places();
    recipes.decoder.finish()
}

/// Where `gomp_tls_data` lies in a program that has libgomp built in, in bytes from the thread pointer. Its code has
/// these distances as constants, from which alone nobody could tell where one variable ends and the next begins.
fn built_in(image: &ElfFile) -> Option<Range<i64>> {
    let variable = image.symbol("gomp_tls_data")?;
    let start = image.thread_pointer_offset(&variable)?;
    Some(start..start.checked_add_unsigned(variable.size)?)
}

/// Recipes, and what they have found so far.
pub(super) struct Recipes<'a> {
    pub(super) decoder: Decoder<'a>,
    /// In a program: where the calling thread's `gomp_thread` lies, in bytes from the thread pointer.
    built_in: Option<Range<i64>>,
    /// Which thread-local variable `gomp_tls_data` is: the addend of its relocation. Several slots may lead to it.
    thread: Option<i64>,
    /// Offsets in `gomp_thread` of the pointers to the team, the task and the pool.
    pub(super) team: Option<i64>,
    pub(super) task: Option<i64>,
    pool: Option<i64>,
}

impl<'a> Recipes<'a> {
    pub(super) fn new(image: &'a ElfFile) -> Recipes<'a> {
        let decoder = Decoder::new(image, &SCHEMA);
        Recipes { decoder, built_in: built_in(image), thread: None, team: None, task: None, pool: None }
    }

    /// What everything else is reached from: the thread, its team and its task.
    pub(super) fn foundations(&mut self) {
        self.thread_numbers();
        self.team();
        self.ancestors();
        self.task_and_icvs();
    }
}

impl Recipes<'_> {
    /// The addend of the relocation behind a TLS slot: which thread-local variable it leads to.
    fn variable(&self, slot: TlsSlot) -> Option<i64> {
        // The word after a module number holds the variable's offset, which is what its relocation adds.
        let at = match slot {
            TlsSlot::Module(_) => return Some(0),
            _ => slot.address(),
        };
        self.decoder.image().relocations().get(&at).map(|r| r.addend)
    }

    /// Offset in the calling thread's `gomp_thread`, if `addr` lies in it.
    pub(super) fn in_thread(&self, addr: &Expr) -> Option<i64> {
        let (base, offset) = addr.split();
        self.offset_in_thread(&base, offset)
    }

    fn offset_in_thread(&self, base: &Expr, offset: i64) -> Option<i64> {
        if let Kind::ThreadPointer = base.kind() {
            let own = self.built_in.as_ref().filter(|own| own.contains(&offset))?;
            return offset.checked_sub(own.start);
        }
        let variable = self.variable(base.as_tls()?)?;
        self.thread.is_none_or(|known| known == variable).then_some(offset)
    }

    /// Offset in the struct that the pointer at `pointer` of the calling thread's `gomp_thread` leads to.
    pub(super) fn behind(&self, pointer: Option<i64>, addr: &Expr) -> Option<i64> {
        let (at, offset) = addr.as_member()?;
        (self.in_thread(&at)? == pointer?).then_some(offset)
    }

    /// The pointers followed from `gomp_thread` on, if `value` was reached that way: the first offset is one in it.
    fn chain_from_thread(&self, value: &Expr) -> Option<Chain> {
        let mut chain = value.chain()?;
        let first = chain.steps.first_mut()?;
        first.offset = self.offset_in_thread(&chain.root, first.offset)?;
        Some(chain)
    }

    /// `return gomp_thread ()->ts.FIELD;`
    fn thread_numbers(&mut self) {
        let recipes = [
            ("omp_get_thread_num", "ts.team_id"),
            ("omp_get_level", "ts.level"),
            ("omp_get_active_level", "ts.active_level"),
        ];
        for (function, field) in recipes {
            let Some(run) = self.decoder.run(function) else { continue };
            let found = run.returned().find_map(|value| {
                let chain = self.chain_from_thread(value)?;
                let [offset] = chain.offsets([4])?;
                Some((chain.root.as_tls(), offset))
            });
            let Some((slot, offset)) = found else {
                self.decoder.not_found(function, field, &run);
                continue;
            };
            self.thread = self.thread.or(slot.and_then(|slot| self.variable(slot)));
            // Only a slot with the offset from the thread pointer can be read by somebody else.
            if let Some(TlsSlot::Offset(at)) = slot
                && function == "omp_get_thread_num"
            {
                self.decoder.global(TLS_SLOT, at);
            }
            self.decoder.field("gomp_thread", field, offset, 4);
        }
    }

    /// `struct gomp_team *team = gomp_thread ()->ts.team; return team ? team->nthreads : 1;`
    fn team(&mut self) {
        let function = "omp_get_num_threads";
        let Some(run) = self.decoder.run(function) else { return };
        match run.returned().find_map(|value| self.chain_from_thread(value)?.offsets([8, 4])) {
            Some([team, nthreads]) => {
                self.team = Some(team);
                self.decoder.field("gomp_thread", "ts.team", team, 8);
                self.decoder.field("gomp_team", "nthreads", nthreads, 4);
            }
            None => self.decoder.not_found(function, "ts.team", &run),
        }
    }

    /// `ts = &gomp_thread ()->ts; for (level = ts->level - level; level > 0; --level) ts = &ts->team->prev_ts;
    /// return ts->team_id;`
    ///
    /// `prev_ts` is a `struct gomp_team_state` just like `ts`: where one member lies in both tells where all do.
    fn ancestors(&mut self) {
        let function = "omp_get_ancestor_thread_num";
        let Some(run) = self.decoder.run_far(function) else { return };
        let chains = || run.returned().filter_map(|value| self.chain_from_thread(value));
        let own = chains().find_map(|c| c.offsets([4])).map(|[id]| id);
        let outer = chains().filter_map(|c| c.offsets([8, 4])).find(|[team, _]| Some(*team) == self.team);
        let further = chains().filter_map(|c| c.offsets([8, 8, 4])).find(|[team, ..]| Some(*team) == self.team);
        let (Some(own), Some([team, outer]), Some([_, prev_team, last])) = (own, outer, further) else {
            return self.decoder.not_found(function, "prev_ts", &run);
        };
        // Both ways the thread number lies as far from the team.
        if last != outer || outer - prev_team != own - team {
            return self.decoder.not_found(function, "one shape of gomp_team_state", &run);
        }
        let shift = prev_team - team;
        self.decoder.field("gomp_team", "prev_ts.team", prev_team, 8);
        self.decoder.field("gomp_team", "prev_ts.team_id", outer, 4);
        for (from, to) in [("ts.level", "prev_ts.level"), ("ts.active_level", "prev_ts.active_level")] {
            if let Some(field) = self.decoder.known("gomp_thread", from) {
                self.decoder.field("gomp_team", to, field.offset as i64 + shift, 4);
            }
        }
    }

    /// `struct gomp_task_icv *icv = gomp_icv (false); return icv->FIELD;` where `gomp_icv` is
    /// `task ? &task->icv : &gomp_global_icv`. `nthreads_var` is the first member in every release.
    fn task_and_icvs(&mut self) {
        let function = "omp_get_max_threads";
        if !self.decoder.has(function) && self.built_in.is_some() {
            return self.task_by_internal_names();
        }
        let Some(run) = self.decoder.run(function) else { return };
        let own = values(&run).find_map(|value| two_offsets(&self.chain_from_thread(&value)?));
        let global = values(&run).find_map(|value| value.as_any_load()?.as_const());
        let (Some([task, icv]), Some(global)) = (own, global) else {
            return self.decoder.not_found(function, "gomp_thread.task", &run);
        };
        self.task = Some(task);
        self.decoder.field("gomp_thread", "task", task, 8);
        self.decoder.field("gomp_task", "icv", icv, 0);
        self.decoder.field("gomp_task_icv", "nthreads_var", 0, 0);
        self.decoder.global(GLOBAL_ICV, global);

        let recipes = [
            ("omp_get_dynamic", "dyn_var"),
            ("omp_get_thread_limit", "thread_limit_var"),
            ("omp_get_max_active_levels", "max_active_levels_var"),
            ("omp_get_proc_bind", "bind_var"),
            ("omp_get_default_device", "default_device_var"),
        ];
        for (function, field) in recipes {
            let Some(run) = self.decoder.run(function) else { continue };
            let found = values(&run).find_map(|value| {
                let chain = self.chain_from_thread(&value)?;
                let size = chain.steps.last()?.size;
                let [own_task, offset] = two_offsets(&chain)?;
                (own_task == task).then_some((offset - icv, size))
            });
            match found {
                Some((offset, size)) => self.decoder.field("gomp_task_icv", field, offset, size),
                // Before GCC 11 `max-active-levels-var` is one variable for the whole process.
                None if function == "omp_get_max_active_levels" => {
                    match values(&run).find_map(|value| value.as_any_load()?.as_const()) {
                        Some(addr) => self.decoder.global(MAX_ACTIVE_LEVELS, addr),
                        None => self.decoder.not_found(function, field, &run),
                    }
                }
                None => self.decoder.not_found(function, field, &run),
            }
        }
        self.schedule(icv);
    }

    /// A program that asks for no control variable has no function that tells them, but the names of internal ones.
    /// `gomp_end_task`: `struct gomp_task *task = thr->task; … thr->task = task->parent;`, and
    /// `gomp_init_task (task, parent_task, prev_icv)`: `task->icv = *prev_icv;`
    fn task_by_internal_names(&mut self) {
        const TASK: u8 = 0;
        const ICV: u8 = 2;
        let names = ["gomp_end_task", "gomp_init_task"];
        let [Some(end), Some(init)] = names.map(|name| self.decoder.entry(name)) else {
            return self
                .decoder
                .failure("neither omp_get_max_threads nor gomp_end_task and gomp_init_task have a name");
        };
        let Some(run) = self.decoder.run_at(names[0], end) else { return };
        let left = run.stores().filter(|s| s.size == 8).filter_map(|s| {
            let task = self.in_thread(&s.addr)?;
            let (from, parent) = s.value.as_load(8)?.as_member()?;
            (self.in_thread(&from)? == task).then_some((task, parent))
        });
        let Some((task, parent)) = unanimous(left) else {
            return self.decoder.not_found_at(names[0], Some(end), "task", &run);
        };
        self.task = Some(task);
        self.decoder.field("gomp_thread", "task", task, 8);
        self.decoder.field("gomp_task", "parent", parent, 8);

        let Some(run) = self.decoder.run_at(names[1], init) else { return };
        let copied = run.stores().filter_map(|s| {
            let ((to, at), (from, offset)) = (s.addr.split(), s.value.as_load(s.size)?.split());
            (to.as_arg() == Some(TASK) && from.as_arg() == Some(ICV)).then(|| at.checked_sub(offset))?
        });
        match unanimous(copied) {
            Some(icv) => {
                self.decoder.field("gomp_task", "icv", icv, 0);
                self.decoder.field("gomp_task_icv", "nthreads_var", 0, 0);
            }
            None => self.decoder.not_found_at(names[1], Some(init), "icv", &run),
        }
    }

    /// `*kind = icv->run_sched_var; *chunk_size = icv->run_sched_chunk_size;`
    fn schedule(&mut self, icv: i64) {
        let function = "omp_get_schedule";
        let Some(run) = self.decoder.run(function) else { return };
        for (argument, field) in [(0, "run_sched_var"), (1, "run_sched_chunk_size")] {
            let given = run.stores().filter(|s| s.size == 4 && s.addr.as_arg() == Some(argument));
            match given.filter_map(|s| self.behind(self.task, s.value.as_any_load()?)).next() {
                Some(offset) => self.decoder.field("gomp_task_icv", field, offset - icv, 4),
                None => self.decoder.not_found(function, field, &run),
            }
        }
    }

    /// `return task && task->final_task;`
    fn task(&mut self) {
        let function = "omp_in_final";
        if let Some(run) = self.decoder.run(function) {
            let found = run.returned().find_map(|value| self.behind(self.task, value.as_load(1)?));
            match found {
                Some(offset) => self.decoder.field("gomp_task", "final_task", offset, 1),
                None => self.decoder.not_found(function, "final_task", &run),
            }
        }
        // `return thr->task && thr->task->kind != GOMP_TASK_IMPLICIT;` (GCC 13 and later)
        let function = "omp_in_explicit_task";
        if self.decoder.has(function)
            && let Some(run) = self.decoder.run(function)
        {
            let found = unanimous(run.loads().filter(|l| l.size == 4).filter_map(|l| self.behind(self.task, &l.addr)));
            match found {
                Some(offset) => self.decoder.field("gomp_task", "kind", offset, 4),
                None => self.decoder.not_found(function, "kind", &run),
            }
        }
    }

    /// A task that is not executed at once is allocated, and gets its function:
    /// `task = gomp_malloc (sizeof (*task) + …); … task->fn = fn;`. One that is ends with `thr->task = task->parent`.
    pub(super) fn explicit_task(&mut self) {
        const WAITING: u64 = 2;
        let function = "GOMP_task";
        let Some(run) = self.decoder.run(function) else { return };
        let fn_ = unanimous(run.stores().filter(|s| s.size == 8 && s.value.as_arg() == Some(0)).filter_map(fresh));
        match fn_ {
            Some(offset) => self.decoder.field("gomp_task", "fn", offset, 8),
            None => self.decoder.not_found(function, "fn", &run),
        }
        let own_task =
            run.stores().filter(|s| s.size == 8 && self.task.is_some() && self.in_thread(&s.addr) == self.task);
        match unanimous(own_task.filter_map(|s| self.behind(self.task, s.value.as_load(8)?))) {
            Some(offset) => self.decoder.field("gomp_task", "parent", offset, 8),
            None => self.decoder.not_found(function, "parent", &run),
        }
        let kinds = run.stores().filter(|s| s.size == 4 && s.value.as_const() == Some(WAITING));
        match unanimous(kinds.filter_map(fresh)) {
            Some(offset) => self.decoder.field("gomp_task", "kind", offset, 4),
            None => self.decoder.not_found(function, "kind", &run),
        }
    }

    /// `taskgroup = gomp_malloc (sizeof (*taskgroup)); taskgroup->prev = task->taskgroup; …
    /// gomp_sem_init (&taskgroup->taskgroup_sem, 0); … task->taskgroup = taskgroup;`
    fn taskgroup(&mut self) {
        let function = "GOMP_taskgroup_start";
        let Some(run) = self.decoder.run(function) else { return };
        let linked = run.stores().find_map(|s| {
            s.value.as_call()?;
            self.behind(self.task, &s.addr)
        });
        let Some(taskgroup) = linked else { return self.decoder.not_found(function, "taskgroup", &run) };
        self.decoder.field("gomp_task", "taskgroup", taskgroup, 8);
        let prev = run.stores().find_map(|s| {
            let outer = self.behind(self.task, s.value.as_load(8)?)?;
            (outer == taskgroup).then(|| fresh(s))?
        });
        match prev {
            Some(offset) => self.decoder.field("gomp_taskgroup", "prev", offset, 8),
            None => self.decoder.not_found(function, "prev", &run),
        }
        let sems = run.stores().filter(|s| s.size == 4 && s.value.as_const() == Some(0));
        match unanimous(sems.filter_map(fresh)) {
            Some(offset) => self.decoder.field("gomp_taskgroup", "taskgroup_sem", offset, 4),
            None => self.decoder.not_found(function, "taskgroup_sem", &run),
        }
    }

    /// `GOMP_barrier`: `if (team) gomp_team_barrier_wait (&team->barrier);`, and there
    /// `gomp_barrier_wait_start`: `ret = bar->generation & …; if (--bar->awaited == 0) …`.
    fn barrier(&mut self) {
        let Some((wait, barrier)) = self.barrier_calls() else { return };
        let Some(run) = self.decoder.run_at("gomp_team_barrier_wait", wait) else { return };
        let Some(awaited) = unanimous(decremented(&run)) else {
            return self.decoder.not_found_at("gomp_team_barrier_wait", Some(wait), "awaited", &run);
        };
        self.decoder.field("gomp_team", "barrier.awaited", barrier + awaited, 4);
        let words = run.loads().filter(|l| l.size == 4).filter_map(|l| in_argument(&l.addr));
        match unanimous(words.filter(|offset| *offset != awaited)) {
            Some(generation) => {
                self.decoder.field("gomp_team", "barrier.generation", barrier + generation, 4);
                self.barrier_total(&run, barrier, awaited);
            }
            None => self.decoder.not_found_at("gomp_team_barrier_wait", Some(wait), "generation", &run),
        }
    }

    /// The function that waits at a team's barrier, and where the barrier lies in the team.
    fn barrier_calls(&mut self) -> Option<(u64, i64)> {
        let function = "GOMP_barrier";
        // A program that has libgomp built in may do without, and has the names of the internal functions.
        let names = ["gomp_team_barrier_wait", "gomp_team_end", "gomp_team_barrier_wait_final"];
        if !self.decoder.has(function)
            && let [Some(wait), Some(end), Some(last)] = names.map(|name| self.decoder.entry(name))
        {
            let run = self.decoder.run_at("gomp_team_end", end)?;
            let waits = run.calls().filter(|call| internal(call) == Some(last));
            let found = unanimous(waits.filter_map(|call| self.behind(self.team, &call.args[0])));
            if found.is_none() {
                self.decoder.not_found_at("gomp_team_end", Some(end), "barrier", &run);
            }
            return Some((wait, found?));
        }
        let run = self.decoder.run(function)?;
        let found = run.calls().find_map(|call| Some((internal(call)?, self.behind(self.team, &call.args[0])?)));
        if found.is_none() {
            self.decoder.not_found(function, "barrier", &run);
        }
        found
    }

    /// `gomp_team_barrier_wait_end`, called or inlined: the last to arrive does `bar->awaited = bar->total;`
    fn barrier_total(&mut self, wait: &Run, barrier: i64, awaited: i64) {
        let end = wait.calls().find_map(|call| {
            let entry = internal(call)?;
            (call.args[0].as_arg() == Some(0)).then_some(entry)
        });
        let run = match end {
            Some(entry) => self.decoder.run_at("gomp_team_barrier_wait_end", entry),
            None => None,
        };
        let resets = |run: &Run| {
            unanimous(run.stores().filter(|s| s.size == 4 && in_argument(&s.addr) == Some(awaited)).filter_map(|s| {
                let from = in_argument(s.value.as_load(4)?)?;
                (from != awaited).then_some(from)
            }))
        };
        match run.as_ref().and_then(resets).or_else(|| resets(wait)) {
            Some(total) => self.decoder.field("gomp_team", "barrier.total", barrier + total, 4),
            None => self.decoder.failure("gomp_team_barrier_wait_end: does not show barrier.total"),
        }
    }

    /// `gomp_sem_wait (team->ordered_release[thr->ts.team_id]);`
    fn ordered(&mut self) {
        let function = "GOMP_ordered_start";
        let Some(run) = self.decoder.run(function) else { return };
        let found = run.loads().filter(|l| l.size == 8).find_map(|load| {
            let entry = load.addr.as_indexed().filter(|e| e.scale == 8 && e.offset == 0)?;
            self.behind(self.team, entry.base.as_load(8)?)
        });
        match found {
            Some(offset) => self.decoder.field("gomp_team", "ordered_release", offset, 8),
            None => self.decoder.not_found(function, "ordered_release", &run),
        }
    }

    /// `gomp_team_end`, which `GOMP_parallel_end` ends with: `struct gomp_thread_pool *pool = thr->thread_pool; …
    /// pool->last_team = team;`, and `gomp_team_barrier_wait_final (&team->barrier)`: `if (--bar->awaited_final == 0)`.
    fn team_end(&mut self) {
        let function = "GOMP_parallel_end";
        let Some(run) = self.decoder.run(function) else { return };
        // It is the function's end, and jumped to where the compiler makes jumps of last calls.
        let called: BTreeSet<u64> = run.calls().filter_map(internal).collect();
        let mut found = None;
        for entry in called {
            let Some(run) = self.decoder.run_at("gomp_team_end", entry) else { continue };
            let kept = run.stores().filter(|s| s.size == 8 && self.team.is_some()).find_map(|s| {
                // The team that ended, into what some other member of gomp_thread points to.
                let team = self.in_thread(s.value.as_load(8)?)?;
                let (at, last_team) = s.addr.as_member()?;
                let pool = self.in_thread(&at)?;
                (Some(team) == self.team && Some(pool) != self.team).then_some((pool, last_team))
            });
            if let Some(kept) = kept {
                found = Some((kept, run));
                break;
            }
        }
        let Some(((pool, last_team), run)) = found else {
            return self.decoder.not_found(function, "gomp_team_end with thread_pool", &run);
        };
        self.pool = Some(pool);
        self.decoder.field("gomp_thread", "thread_pool", pool, 8);
        self.decoder.field("gomp_thread_pool", "last_team", last_team, 8);

        let Some(barrier) = self.barrier_start() else { return };
        let waits = run.calls().filter(|c| self.behind(self.team, &c.args[0]) == Some(barrier));
        for entry in waits.filter_map(internal).collect::<Vec<_>>() {
            let Some(run) = self.decoder.run_at("gomp_team_barrier_wait_final", entry) else { continue };
            let Some(awaited_final) = unanimous(decremented(&run)) else { continue };
            self.decoder.field("gomp_team", "barrier.awaited_final", barrier + awaited_final, 4);
            return;
        }
        self.decoder.failure("gomp_team_end: does not show barrier.awaited_final");
    }

    /// Where the barrier lies in `gomp_team`: `total` is its first member in every release (`config/linux/bar.h`).
    fn barrier_start(&self) -> Option<i64> {
        Some(self.decoder.known("gomp_team", "barrier.total")?.offset as i64)
    }

    /// `gomp_pause_host` (GCC 9 and later): `if (pool->threads_used > 0) { for (i = 1; i < pool->threads_used; i++)
    /// nthr = pool->threads[i]; … gomp_simple_barrier_wait (&pool->threads_dock);`
    fn pool(&mut self) {
        let function = "omp_pause_resource_all";
        let Some(run) = self.decoder.run(function) else { return };
        let Some(entry) = run.calls().find_map(internal) else {
            return self.decoder.not_found(function, "gomp_pause_host", &run);
        };
        let Some(run) = self.decoder.run_at("gomp_pause_host", entry) else { return };
        let not_found =
            |this: &mut Self, what: &str| this.decoder.not_found_at("gomp_pause_host", Some(entry), what, &run);
        match unanimous(run.loads().filter(|l| l.size == 4).filter_map(|l| self.behind(self.pool, &l.addr))) {
            Some(offset) => self.decoder.field("gomp_thread_pool", "threads_used", offset, 4),
            None => not_found(self, "threads_used"),
        }
        // The array's elements are pointers themselves: `nthr->fn = …`.
        let elements = run.stores().filter_map(|s| s.addr.as_member().and_then(|(at, _)| at.as_member()));
        match unanimous(elements.filter_map(|(at, _)| self.behind(self.pool, &at))) {
            Some(offset) => self.decoder.field("gomp_thread_pool", "threads", offset, 8),
            None => not_found(self, "threads"),
        }
        let docks = run.calls().filter(|c| internal(c).is_some()).filter_map(|c| self.behind(self.pool, &c.args[0]));
        // The pool itself is no dock.
        let dock = unanimous(docks.filter(|offset| *offset != 0));
        let generation = self.decoder.known("gomp_team", "barrier.generation").zip(self.barrier_start());
        match (dock, generation) {
            (Some(dock), Some((generation, start))) => {
                let within = generation.offset as i64 - start;
                self.decoder.field("gomp_thread_pool", "threads_dock.bar.generation", dock + within, 4);
            }
            _ => not_found(self, "threads_dock"),
        }
    }

    /// `gomp_team_start (fn, data, nthreads, flags, team, taskgroup)`, called by `GOMP_parallel`:
    /// `thr->ts.team = team; … thr->task = &team->implicit_task[0]; …`, and for every other member
    /// `nthr->task = &team->implicit_task[i]; team->ordered_release[i] = &nthr->release;`
    fn team_start(&mut self) {
        const TEAM: u8 = 4;
        let function = "GOMP_parallel";
        let Some(run) = self.decoder.run(function) else { return };
        let starts = run.calls().filter(|c| c.args[0].as_arg() == Some(0) && c.args[1].as_arg() == Some(1) && !c.tail);
        let Some(entry) = starts.filter_map(internal).next() else {
            return self.decoder.not_found(function, "gomp_team_start", &run);
        };
        let Some(run) = self.decoder.run_at("gomp_team_start", entry) else { return };
        let in_team = |addr: &Expr| addr.split().0.as_arg().filter(|n| *n == TEAM).map(|_| addr.split().1);
        let enters = run.stores().any(|s| self.in_thread(&s.addr) == self.team && s.value.as_arg() == Some(TEAM));
        let own = run.stores().filter(|s| self.task.is_some() && self.in_thread(&s.addr) == self.task);
        let Some(first) = unanimous(own.filter_map(|s| in_team(&s.value))).filter(|_| enters) else {
            return self.decoder.not_found_at("gomp_team_start", Some(entry), "implicit_task", &run);
        };
        self.decoder.field("gomp_team", "implicit_task", first, 0);
        self.lists(entry, first, &run);
        let later: Vec<i64> = run.stores().filter_map(|s| in_team(&s.value)).filter(|at| *at > first).collect();
        let size =
            later.iter().map(|at| at - first).min().filter(|size| later.iter().all(|at| (at - first) % size == 0));
        match size {
            Some(size) => self.decoder.size("gomp_task", size as u64),
            None => self.decoder.not_found_at("gomp_team_start", Some(entry), "sizeof(gomp_task)", &run),
        }
        let Some(ordered) = self.decoder.known("gomp_team", "ordered_release") else { return };
        let releases = run.stores().filter(|s| s.size == 8).filter_map(|s| {
            let array = match s.addr.as_indexed() {
                Some(entry) => entry.base,
                None => s.addr.split().0,
            };
            (in_team(array.as_load(8)?)? == ordered.offset as i64).then(|| s.value.as_member().map(|(_, at)| at))?
        });
        match unanimous(releases) {
            Some(offset) => self.decoder.field("gomp_thread", "release", offset, 4),
            None => self.decoder.not_found_at("gomp_team_start", Some(entry), "release", &run),
        }
    }

    /// `return gomp_cancel_var;`
    fn cancellation(&mut self) {
        let function = "omp_get_cancellation";
        let Some(run) = self.decoder.run(function) else { return };
        match values(&run).find_map(|value| value.as_any_load()?.as_const()) {
            Some(addr) => self.decoder.global(CANCEL, addr),
            None => self.decoder.not_found(function, CANCEL, &run),
        }
    }

    /// `gomp_mutex_lock (&default_lock);` and `gomp_mutex_lock (&atomic_lock);`, and in `GOMP_taskgroup_end`
    /// `gomp_mutex_lock (&team->task_lock);`
    fn locks(&mut self) {
        for (function, lock) in [("GOMP_critical_start", DEFAULT_LOCK), ("GOMP_atomic_start", ATOMIC_LOCK)] {
            let Some(run) = self.decoder.run(function) else { continue };
            let stored = run.stores().find_map(|store| store.addr.as_const());
            // Where the whole lock operation is a call (outline atomics, a slow path), the lock is its argument.
            let passed = || run.calls().find_map(|call| call.args.iter().find_map(Expr::as_const).filter(|a| *a > 1));
            match stored.or_else(passed) {
                Some(addr) => self.decoder.global(lock, addr),
                None => self.decoder.not_found(function, lock, &run),
            }
        }
        let function = "GOMP_taskgroup_end";
        let Some(run) = self.decoder.run(function) else { return };
        let taken = run.stores().filter(|s| s.locked && s.size == 4 && s.value.as_const() == Some(1));
        match unanimous(taken.filter_map(|s| self.behind(self.team, &s.addr))) {
            Some(offset) => self.decoder.field("gomp_team", "task_lock", offset, 4),
            None => self.decoder.not_found(function, "task_lock", &run),
        }
    }
}

impl Recipes<'_> {
    /// `return gomp_max_task_priority_var;`, `return gomp_places_list_len;`, and `omp_get_num_procs`, which returns
    /// `gomp_available_cpus` where places are set.
    fn settings(&mut self) {
        let recipes = [
            ("omp_get_max_task_priority", MAX_TASK_PRIORITY, &[4][..]),
            ("omp_get_num_procs", AVAILABLE_CPUS, &[4]),
            ("omp_get_num_places", PLACES_LEN, &[4, 8]),
            ("omp_get_default_allocator", DEF_ALLOCATOR, &[8]),
            ("omp_get_max_teams", NTEAMS, &[4]),
            ("omp_get_teams_thread_limit", TEAMS_THREAD_LIMIT, &[4]),
        ];
        for (function, name, sizes) in recipes {
            // Some came with later releases, and a program has those it uses.
            if !self.decoder.has(function) {
                continue;
            }
            let Some(run) = self.decoder.run(function) else { continue };
            let found =
                run.returned().filter_map(|value| sizes.iter().find_map(|size| value.as_load(*size)?.as_const()));
            match unanimous(found) {
                Some(addr) => self.decoder.global(name, addr),
                None => self.decoder.not_found(function, name, &run),
            }
        }
        // `size_t len = strlen (gomp_affinity_format_var);`
        let function = "omp_get_affinity_format";
        if !self.decoder.has(function) {
            return;
        }
        let Some(run) = self.decoder.run(function) else { return };
        match measured(&run) {
            Some(addr) => self.decoder.global(AFFINITY_FORMAT, addr),
            None => self.decoder.not_found(function, AFFINITY_FORMAT, &run),
        }
    }

    /// `if (gomp_places_list == NULL) return -1; … return (int) thr->place - 1;`, and
    /// `return thr->ts.place_partition_len;`
    fn places(&mut self) {
        let function = "omp_get_place_num";
        if self.decoder.has(function)
            && let Some(run) = self.decoder.run(function)
        {
            let tested = run.compares().filter(|c| c.size == 8 && c.right.as_const() == Some(0));
            match unanimous(tested.filter_map(|c| c.left.as_load(8)?.as_const())) {
                Some(addr) => self.decoder.global(PLACES, addr),
                None => self.decoder.not_found(function, PLACES, &run),
            }
            let read = run.loads().filter(|l| l.size == 4).filter_map(|l| self.in_thread(&l.addr));
            match unanimous(read) {
                Some(offset) => self.decoder.field("gomp_thread", "place", offset, 4),
                None => self.decoder.not_found(function, "place", &run),
            }
        }
        let function = "omp_get_partition_num_places";
        if self.decoder.has(function)
            && let Some(run) = self.decoder.run(function)
        {
            let returned = run.returned().filter_map(|value| self.in_thread(value.as_load(4)?));
            match unanimous(returned) {
                Some(offset) => self.decoder.field("gomp_thread", "ts.place_partition_len", offset, 4),
                None => self.decoder.not_found(function, "ts.place_partition_len", &run),
            }
        }
        // `for (i = 0; i < thr->ts.place_partition_len; i++) *place_nums++ = thr->ts.place_partition_off + i;`
        let function = "omp_get_partition_place_nums";
        let known = ["place", "ts.place_partition_len"];
        let known = known.map(|name| self.decoder.known("gomp_thread", name).map(|f| f.offset as i64));
        if self.decoder.has(function)
            && known.iter().all(Option::is_some)
            && let Some(run) = self.decoder.run(function)
        {
            let read = run.loads().filter(|l| l.size == 4).filter_map(|l| self.in_thread(&l.addr));
            match unanimous(read.filter(|offset| !known.contains(&Some(*offset)))) {
                Some(offset) => self.decoder.field("gomp_thread", "ts.place_partition_off", offset, 4),
                None => self.decoder.not_found(function, "ts.place_partition_off", &run),
            }
        }
    }
}

/// Offset in an object that was just allocated: `*(CALL (…) + offset) = …`.
fn fresh(store: &Store) -> Option<i64> {
    let (base, offset) = store.addr.split();
    base.as_call().map(|_| offset)
}

/// Offset in what the first argument points to.
fn in_argument(addr: &Expr) -> Option<i64> {
    let (base, offset) = addr.split();
    (base.as_arg() == Some(0)).then_some(offset)
}

/// Members of the first argument that are atomically counted down by one.
fn decremented(run: &Run) -> impl Iterator<Item = i64> + '_ {
    let inlined = run.stores().filter(|s| s.size == 4 && s.locked && s.increment() == Some(-1)).map(|s| &s.addr);
    // Outline atomics: `__aarch64_ldadd4_acq_rel (-1, &bar->awaited)`.
    let called = run.calls().filter(|c| c.args[0].as_const().is_some_and(|v| v as u32 == u32::MAX)).map(|c| &c.args[1]);
    inlined.chain(called).filter_map(in_argument)
}

/// The function called, if it is one of this image without a name.
pub(super) fn internal(call: &Call) -> Option<u64> {
    match call.callee {
        Callee::Internal(entry) => Some(entry),
        _ => None,
    }
}

/// A pointer followed, then a member of any size.
fn two_offsets(chain: &Chain) -> Option<[i64; 2]> {
    match chain.steps.as_slice() {
        [first, second] if first.size == 8 => Some([first.offset, second.offset]),
        _ => None,
    }
}
