//! Tasks in queues, and those that others wait for.

use super::*;

const WAITING: u64 = 2;
const TIED: u64 = 3;
const ON_DEVICE: u64 = 4;
const DETACHED: u64 = 5;
/// Lists of tasks: the queue of the team, the children of a task, a taskgroup.
const TEAM: u64 = 0;
const CHILDREN: u64 = 1;
const TASKGROUP: u64 = 2;

/// A team of two, and tasks that the first thread has generated.
struct Tasks {
    made: Made,
    team: Addr,
    parent: Addr,
}

impl Tasks {
    fn new() -> Tasks {
        let mut made = Made::new();
        let team = made.team(2);
        let parent = made.addr_of(team, |s| s.team.implicit_task);
        Tasks { made, team, parent }
    }

    /// A task with as many dependences as given, on these addresses in these ways.
    fn task(&mut self, kind: u64, depends: &[(u64, u64)]) -> Addr {
        let s = &self.made.runtime.structs;
        let (size, entry) = (s.task.size.get().expect("a size"), s.depend.size.get().expect("a size"));
        let task = self.made.zeros(size + entry * depends.len() as u64);
        self.made.set(task, |s| s.task.kind, kind);
        self.made.set(task, |s| s.task.parent, self.parent.0);
        self.made.set(task, |s| s.task.fn_, 0x1100);
        self.made.set(task, |s| s.task.depend_count, depends.len() as u64);
        let first = self.made.addr_of(task, |s| s.task.depend);
        for ((addr, how), at) in depends.iter().zip((first.0..).step_by(entry as usize)) {
            self.made.set(Addr(at), |s| s.depend.addr, *addr);
            self.made.set(Addr(at), |s| s.depend.is_in, *how);
        }
        task
    }

    /// Where the link of a task for one of its lists is.
    fn link(&self, task: Addr, list: u64) -> Addr {
        let node = self.made.runtime.structs.node.size.get().expect("a size");
        self.made.addr_of(task, |s| s.task.pnode).offset(list * node)
    }

    /// Links tasks to a circle, and returns where it begins.
    fn list(&mut self, list: u64, tasks: &[Addr]) -> Addr {
        for (at, task) in tasks.iter().enumerate() {
            let link = self.link(*task, list);
            let next = self.link(tasks[(at + 1) % tasks.len()], list);
            let prev = self.link(tasks[(at + tasks.len() - 1) % tasks.len()], list);
            self.made.set(link, |s| s.node.next, next.0);
            self.made.set(link, |s| s.node.prev, prev.0);
        }
        self.link(tasks[0], list)
    }

    /// These are the children of the first thread's task, those that have not begun first, and so the queue of the team.
    fn children(&mut self, ready: &[Addr], begun: &[Addr]) {
        let all: Vec<Addr> = ready.iter().chain(begun).copied().collect();
        let first = self.list(CHILDREN, &all);
        self.made.set(self.parent, |s| s.task.children_tasks, first.0);
        if !ready.is_empty() {
            let first = self.list(TEAM, ready);
            self.made.set(self.team, |s| s.team.queue_tasks, first.0);
        }
        self.made.set(self.team, |s| s.team.task_count, all.len() as u64);
    }

    /// What was read, and the explicit tasks of it by their addresses.
    fn read(&self) -> (RawSnapshot, Vec<(Addr, RawTask)>) {
        let found = self.made.snapshot();
        let explicit = found.tasks.iter().filter(|task| task.kind.get().is_some_and(TaskKind::is_explicit));
        let mut explicit: Vec<_> = explicit.map(|task| (task.descriptor, task.clone())).collect();
        explicit.sort_by_key(|(addr, _)| *addr);
        (found, explicit)
    }
}

#[test]
fn tasks_in_the_queue_of_a_team_are_ready_and_have_their_generating_task() {
    let mut t = Tasks::new();
    let ready = [(); 3].map(|()| t.task(WAITING, &[]));
    t.children(&ready, &[]);
    let (found, explicit) = t.read();
    assert_eq!(found.issues, []);
    let addrs: Vec<Addr> = explicit.iter().map(|(addr, _)| *addr).collect();
    assert_eq!(addrs, ready);
    for (_, task) in &explicit {
        assert_eq!((task.state.get(), task.function.get()), (Some(TaskState::Ready), Some(Addr(0x1100))));
        let generating = task.generating.flat().and_then(|id| found.task(id)).expect("its parent");
        assert_eq!((generating.descriptor, generating.unfinished_children.get()), (t.parent, Some(3)));
        assert_eq!((task.team.flat(), task.priority.get(), task.unmet.get()), (Some(TeamId(0)), Some(0), Some(0)));
        assert_eq!((task.thread, task.unfinished_children.get()), (None, Some(0)));
    }
}

