"""Commands about threads by their place in OpenMP, and about their tasks."""

from __future__ import annotations

from ctypes import byref, c_void_p

from . import ompd
from .command import Command
from .errors import EXPECTED, CommandError, OmpdError
from .process import Json, Process
from .selection import find_thread, members_of
from .stop_text import region_line, task, thread_lines

#: How many tasks are listed at most.
MOST_TASKS = 10_000


class Thread(Command):
    """Select a thread by its place in OpenMP, or say what the selected one is.
    Usage: openmp thread [[RUNTIME:]TEAM.NUMBER | LWP]

      openmp thread 2.3    thread 3 of team 2, as `openmp teams` numbers them
      openmp thread 4711   the thread with this kernel thread id
      openmp thread        say what the selected thread is

    While other threads run, only the last of these is there, with what the thread itself has.
    RUNTIME is the place of a runtime in `openmp status`, from 0 on, where several have teams."""

    name = "thread"

    def run(self, argument: str, from_tty: bool) -> None:
        _, rest = self.split(argument)
        if len(rest) > 1:
            raise CommandError(f"One thread is wanted. Usage: {self.usage()}")
        process = self.process()
        if rest:
            self.debugger.select_thread(find_thread(process, rest[0]))
            self.debugger.show_frame(from_tty)
        elif process.running():
            self.show(self.of_itself(process))
            return
        lwp = self.session.selected_thread().lwp
        self.show(self.view_text(process, f"why {lwp}").split("\n\n")[0])

    def of_itself(self, process: Process) -> str:
        """What is known of the selected thread while others run."""
        process.opened()
        lwp = self.standing()
        lines = [f"Thread {self.session.selected_thread().id} (LWP {lwp})"]
        try:
            with process.handle(lwp):
                lines += [*thread_lines(process, lwp), region_line(process, lwp), *task(process, lwp, "it executes")]
        except OmpdError:
            lines.append("it is no thread of OpenMP")
        return "\n  ".join([*lines, "what it waits for: unknown, since other threads are running"])

    def complete(self, text: str) -> list[str]:
        try:
            runtimes = self.process().report()["runtimes"]
            prefix = len(self.process().busy()) > 1
        except EXPECTED:
            return []
        all_threads = [
            (f"{index}:" if prefix else "") + f"{number}.{member}"
            for index, runtime in enumerate(runtimes)
            for number, team in enumerate(runtime["teams"])
            for member in range(len(team["members"]))
        ]
        return [choice for choice in all_threads if choice.startswith(text.lstrip())]


class Apply(Command):
    """Apply a command to the threads of a team.
    Usage: openmp apply [-hold] TEAM[.NUMBERS] COMMAND

      openmp apply 2 {frames}         all threads of team 2
      openmp apply 2.0-3,6 {locals}   some of them

      openmp apply -hold 2 next      a step in each, while all other threads stay where they are

    A command may let the process run, without -hold with all its threads. Threads that have
    ended then are left out. If a thread that is held has to do something for the step to end,
    Ctrl-C stops it."""

    name = "apply"
    words = ("-hold",)

    def run(self, argument: str, from_tty: bool) -> None:
        team, _, command = argument.strip().partition(" ")
        holds = team == "-hold"
        if holds:
            team, _, command = command.strip().partition(" ")
        if team.startswith("-"):
            raise CommandError(f"Unknown option {team}. Usage: {self.usage()}")
        if not command.strip():
            raise CommandError(f"A team and a command are wanted. Usage: {self.usage()}")
        process = self.process()
        if holds:
            process.runs()
        lwps = [thread.lwp for thread in members_of(process, team)]
        for lwp in lwps:
            thread = process.state.thread(lwp) if process.inferior.pid else None
            if thread is None:
                self.show(f"\nLWP {lwp} has ended.")
                continue
            with self.debugger.selected(thread):
                places = ", ".join(f"thread {m.number} of team {m.team}" for m in process.members(lwp))
                self.show(f"\nThread {thread.id} (LWP {lwp}), {places or 'in no team now'}:")
                others = [one for one in process.inferior.threads() if one.lwp != lwp] if holds else []
                with self.debugger.holding(others):
                    self.debugger.execute(command, from_tty)


class Taskframes(Command):
    """List the tasks on the stack of the selected thread, innermost first, with their frames.
    Usage: openmp taskframes [-json]

    enter is where the task called the runtime last, exit where the runtime called the
    task; both are stack pointers before the call (OpenMP 5.2, section 20.5.8.2)."""

    name = "taskframes"
    options = ("-json",)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, _ = self.split(argument)
        process = self.process()
        process.opened()
        rows = self.rows(process, self.standing())
        if "-json" in flags:
            self.show_json(rows)
            return
        self.show(f"{'task':24} {'enter':18} exit")
        for row in rows:
            self.show(f"{row['task'][:24]:24} {row['enter'] or '-':18} {row['exit'] or '-'}")

    def rows(self, process: Process, lwp: int) -> list[Json]:
        """One for each task."""
        library = process.library
        rows = []
        tasks: list[c_void_p] = []
        with process.handle(lwp) as thread:
            try:
                # A damaged process may have a ring of tasks.
                while len(tasks) < MOST_TASKS:
                    task = c_void_p()
                    if tasks:
                        library.call("ompd_get_generating_task_handle", tasks[-1], byref(task))
                    else:
                        library.call("ompd_get_curr_task_handle", thread, byref(task))
                    tasks.append(task)
                    rows.append(self.row(process, task))
            except OmpdError as failure:
                if failure.code != ompd.UNAVAILABLE:
                    raise
            finally:
                for task in tasks:
                    library.call("ompd_rel_task_handle", task)
        return rows

    @staticmethod
    def row(process: Process, task: c_void_p) -> Json:
        """A task with its function and frames, as far as they are known."""
        library = process.library
        entry = ompd.Address()
        try:
            library.call("ompd_get_task_function", task, byref(entry))
            name = process.debugger.symbol_at(entry.address) or f"{entry.address:#x}"
        except OmpdError:
            name = "function not known"
        enter, leave = ompd.FrameInfo(), ompd.FrameInfo()
        try:
            library.call("ompd_get_task_frame", task, byref(leave), byref(enter))
        except OmpdError:
            return {"task": name, "enter": None, "exit": None}
        places = [f"{frame.frame_address.address:#x}" if frame.frame_address.address else None for frame in (enter, leave)]
        return {"task": name, "enter": places[0], "exit": places[1]}


ALL = (Thread, Apply, Taskframes)
