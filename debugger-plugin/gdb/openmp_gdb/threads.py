"""Selecting threads by their place in OpenMP, and what breakpoint conditions can ask about the selected one."""

from __future__ import annotations

from ctypes import byref, c_uint64, c_void_p
from typing import Callable

import gdb

from . import ompd
from .command import Command, has_colours, selected_thread, show, show_json, width
from .debugger import lwp_of, selected
from .library import NoLibrary
from .places import find_thread, members_of
from .process import Json, NotNow, Process, known, thread_id
from .session import PREFIX, Session


class Thread(Command):
    """Select a thread by its place in OpenMP, or say what the selected one is.
    Usage: openmp thread [[RUNTIME:]TEAM.NUMBER | LWP]

      openmp thread 2.3    thread 3 of team 2, as `openmp teams` numbers them
      openmp thread 4711   the thread with this kernel thread id
      openmp thread        say what the selected thread is

    RUNTIME is the place of a runtime in `openmp status`, from 0 on, where several have teams."""

    name = "thread"

    def run(self, argument: str, from_tty: bool) -> None:
        _, rest = self.split(argument)
        if len(rest) > 1:
            raise gdb.GdbError(f"One thread is wanted. Usage: {self.usage()}")
        process = self.process()
        if rest:
            find_thread(process, rest[0]).switch()
            gdb.execute("frame", from_tty)
        lwp = lwp_of(selected_thread())
        show(process.text(f"why {lwp}", width(), False, has_colours()).split("\n\n")[0])

    def complete(self, text: str, word: str) -> list[str]:
        try:
            runtimes = self.process().report()["runtimes"]
            prefix = len(self.process().busy()) > 1
        except (NoLibrary, NotNow, ompd.OmpdError):
            return []
        all_threads = [
            (f"{index}:" if prefix else "") + f"{number}.{member}"
            for index, runtime in enumerate(runtimes)
            for number, team in enumerate(runtime["teams"])
            for member in range(len(team["members"]))
        ]
        start = text.strip()
        return [choice[len(start) - len(word) :] for choice in all_threads if choice.startswith(start)]


class Apply(Command):
    """Apply a command to the threads of a team.
    Usage: openmp apply TEAM[.NUMBERS] COMMAND

      openmp apply 2 bt 3         all threads of team 2
      openmp apply 2.0-3,6 info locals   some of them"""

    name = "apply"

    def run(self, argument: str, from_tty: bool) -> None:
        team, _, command = argument.strip().partition(" ")
        if not command.strip():
            raise gdb.GdbError(f"A team and a command are wanted. Usage: {self.usage()}")
        process = self.process()
        threads = members_of(process, team)
        lwps = {lwp_of(thread): thread for thread in threads}
        for lwp, thread in lwps.items():
            with selected(thread):
                places = ", ".join(f"thread {m.number} of team {m.team}" for m in process.members(lwp))
                show(f"\nThread {thread_id(thread)} (LWP {lwp}), {places}:")
                gdb.execute(command, from_tty)


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
        process.held()
        rows = self.rows(process, lwp_of(selected_thread()))
        if "-json" in flags:
            show_json(rows)
            return
        show(f"{'task':24} {'enter':18} exit")
        for row in rows:
            show(f"{row['task'][:24]:24} {row['enter'] or '-':18} {row['exit'] or '-'}")

    def rows(self, process: Process, lwp: int) -> list[Json]:
        """One for each task."""
        library = process.library
        rows = []
        tasks: list[c_void_p] = []
        with process.handle(lwp) as thread:
            try:
                while True:
                    task = c_void_p()
                    if tasks:
                        library.call("ompd_get_generating_task_handle", tasks[-1], byref(task))
                    else:
                        library.call("ompd_get_curr_task_handle", thread, byref(task))
                    tasks.append(task)
                    rows.append(self.row(process, task))
            except ompd.OmpdError as failure:
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
            name = symbol_at(entry.address) or f"{entry.address:#x}"
        except ompd.OmpdError:
            name = "function not known"
        enter, leave = ompd.FrameInfo(), ompd.FrameInfo()
        try:
            library.call("ompd_get_task_frame", task, byref(leave), byref(enter))
        except ompd.OmpdError:
            return {"task": name, "enter": None, "exit": None}
        places = [f"{frame.frame_address.address:#x}" if frame.frame_address.address else None for frame in (enter, leave)]
        return {"task": name, "enter": places[0], "exit": places[1]}


def function_at(address: int) -> tuple[gdb.Block, gdb.Symbol] | None:
    """The function at an address, as debug information has it."""
    block = gdb.block_for_pc(address)
    while block is not None:
        if block.function is not None:
            return block, block.function
        block = block.superblock
    return None


def symbol_at(address: int) -> str | None:
    """The function that an address is the begin of, as gdb names it."""
    found = function_at(address)
    if found is not None:
        return str(found[1].linkage_name)
    # Names as they are: a part of a clone's name is no part of a C++ name.
    text = gdb.execute(f"with print demangle off -- info symbol {address:#x}", to_string=True)
    return None if text.startswith("No symbol") else text.split(" in section")[0].strip()