#[test]
fn tasks_that_the_team_counts_and_that_are_in_no_list_are_an_issue() {
    let mut t = Tasks::new();
    let task = t.task(WAITING, &[]);
    t.children(&[task], &[]);
    t.made.set(t.team, |s| s.team.task_count, 3);
    let (found, _) = t.read();
    let missing = Trouble::TasksMissing { missing: 2, count: 3 };
    assert_eq!(found.issues, [Issue::new(format!("team {}", t.team), missing)]);
    // The queue is being changed.
    t.made.set(t.team, |s| s.team.task_lock, 1);
    let (found, explicit) = t.read();
    assert_eq!((found.issues.len(), explicit.len()), (0, 1));
    assert!(found.tasks.iter().all(|task| task.unfinished_children.value().is_none()));
}

#[test]
fn tasks_that_have_begun_come_behind_those_that_have_not() {
    let mut t = Tasks::new();
    let ready = t.task(WAITING, &[]);
    let [running, suspended, detached, device] = [TIED, TIED, DETACHED, ON_DEVICE].map(|kind| t.task(kind, &[]));
    t.children(&[ready], &[running, suspended, detached, device]);
    t.made.set(detached, |s| s.task.deferred, 1);
    t.made.set(detached, |s| s.task.detach_team, t.team.0);
    // The second thread executes it.
    t.made.set(t.made.data(2), |s| s.thread.task, running.0);
    let (found, explicit) = t.read();
    assert_eq!(found.issues, []);
    let states: Vec<_> = explicit.iter().map(|(addr, task)| (*addr, task.state.get(), task.thread)).collect();
    let expected = [
        (ready, Some(TaskState::Ready), None),
        (running, Some(TaskState::Running), Some(2)),
        (suspended, Some(TaskState::Suspended), None),
        (detached, Some(TaskState::Detached), None),
        (device, Some(TaskState::OnDevice), None),
    ];
    assert_eq!(states, expected);
    let events: Vec<_> = explicit.iter().map(|(_, task)| task.event.get()).collect();
    assert_eq!(events[3], Some(Some(Event { handle: detached, fulfilled: false })));
    assert_eq!(events[0], Some(None));
}

#[test]
fn task_is_suspended_only_if_it_is_known_of_all_threads_what_they_execute() {
    let state = |change: &dyn Fn(&mut Tasks, Addr)| {
        let mut t = Tasks::new();
        let begun = t.task(TIED, &[]);
        t.children(&[begun], &[]);
        t.children(&[], &[begun]);
        change(&mut t, begun);
        let (_, explicit) = t.read();
        explicit.into_iter().map(|(_, task)| task.state).next().expect("the task")
    };
    assert_eq!(state(&|_, _| ()).get(), Some(TaskState::Suspended));
    // In which team this thread is, is unknown, and so is whether it is still about the task that it names.
    let leaving = |t: &mut Tasks, task: Addr| {
        let data = t.made.data(2);
        t.made.set(data, |s| s.thread.thread_pool, 0);
        t.made.set(data, |s| s.thread.task, task.0);
        t.made.target.threads[1].registers.as_mut().expect("registers").pc = handmade::CODE;
    };
    assert_eq!(state(&leaving), Fact::unknown(Common::MayBeExecuted));
    let elsewhere = |t: &mut Tasks, task: Addr| {
        leaving(t, task);
        let data = t.made.data(2);
        t.made.set(data, |s| s.thread.task, task.0 + 8);
    };
    assert_eq!(state(&elsewhere).get(), Some(TaskState::Suspended));
    // Where this thread keeps what it executes is unknown.
    let lost = |t: &mut Tasks, _: Addr| {
        (t.made.target.threads[1].pointer, t.made.target.threads[1].registers) = (None, Err("lost".to_owned()));
    };
    assert_eq!(state(&lost), Fact::unknown(Common::MayBeExecuted));
}

