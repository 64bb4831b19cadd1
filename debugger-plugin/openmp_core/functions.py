"""Answers of the functions `_omp_thread_num` and the like, for conditions of breakpoints."""

from __future__ import annotations

from ctypes import byref, c_uint64
from typing import Callable

from . import ompd
from .errors import NotNow, OmpdError
from .process import Process
from .selection import members_of
from .session import Session


class Query:
    """Asks about one thread by calls of OMPD that read little: cheap enough for a breakpoint's condition."""

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


#: The functions by their names. `_omp_team` takes a team as well: see `ids_of_team`.
QUESTIONS: dict[str, Callable[[Query], int]] = {
    "_omp_thread_num": lambda query: query.icv("thread-num-var"),
    "_omp_num_threads": lambda query: query.icv("team-size-var"),
    "_omp_level": lambda query: query.icv("levels-var"),
    "_omp_task_id": lambda query: query.descriptor("task"),
    "_omp_team": lambda query: query.descriptor("parallel"),
}


def answer(session: Session, function: str) -> int:
    """What a function returns for the selected thread; -1 if it is unknown."""
    try:
        process, thread = session.process(), session.selected_thread()
        if thread.is_running():
            # It has hit a breakpoint with this condition. A debugger reports no stop before that is true.
            process.state.ran()
        return QUESTIONS[function](Query(process, thread.lwp))
    except (OmpdError, NotNow):
        return -1


def ids_of_team(session: Session, text: str) -> str:
    """The debugger's numbers of the threads of a team, for commands that take a list of threads."""
    return " ".join(thread.id for thread in members_of(session.process(), text))
