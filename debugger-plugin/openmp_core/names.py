"""Names of threads in the debugger's own list, by their place in OpenMP."""

from __future__ import annotations

from contextlib import suppress

from .debugger import Thread
from .errors import EXPECTED, DebuggerError
from .process import Json, Process, known
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
            several = len(process.busy()) > 1
            for index, runtime in enumerate(process.report()["runtimes"]):
                self._name(process, runtime, f"{index}:" if several else "")
        except EXPECTED:
            pass  # No OpenMP, or no answer: nothing to name.

    def _name(self, process: Process, runtime: Json, prefix: str) -> None:
        for entry in runtime["threads"]:
            thread = process.state.thread(entry.get("lwp") or 0)
            team, number = known(entry.get("team")), known(entry.get("thread_num"))
            if thread is None or team is None or number is None:
                continue
            size = known(runtime["teams"][team]["size"])
            if thread.give_name(f"omp {prefix}{team}.{number} ({'?' if size is None else size})"):
                self._named.append(thread)

    def _forget(self) -> None:
        for thread in self._named:
            with suppress(DebuggerError):
                thread.take_name()
        self._named.clear()