class Query:
    """What is asked about one thread, by the calls of OMPD that look at it alone: cheap enough for a condition of a breakpoint."""

    def __init__(self, process: Process, lwp: int) -> None:
        self.process = process
        self.lwp = lwp

    def icv(self, name: str) -> int:
        """A control variable of the thread's task or region.

        Raises `OmpdError` if it is not known."""
        kind = "parallel" if name == "team-size-var" else "task"
        number, scope = self.process.icv(name)
        value = c_uint64()
        with self.process.current(self.lwp, kind) as handle:
            self.process.library.call("ompd_get_icv_from_scope", handle, scope, number, byref(value))
        return int(value.value)

    def descriptor(self, kind: str) -> int:
        """Where the runtime keeps the record of the thread's region (`parallel`) or task (`task`).

        Raises `OmpdError` if it is not known."""
        address = ompd.Address()
        with self.process.current(self.lwp, kind) as handle:
            self.process.library.call("ompdx_get_descriptor", handle, byref(address))
        return int(address.address)


class Function(gdb.Function):
    """One of the convenience functions about the selected thread. What is not known is -1, which no thread, team or task has."""

    def __init__(self, session: Session, name: str, text: str, ask: Callable[[Query], int | None]) -> None:
        self.session = session
        self.ask = ask
        self.__doc__ = f"{text}\nUsage: ${name}()\n\nOf the selected thread; -1 if it is not known, or is in no team."
        super().__init__(name)

    def invoke(self, *arguments: gdb.Value) -> int:
        if arguments:
            raise gdb.GdbError("No argument is wanted.")
        try:
            process, thread = self.session.process(), selected_thread()
            if thread.is_running():
                # It has hit a breakpoint whose condition this is: gdb tells of no stop until that holds.
                process.debugger.ran()
            found = self.ask(Query(process, lwp_of(thread)))
        except NoLibrary as failure:
            raise gdb.GdbError(str(failure)) from None
        except (ompd.OmpdError, NotNow):
            return -1
        return -1 if found is None else found


class TeamFunction(Function):
    """`$_omp_team()`, which also takes the number of a team."""

    def invoke(self, *arguments: gdb.Value) -> int | str:  # type: ignore[override]
        if not arguments:
            return super().invoke()
        if len(arguments) > 1:
            raise gdb.GdbError("One team is wanted.")
        try:
            number = arguments[0]
            text = number.string() if number.type.strip_typedefs().code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_PTR) else str(int(number))
            threads = members_of(self.session.process(), text)
        except (NoLibrary, ompd.OmpdError) as failure:
            raise gdb.GdbError(str(failure)) from None
        return " ".join(thread_id(thread) for thread in threads)


class NamesSetting(gdb.Parameter):
    """Whether `info threads` names OpenMP's threads by their place: `omp 0.3 (4)` is thread 3 of team 0, which has 4.

    It takes a look at the process at each stop."""

    set_doc = "Set whether `info threads` names threads by their place in OpenMP."
    show_doc = "Show whether `info threads` names threads by their place in OpenMP."

    def __init__(self, session: Session) -> None:
        self.session = session
        #: What was named so, to be unnamed again, by gdb's global number.
        self._named: dict[int, gdb.InferiorThread] = {}
        super().__init__(f"{PREFIX} thread-names", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False
        gdb.events.before_prompt.connect(lambda *_: self.refresh())
        self._shown: tuple[int, int] | None = None

    def get_set_string(self) -> str:
        self._shown = None
        self.refresh()
        return ""

    def get_show_string(self, value: str) -> str:
        return f"Naming threads by their place in OpenMP is {value}."

    def refresh(self) -> None:
        """Names the threads of the selected inferior anew, if it has moved since."""
        if not self.value:
            self._forget()
            return
        try:
            process = self.session.process()
            now = (process.debugger.inferior.num, process.debugger.stop)
            if now == self._shown:
                return
            self._forget()
            self._shown = now
            several = len(process.busy()) > 1
            for index, runtime in enumerate(process.report()["runtimes"]):
                self._name(process, runtime, f"{index}:" if several else "")
        except (NoLibrary, NotNow, ompd.OmpdError):
            pass  # No OpenMP, nothing to name.

    def _name(self, process: Process, runtime: Json, prefix: str) -> None:
        for entry in runtime["threads"]:
            thread = process.debugger.thread(entry.get("lwp") or 0)
            team, number = known(entry.get("team")), known(entry.get("thread_num"))
            if thread is None or team is None or number is None:
                continue
            size = known(runtime["teams"][team]["size"])
            given = thread.name
            thread.name = None
            if thread.name != given:
                # The user has named it.
                thread.name = given
                continue
            self._named[thread.global_num] = thread
            thread.name = f"omp {prefix}{team}.{number} ({'?' if size is None else size})"

    def _forget(self) -> None:
        for thread in self._named.values():
            if thread.is_valid():
                thread.name = None
        self._named.clear()


ALL = (Thread, Apply, Taskframes)


def functions(session: Session) -> None:
    """Adds the convenience functions."""
    Function(session, "_omp_thread_num", "The thread number in its team.", lambda query: query.icv("thread-num-var"))
    Function(session, "_omp_num_threads", "How many threads its team has.", lambda query: query.icv("team-size-var"))
    Function(session, "_omp_level", "How many regions it is inside of.", lambda query: query.icv("levels-var"))
    Function(
        session,
        "_omp_task_id",
        "Where the runtime keeps its record of the task: the same as long as the task exists.",
        lambda query: query.descriptor("task"),
    )
    TeamFunction(
        session,
        "_omp_team",
        "Where the runtime keeps its record of the team: the same as long as the region lasts; 0\n"
        'outside of all regions. With the number that `openmp teams` shows, or members as in "2.0-3":\n'
        'gdb\'s numbers of these threads, as text:\n\n  set $ids = $_omp_team(2)\n  eval "thread apply %s bt", $ids',
        lambda query: query.descriptor("parallel"),
    )