/// Task 2 depends on task 1, and task 3 on both.
#[test]
fn tasks_that_depend_on_others_are_blocked_by_them() {
    let mut t = Tasks::new();
    let first = t.task(WAITING, &[(0x40, 0)]);
    let [second, third] =
        [&[(0x40, 1)][..], &[(0x40, 0), (0x48, 2), (0x50, 9)]].map(|depends| t.task(WAITING, depends));
    for (task, count) in [(second, 1), (third, 2)] {
        t.made.set(task, |s| s.task.num_dependees, count);
    }
    for (task, before) in [(first, &[second, third][..]), (second, &[third])] {
        let list = t.made.zeros(64);
        t.made.set(list, |s| s.dependers.count, before.len() as u64);
        let elements = t.made.addr_of(list, |s| s.dependers.elements);
        for (of, at) in before.iter().zip((elements.0..).step_by(8)) {
            t.made.write(Addr(at), of.0, 8);
        }
        t.made.set(task, |s| s.task.dependers, list.0);
    }
    t.children(&[first], &[]);
    let (found, explicit) = t.read();
    assert_eq!(found.issues, []);
    let [(_, one), (_, two), (_, three)] = &explicit[..] else { panic!("{explicit:?}") };
    let states = [one, two, three].map(|task| (task.state.get(), task.unmet.get()));
    let blocked = |unmet| (Some(TaskState::Blocked), Some(unmet));
    assert_eq!(states, [(Some(TaskState::Ready), Some(0)), blocked(1), blocked(2)]);
    let before = |task: &RawTask| -> Vec<Addr> {
        task.predecessors.iter().filter_map(|id| found.task(*id)).map(|task| task.descriptor).collect()
    };
    assert_eq!([one, two, three].map(before), [vec![], vec![first], vec![first, second]]);
    let depends: Vec<_> = three.dependences.iter().map(|of| (of.addr.0, of.kind.get())).collect();
    let kinds = [(0x40, Some(DependKind::InOut)), (0x48, Some(DependKind::InOutSet)), (0x50, None)];
    assert_eq!(depends, kinds);
    assert_eq!(two.dependences[0].kind.get(), Some(DependKind::In));
    let parent = found.tasks.iter().find(|task| task.descriptor == t.parent).expect("the parent");
    assert_eq!(parent.unfinished_children.get(), Some(3));
}

#[test]
fn list_whose_links_contradict_each_other_is_an_issue() {
    for list in [TEAM, CHILDREN] {
        let mut t = Tasks::new();
        let kind = if list == TEAM { WAITING } else { TIED };
        let tasks = [(); 3].map(|()| t.task(kind, &[]));
        if list == TEAM {
            t.children(&tasks, &[])
        } else {
            t.children(&[], &tasks)
        }
        let (wrong, link) = (t.link(tasks[0], list), t.link(tasks[2], list));
        t.made.set(link, |s| s.node.prev, wrong.0);
        t.made.set(t.team, |s| s.team.task_count, 0);
        let (found, _) = t.read();
        assert_eq!(found.issues.len(), 1, "{:?}", found.issues);
        assert!(found.tasks.iter().all(|task| task.unfinished_children.value().is_none()));
    }
}

#[test]
fn tasks_with_priorities_are_in_a_tree_the_highest_first() {
    let mut t = Tasks::new();
    let tasks = [(1, 3), (5, 7), (9, 8)].map(|(priority, function)| {
        let task = t.task(WAITING, &[]);
        t.made.set(task, |s| s.task.priority, priority);
        t.made.set(task, |s| s.task.fn_, function);
        task
    });
    let nodes = tasks.map(|task| {
        let node = t.made.made(t.made.runtime.structs.tree.size);
        let first = t.list(TEAM, &[task]);
        t.made.set(node, |s| s.tree.tasks, first.0);
        node
    });
    let [low, root, high] = nodes;
    t.made.set(root, |s| s.tree.left, low.0);
    t.made.set(root, |s| s.tree.right, high.0);
    t.made.set(t.team, |s| s.team.queue_root, root.0);
    t.made.set(t.team, |s| s.team.task_count, 3);
    let (found, _) = t.read();
    assert_eq!(found.issues, []);
    let explicit = found.tasks.iter().filter(|task| task.kind.get() == Some(TaskKind::Explicit));
    let order: Vec<_> = explicit.map(|task| (task.descriptor, task.priority.get())).collect();
    assert_eq!(order, [(tasks[2], Some(9)), (tasks[1], Some(5)), (tasks[0], Some(1))]);
    // A tree that leads back to its root.
    t.made.set(high, |s| s.tree.left, root.0);
    t.made.set(t.team, |s| s.team.task_count, 0);
    assert_eq!(t.read().0.issues.len(), 1);
}

