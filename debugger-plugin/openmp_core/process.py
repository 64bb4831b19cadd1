"""A process with OpenMP in it: what the library knows of it at this stop."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_uint64, c_void_p, cast
from typing import Any, NamedTuple

from . import ompd
from .debugger import Debugger
from .errors import NotNow, OmpdError
from .inferior import InferiorState
from .library import Library

Json = Any


class Member(NamedTuple):
    """A place in a team."""

    #: Index of the runtime in the report.
    runtime: int
    #: Index of the team in the runtime.
    team: int
    #: Thread number in the team.
    number: int


class StopPoint(NamedTuple):
    """A place at which something begins or ends, or why there is none (`point` 0)."""

    point: int
    event: str
    own: bool
    address: int
    runtime: str
    place: str
    condition: str | None


#: Events by their numbers in `ompdx_event_t`.
EVENTS = {
    1: "parallel-begin",
    2: "parallel-end",
    3: "task-begin",
    4: "task-end",
    5: "thread-begin",
    6: "thread-end",
    7: "barrier-begin",
    8: "lock-acquire",
    9: "critical-acquire",
    10: "taskwait-begin",
    11: "worksharing-begin",
    12: "single-begin",
}


def known(fact: Json) -> Any:
    """The value of a fact of the report; `None` if it is not known."""
    return fact.get("value") if isinstance(fact, dict) else None


class Process:
    """One inferior."""

    def __init__(self, library: Library, debugger: Debugger, state: InferiorState) -> None:
        self.library = library
        self.debugger = debugger
        self.state = state
        self.inferior = state.inferior
        self._space: c_void_p | None = None
        self._opened: tuple[int, str | None] | None = None
        #: Why the library found nothing to do with, until other modules are there.
        self._refused: OmpdError | None = None
        self._refused_at = 0
        self._why = ""
        self._report: tuple[int, Json] | None = None
        self._icvs: dict[str, tuple[int, int]] = {}

    def close(self) -> None:
        """The process is gone, or is another program now."""
        if self._space is not None:
            # What is not valid any more need not be given back.
            with suppress(OmpdError):
                self.library.call("ompd_rel_address_space_handle", self._space)
        self._space = None
        self._refused = None
        self._report = None
        self.state.ran()
        self.state.new_modules()

    def modules_changed(self) -> None:
        """Files were loaded or unloaded."""
        self._refused = None
        self._report = None
        self.state.ran()
        self.state.new_modules()

    def space(self) -> c_void_p:
        """The library's handle of the process."""
        pid = self.inferior.pid
        if pid == 0:
            raise NotNow(f"There is no process: {self.debugger.how_to_begin}.")
        program = (pid, self.inferior.program)
        if self._opened != program:
            self.close()
            self._opened = program
        if self._space is None:
            if self._refused is not None and (self._refused_at == self.state.stop or not self._is_static()):
                raise self._refused
            handle = c_void_p()
            self.library.callbacks.said = ""
            try:
                root = os.fsencode(self.inferior.lib_root())
                self.library.call("ompdx_set_lib_root", c_char_p(root))
                self.library.call("ompd_process_initialize", c_void_p(self.inferior.number), byref(handle))
            except OmpdError as failure:
                self._refused = failure
                self._refused_at = self.state.stop
                self._why = self.library.callbacks.said
                raise
            self._space = handle
        return self._space

    def _is_static(self) -> bool:
        """True if the program has no libraries: no event shows when its runtime begins."""
        return self.inferior.module_count() <= 2

    def is_openmp(self) -> bool:
        """True if the process is there and has an OpenMP runtime."""
        try:
            self.space()
        except (OmpdError, NotNow):
            return False
        return True

    def running(self) -> int:
        """How many threads run."""
        return sum(thread.is_running() for thread in self.inferior.threads())

    def held(self) -> c_void_p:
        """The same, if all threads stand still: reads of a running process are not of one moment."""
        running = self.running()
        if running:
            verb = "thread is" if running == 1 else "threads are"
            raise NotNow(f"{running} {verb} running: stop the process first (`{self.debugger.how_to_stop}`).")
        return self.opened()

    def opened(self) -> c_void_p:
        """The same as `space`. Raises `NotNow` in the user's words if there is no runtime."""
        try:
            return self.space()
        except OmpdError as failure:
            if failure.code == 7:
                # That none is there it says as well; what matters is why one may have been missed.
                said = "" if "no OpenMP runtime is loaded" in self._why else self._why
                raise NotNow(
                    "No OpenMP runtime (libgomp, libomp, libiomp5) was found in this process. If it is yet to be loaded, let the "
                    "process run until then." + (f"\n{said}" if said else "")
                ) from failure
            raise NotNow(f"The process cannot be read: {failure}.") from failure

    def runs(self) -> None:
        """Raises `NotNow` if it is no process that can run."""
        if self.inferior.is_core():
            raise NotNow("This is a core file, in which nothing runs: that takes a process.")

    def report(self) -> Json:
        """All that is known of this moment (docs/report.schema.json)."""
        space = self.held()
        if self._report is None or self._report[0] != self.state.stop:
            text = self.library.text("ompdx_report_json", space)
            self._report = (self.state.stop, json.loads(text))
        return self._report[1]

    def text(self, view: str, width: int, verbose: bool, colour: bool) -> str:
        """One view of it as text, for so many columns; 0 is without a limit."""
        space = self.held()
        threads = self.inferior.threads()
        labels = (ompd.ThreadLabel * max(len(threads), 1))()
        selected = self.debugger.selected_thread()
        for label, thread in zip(labels, threads):
            mark = "*" if selected is not None and thread.lwp == selected.lwp else ""
            label.lwp = thread.lwp
            label.label = f"{mark}{thread.id}".encode()
        options = ompd.TextOptions(width or ompd.UNLIMITED, verbose, colour, labels, len(threads))
        return self.library.text("ompdx_report_text", space, view.encode(), byref(options))

    def members(self, lwp: int) -> list[Member]:
        """Which member of which teams a thread is, one for each runtime that has it in a team."""
        found = []
        for index, runtime in enumerate(self.report()["runtimes"]):
            for thread in runtime["threads"]:
                team, number = known(thread.get("team")), known(thread.get("thread_num"))
                if thread.get("lwp") == lwp and team is not None and number is not None:
                    found.append(Member(index, team, number))
        return found

    def busy(self) -> list[int]:
        """The runtimes that have teams, by their index in the report. Others may be there, unused."""
        return [index for index, runtime in enumerate(self.report()["runtimes"]) if runtime["teams"]]

    def team(self, runtime: int | None, team: int) -> Json:
        """A team of the report. Without the runtime, of the one that has teams."""
        if runtime is None:
            busy = self.busy()
            if len(busy) > 1:
                choices = " or ".join(f"{index}:{team}" for index in busy)
                raise NotNow(f"Several runtimes have teams: {choices} is wanted (`openmp status` lists them, from 0 on).")
            runtime = busy[0] if busy else 0
        try:
            return self.report()["runtimes"][runtime]["teams"][team]
        except IndexError:
            raise NotNow(f"There is no team {team} now (`openmp teams` lists them).") from None

    @contextmanager
    def handle(self, lwp: int) -> Iterator[c_void_p]:
        """The library's handle of a thread."""
        handle = c_void_p()
        number = c_uint64(lwp)
        self.library.call("ompd_get_thread_handle", self.space(), c_uint64(ompd.LWP), c_uint64(8), byref(number), byref(handle))
        try:
            yield handle
        finally:
            self.library.call("ompd_rel_thread_handle", handle)

    @contextmanager
    def current(self, lwp: int, kind: str) -> Iterator[c_void_p]:
        """The library's handle of a thread's innermost region (`parallel`) or of its task (`task`).

        Raises `OmpdError` if it is not known."""
        handle = c_void_p()
        with self.handle(lwp) as thread:
            self.library.call(f"ompd_get_curr_{kind}_handle", thread, byref(handle))
            try:
                yield handle
            finally:
                self.library.call(f"ompd_rel_{kind}_handle", handle)

    def icv(self, name: str) -> tuple[int, int]:
        """Number and scope of a control variable."""
        if not self._icvs:
            current, more = c_uint64(0), c_int(1)
            while more.value:
                following, scope, text = c_uint64(), c_int(), c_void_p()
                self.library.call("ompd_enumerate_icvs", self.space(), current, byref(following), byref(text), byref(scope), byref(more))
                self._icvs[self.library.take(text)] = (following.value, scope.value)
                current = following
        if name not in self._icvs:
            raise OmpdError(name, ompd.UNSUPPORTED)
        return self._icvs[name]

    def stop_points(self) -> list[StopPoint]:
        """Where something begins or ends."""
        block, count = c_void_p(), c_uint64()
        self.library.call("ompdx_stop_points", self.space(), byref(block), byref(count))
        array = cast(block, POINTER(ompd.StopPoint * count.value)).contents if count.value else ()
        points = [
            StopPoint(
                entry.point,
                EVENTS.get(entry.event, "unknown"),
                bool(entry.own),
                entry.address.address,
                (entry.runtime or b"").decode("utf-8", "replace"),
                (entry.place or b"").decode("utf-8", "replace"),
                entry.condition.decode("utf-8", "replace") if entry.condition else None,
            )
            for entry in array
        ]
        self.library.callbacks.take(block.value or 0)
        return points

    def counts(self, lwp: int) -> bool | None:
        """Whether what a thread has got to counts; `None` if that is not known.

        Raises `OmpdError` if the thread cannot be asked about."""
        found = self._stop(lwp)
        return None if found is None else found[1]

    def event_at(self, lwp: int) -> str | None:
        """What begins or ends at the place of a thread; `None` if nothing does.

        Raises `OmpdError` if the thread cannot be asked about."""
        found = self._stop(lwp)
        return found[0] if found is not None and found[1] else None

    def _stop(self, lwp: int) -> tuple[str, bool] | None:
        """The event at the place of a thread, and whether it counts."""
        point, event, counts = c_uint64(), c_int(), c_int()
        try:
            with self.handle(lwp) as thread:
                self.library.call("ompdx_get_stop", thread, byref(point), byref(event), byref(counts))
        except OmpdError as failure:
            if failure.code != ompd.UNAVAILABLE:
                raise
            return None
        return EVENTS.get(event.value, "unknown"), bool(counts.value)
