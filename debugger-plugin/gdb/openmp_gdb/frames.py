"""Backtraces as the source reads: frames of the runtime folded, constructs named, and a link to the thread that opened the region.

A frame filter does it, so that it holds for `bt`, and for front ends by MI and DAP as well. Frames that are folded are still there:
`bt` prints them indented, and `bt -hide` leaves them out. What is folded, and what a frame is called, is what the library says
of the stack; of a stack that it could not follow to its end nothing is folded.
"""

from __future__ import annotations

from collections.abc import Iterator

import gdb
from gdb.FrameDecorator import FrameDecorator

from . import ompd
from .command import Command, has_colours, selected_thread, show, width
from .debugger import lwp_of
from .library import NoLibrary
from .places import find_thread
from .process import Json, NotNow, Process, known, thread_id
from .session import PREFIX, Session


class Folded(FrameDecorator):
    """The outermost of some frames of the runtime, which stands for all of them."""

    def __init__(self, frames: list[FrameDecorator], note: str | None, name: str | None = None) -> None:
        super().__init__(frames[-1])
        self._name = name
        self._hidden = frames[:-1]
        self._note = note

    # The stubs know neither that what is elided are decorators, nor that addresses stand for names.
    def elided(self) -> Iterator[FrameDecorator] | None:  # type: ignore[override]
        return iter(self._hidden) if self._hidden else None

    def function(self) -> str | int | None:  # type: ignore[override]
        own = super().function()
        # Stripped runtimes have no names, but the program's call does.
        return noted(own if isinstance(own, str) or self._name is None else self._name, self._note)


class Construct(FrameDecorator):
    """The body of a construct."""

    def __init__(self, frame: FrameDecorator, label: str) -> None:
        super().__init__(frame)
        self._label = label

    def function(self) -> str:
        return self._label


class Elsewhere(FrameDecorator):
    """A frame of another thread, in which this stack goes on. It stands where this one ends."""

    def __init__(self, last: FrameDecorator, frame: Json, label: str) -> None:
        super().__init__(last)
        self._frame = frame
        self._label = label

    def function(self) -> str:
        return self._label

    def address(self) -> int | None:
        address = self._frame.get("address")
        # Front ends want one.
        return int(address, 16) if address else super().address()

    def filename(self) -> str | None:
        file: str | None = self._frame.get("file")
        return file

    def line(self) -> int | None:
        line: int | None = self._frame.get("line")
        return line

    def frame_args(self) -> None:
        return None

    def frame_locals(self) -> None:
        return None


def noted(function: str | int | None, note: str | None) -> str | int | None:
    """A function's name with a note behind it."""
    if note is None:
        return function
    name = function if isinstance(function, str) else "??"
    return f"{name} [{note}]"


def entries(process: Process, lwp: int) -> list[Json]:
    """What each runtime says of a thread."""
    return [thread for runtime in process.report()["runtimes"] for thread in runtime["threads"] if thread.get("lwp") == lwp]


def role_of(process: Process, lwp: int) -> str | None:
    """What kind of thread it is, if a runtime knows it."""
    roles = (known(thread.get("role")) for thread in entries(process, lwp))
    return next((role for role in roles if role), None)


def waits_for(process: Process, lwp: int) -> str | None:
    """What a thread waits for, in a few words."""
    for thread in entries(process, lwp):
        wait = known(thread.get("wait"))
        if wait:
            name = wait.get("name") or (wait.get("object") if wait.get("lock") is not None else None)
            return f"waits: {wait['kind'].replace('_', ' ')}" + (f" {name}" if name else "")
    return None


def label_of(frame: Json) -> str:
    """The construct that a frame is the body of, and the function it stands in."""
    construct = frame["construct"]
    place = f"{frame['function']}" if frame.get("function") else "a function without a name"
    return f"#pragma omp {construct} in {place}"


class Filter:
    """The frame filter. It changes nothing where there is no OpenMP."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.name = PREFIX
        self.priority = 100
        self.enabled = True
        #: All frames of the threads are appended in which the stack goes on, not the first alone.
        self.continued = False
        gdb.frame_filters[self.name] = self  # type: ignore[assignment]

    def filter(self, frames: Iterator[FrameDecorator]) -> Iterator[FrameDecorator]:
        """What gdb calls."""
        try:
            thread = gdb.selected_thread()
            process = self.session.process()
            if thread is None or not process.is_openmp():
                return frames
            lwp = lwp_of(thread)
            stacks = [stack for stack in process.report()["stacks"] if stack["lwp"] == lwp]
            if not stacks or not stacks[0]["end"]["complete"]:
                return frames
            return self._folded(process, lwp, stacks[0], frames)
        except (NoLibrary, NotNow, ompd.OmpdError, gdb.error):
            return frames

    def _folded(self, process: Process, lwp: int, stack: Json, frames: Iterator[FrameDecorator]) -> Iterator[FrameDecorator]:
        own = {int(f["address"], 16): f for f in stack["frames"] if f.get("lwp") == lwp and f.get("address")}
        wait = waits_for(process, lwp)
        called = (stack.get("in_call") or {}).get("function")
        folded: list[FrameDecorator] = []
        innermost = True
        last: FrameDecorator | None = None
        for frame in frames:
            last = frame
            pc = frame.inferior_frame().pc()
            if pc not in own:
                folded.append(frame)
                continue
            if folded:
                yield Folded(folded, wait, called) if innermost else Folded(folded, None)
                folded = []
            innermost = False
            is_body = own[pc].get("construct") and frame.inferior_frame().type() != gdb.INLINE_FRAME
            yield Construct(frame, label_of(own[pc])) if is_body else frame
        others = [frame for frame in stack["frames"] if frame.get("lwp") not in (None, lwp)]
        if folded:
            notes = [role_of(process, lwp), wait if innermost else None]
            yield Folded(folded, ", ".join(note for note in notes if note) or None)
        if last is not None:
            for frame in others if self.continued else others[:1]:
                yield Elsewhere(last, frame, self._link(process, frame))

    @staticmethod
    def _link(process: Process, frame: Json) -> str:
        thread = process.debugger.thread(frame["lwp"])
        who = f"Thread {thread_id(thread)}" if thread is not None else f"LWP {frame['lwp']}"
        what = label_of(frame) if frame.get("construct") else frame.get("function") or "??"
        return f"[goes on in {who}] {what}"


class Backtrace(Command):
    """Show the stack of the selected thread as the source reads, across threads.
    Usage: openmp bt [-v] [THREAD] | on [continued] | off

    A worker's stack goes on in the thread that opened its region, a task's in what
    generated it. THREAD is as for `openmp thread`.

      openmp bt on            gdb's own backtraces fold the runtime's frames, name
                              constructs, and end with a link to the thread that opened
                              the region; that is so from the start
      openmp bt on continued  they end with all frames of that thread
      openmp bt off           they do not"""

    name = "bt"
    words = ("on", "off", "continued")
    options = ("-v",)

    def __init__(self, session: Session, frame_filter: Filter) -> None:
        self.filter = frame_filter
        super().__init__(session)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        if rest in (["on"], ["on", "continued"], ["off"]):
            self.filter.enabled = rest[0] == "on"
            self.filter.continued = rest[-1] == "continued"
            return
        if len(rest) > 1:
            raise gdb.GdbError(f"Usage: {self.usage()}")
        process = self.process()
        thread = find_thread(process, rest[0]) if rest else selected_thread()
        show(process.text(f"stack {lwp_of(thread)}", width(), "-v" in flags, has_colours()))