#[test]
fn tasks_of_a_taskgroup_are_found_by_it() {
    let mut t = Tasks::new();
    let group = t.made.made(t.made.runtime.structs.taskgroup.size);
    let outer = t.made.made(t.made.runtime.structs.taskgroup.size);
    t.made.set(group, |s| s.taskgroup.prev, outer.0);
    t.made.set(group, |s| s.taskgroup.num_children, 2);
    t.made.set(group, |s| s.taskgroup.cancelled, 1);
    t.made.set(t.parent, |s| s.task.taskgroup, group.0);
    let begun = [(); 2].map(|()| t.task(TIED, &[]));
    for task in begun {
        t.made.set(task, |s| s.task.taskgroup, group.0);
    }
    let first = t.list(TASKGROUP, &begun);
    t.made.set(group, |s| s.taskgroup.queue_tasks, first.0);
    let (found, explicit) = t.read();
    assert_eq!(found.issues, []);
    assert_eq!(explicit.iter().map(|(addr, _)| *addr).collect::<Vec<_>>(), begun);
    let id = explicit[0].1.taskgroup.flat().expect("its group");
    let of = found.taskgroup(id).expect("a group");
    assert_eq!((of.descriptor, of.unfinished.get(), of.cancelled.get()), (group, Some(2), Some(true)));
    let of = of.parent.flat().and_then(|id| found.taskgroup(id)).expect("a group");
    assert_eq!((of.descriptor, of.parent.get(), of.cancelled.get()), (outer, Some(None), Some(false)));
}

#[test]
fn more_tasks_of_a_kind_than_are_listed_are_counted() {
    let mut t = Tasks::new();
    let most = limits::TASKS_ALIKE + 5;
    let tasks: Vec<Addr> = (0..most).map(|_| t.task(WAITING, &[])).collect();
    t.children(&tasks, &[]);
    let (found, explicit) = t.read();
    assert_eq!(found.issues, []);
    assert_eq!(explicit.len() as u64, limits::TASKS_ALIKE);
    let [more] = &found.recorded.more_tasks[..] else { panic!("{:?}", found.recorded.more_tasks) };
    assert_eq!((more.count, found.task(more.like).map(|task| task.descriptor)), (5, Some(tasks[0])));
}

/// The wait of the first thread, asleep on a word that `prepare` gives. The word is 0 unless it was posted.
fn wait_for_tasks(prepare: impl Fn(&mut Tasks) -> Addr, posted: bool) -> (WaitKind, Option<bool>) {
    let mut t = Tasks::new();
    let word = prepare(&mut t);
    if posted {
        t.made.write(word, 1, 4);
    }
    t.made.sleeps(1, word, 0);
    let found = t.made.snapshot();
    let wait = found.threads[0].wait.value().cloned().flatten().expect("a wait");
    (wait.kind, wait.over.get())
}

#[test]
fn taskwait_is_over_once_the_task_has_no_children() {
    let of = |children: bool, posted| {
        let prepare = |t: &mut Tasks| {
            let wait = t.made.made(t.made.runtime.structs.taskwait.size);
            t.made.set(wait, |s| s.taskwait.in_taskwait, 1);
            t.made.set(t.parent, |s| s.task.taskwait, wait.0);
            if children {
                let child = t.task(TIED, &[]);
                t.children(&[], &[child]);
            }
            t.made.addr_of(wait, |s| s.taskwait.sem)
        };
        wait_for_tasks(prepare, posted)
    };
    assert_eq!(of(true, false), (WaitKind::Taskwait, Some(false)));
    assert_eq!(of(false, false), (WaitKind::Taskwait, Some(true)));
    assert_eq!(of(false, true), (WaitKind::Taskwait, Some(true)));
    assert_eq!(of(true, true), (WaitKind::Taskwait, None), "it was woken, for a task that it may execute");
}

#[test]
fn wait_for_dependences_is_over_once_none_is_left() {
    let of = |left, posted| {
        let prepare = |t: &mut Tasks| {
            let wait = t.made.made(t.made.runtime.structs.taskwait.size);
            t.made.set(wait, |s| s.taskwait.in_depend_wait, 1);
            t.made.set(wait, |s| s.taskwait.n_depend, left);
            t.made.set(t.parent, |s| s.task.taskwait, wait.0);
            t.made.addr_of(wait, |s| s.taskwait.sem)
        };
        wait_for_tasks(prepare, posted)
    };
    assert_eq!(of(1, false), (WaitKind::Dependences, Some(false)));
    assert_eq!(of(0, false), (WaitKind::Dependences, Some(true)));
    assert_eq!(of(1, true), (WaitKind::Dependences, None));
}

#[test]
fn end_of_a_taskgroup_is_over_once_it_has_no_tasks() {
    let of = |left, posted| {
        let prepare = |t: &mut Tasks| {
            let group = t.made.made(t.made.runtime.structs.taskgroup.size);
            t.made.set(group, |s| s.taskgroup.num_children, left);
            t.made.set(t.parent, |s| s.task.taskgroup, group.0);
            t.made.addr_of(group, |s| s.taskgroup.sem)
        };
        wait_for_tasks(prepare, posted)
    };
    assert_eq!(of(2, false), (WaitKind::Taskgroup, Some(false)));
    assert_eq!(of(0, false), (WaitKind::Taskgroup, Some(true)));
    assert_eq!(of(2, true), (WaitKind::Taskgroup, None));
}
