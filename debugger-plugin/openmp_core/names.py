"""Names of threads in the debugger's own list, by their place in OpenMP."""

from __future__ import annotations

from contextlib import suppress

from .debugger import Thread
from .errors import EXPECTED, DebuggerError
from .process import Process, known
from .session import Session


class ThreadNames:
    """The setting `thread-names`: `omp 0.3 (4)` is thread 3 of team 0, which has 4 threads.

    While it is on, the process is read at each stop."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.enabled = False
        #: What was named so, to be unnamed again.
        self._named: list[Thread] = []
        #: The inferior and its stop that the names are of.
        self._shown: tuple[int, int] | None = None
        #: The names of the inferior at a stop, for `name_of`.
        self._known: tuple[tuple[int, int], dict[int, str]] | None = None

    def enable(self, enabled: bool) -> None:
        """Switches names on or off, and names anew."""
        self.enabled = enabled
        self._shown = None
        self.refresh()

    def refresh(self) -> None:
        """Names the threads of the selected inferior anew, if it has moved since."""
        if not self.enabled:
            self._forget()
            return
        try:
            process = self.session.process()
            now = (process.inferior.number, process.state.stop)
            if now == self._shown:
                return
            self._forget()
            self._shown = now
            for lwp, name in names_of(process).items():
                thread = process.state.thread(lwp)
                if thread is not None and thread.give_name(name):
                    self._named.append(thread)
        except EXPECTED:
            pass  # No OpenMP, or no answer: nothing to name.

    def name_of(self, lwp: int) -> str | None:
        """The name of a thread of the selected inferior, whatever the setting; `None` if there is none."""
        try:
            process = self.session.process()
            now = (process.inferior.number, process.state.stop)
            if self._known is None or self._known[0] != now:
                self._known = (now, names_of(process))
            return self._known[1].get(lwp)
        except EXPECTED:
            return None

    def _forget(self) -> None:
        for thread in self._named:
            with suppress(DebuggerError):
                thread.take_name()
        self._named.clear()


def names_of(process: Process) -> dict[int, str]:
    """The names of threads in teams, by their kernel ids."""
    found: dict[int, str] = {}
    several = len(process.busy()) > 1
    for index, runtime in enumerate(process.report()["runtimes"]):
        prefix = f"{index}:" if several else ""
        for entry in runtime["threads"]:
            lwp, team, number = entry.get("lwp"), known(entry.get("team")), known(entry.get("thread_num"))
            if lwp is None or team is None or number is None:
                continue
            size = known(runtime["teams"][team]["size"])
            found[lwp] = f"omp {prefix}{team}.{number} ({'?' if size is None else size})"
    return found
