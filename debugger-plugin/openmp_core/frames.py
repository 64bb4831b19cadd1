"""Backtraces as the source reads: the runtime's frames are folded, constructs are named, and a link
leads to the thread that opened the region.

The library knows which frames to fold and how to name them. A stack without a known end stays as it
is. The debugger shows the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Generic, TypeVar, Union

from .command import Command
from .debugger import Frame
from .errors import EXPECTED, CommandError, DebuggerError
from .modules import is_system
from .process import Json, Process, known
from .selection import find_thread
from .session import Session

#: What stands for the name of a function that has none.
UNKNOWN = "??"

#: What the debugger has for a frame.
F = TypeVar("F")


@dataclass(frozen=True)
class Plain(Generic[F]):
    """A frame that is shown as it is."""

    frame: F


@dataclass(frozen=True)
class Folded(Generic[F]):
    """Frames of the runtime, of which the last, the outermost, stands for all."""

    frames: list[F]
    note: str | None
    #: The function that the program has called.
    called: str | None = None

    def title(self, own: str | None) -> str:
        """The name of the frame; `own` is the debugger's, if it has one."""
        # Stripped runtimes have no names, but the program's call does.
        function = own or self.called or UNKNOWN
        return function if self.note is None else f"{function} [{self.note}]"


@dataclass(frozen=True)
class Body(Generic[F]):
    """The frame of the body of a construct."""

    frame: F
    label: str


@dataclass(frozen=True)
class Elsewhere(Generic[F]):
    """A frame of another thread, in which this stack continues. It stands where this one ends."""

    #: The outermost frame of this stack.
    last: F
    record: Json
    label: str

    @property
    def address(self) -> int | None:
        """Where it executes."""
        address = self.record.get("address")
        return int(address, 16) if address else None

    @property
    def file(self) -> str | None:
        """Its file in the source."""
        file: str | None = self.record.get("file")
        return file

    @property
    def line(self) -> int | None:
        """Its line in that."""
        line: int | None = self.record.get("line")
        return line


Row = Union[Plain[F], Folded[F], Body[F], Elsewhere[F]]


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


class Records:
    """What the library says of the program's frames.

    The stack of a task continues in its generating task. But below it the thread may have the body of its
    own region, which is not part of that stack. It is known by its function, which other stacks have."""

    def __init__(self, process: Process, lwp: int, stack: Json) -> None:
        self._debugger = process.debugger
        self._own = by_address([frame for frame in stack["frames"] if frame.get("lwp") == lwp])
        self._others = [by_address(other["frames"]) for other in process.report()["stacks"]]
        #: Of all stacks, by the function.
        self._by_function: dict[int, Json] | None = None

    def find(self, pc: int) -> Json | None:
        """The record of a frame; `None` for one that is not the program's."""
        record = self._own.get(pc)
        function = self._function(pc) if record is None else None
        if function is None:
            return record
        if self._by_function is None:
            known = {address: record for others in self._others for address, record in others.items()}
            found = ((self._function(address), record) for address, record in known.items())
            self._by_function = {start: record for start, record in found if start is not None}
        return self._by_function.get(function)

    def _function(self, pc: int) -> int | None:
        """Where the function at an address begins, if it has debug information and is not the C library's."""
        with suppress(DebuggerError):
            if is_system(self._debugger.module_at(pc)):
                return None
            found = self._debugger.function_at(pc)
            return None if found is None else found.start
        return None


def by_address(frames: list[Json]) -> dict[int, Json]:
    """Frames of the report by their addresses."""
    return {int(frame["address"], 16): frame for frame in frames if frame.get("lwp") and frame.get("address")}


def program_row(frame: F, frame_of: Callable[[F], Frame], records: Records) -> Plain[F] | Body[F] | None:
    """A frame of the program; `None` for a frame to be folded."""
    try:
        known_as = frame_of(frame)
        record = records.find(known_as.pc)
        if record is None:
            return None
        is_body = record.get("construct") and not known_as.is_inline
    except DebuggerError:
        return Plain(frame)
    return Body(frame, label_of(record)) if is_body else Plain(frame)


class Folding:
    """How backtraces are shown: `openmp bt on`, `on continued`, `off`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.enabled = True
        #: All frames of the threads are appended in which the stack continues, not the first alone.
        self.continued = False

    def rows(self, frames: Iterable[F], frame_of: Callable[[F], Frame]) -> Iterator[Row[F]] | None:
        """The rows for the frames of the selected thread, innermost first; `None` if nothing is to be changed.

        `frame_of` gives the frame behind one of `frames`, which is the latest one."""
        try:
            thread = self.session.debugger.selected_thread()
            process = self.session.process()
            if thread is None or not process.is_openmp():
                return None
            lwp = thread.lwp
            stacks = [stack for stack in process.report()["stacks"] if stack["lwp"] == lwp]
            if not stacks or not stacks[0]["end"]["complete"]:
                return None
            return self._folded(process, lwp, stacks[0], frames, frame_of)
        except EXPECTED:
            return None

    def _folded(self, process: Process, lwp: int, stack: Json, frames: Iterable[F], frame_of: Callable[[F], Frame]) -> Iterator[Row[F]]:
        # What the debugger may refuse is asked first: nothing catches what it raises while it prints rows.
        records = Records(process, lwp, stack)
        wait, role = waits_for(process, lwp), role_of(process, lwp)
        others = [frame for frame in stack["frames"] if frame.get("lwp") not in (None, lwp)]
        links = [(record, self._link(process, record)) for record in (others if self.continued else others[:1])]
        called = (stack.get("in_call") or {}).get("function")

        def rows() -> Iterator[Row[F]]:
            folded: list[F] = []
            innermost = True
            last: F | None = None
            for frame in frames:
                last = frame
                row = program_row(frame, frame_of, records)
                if row is None:
                    folded.append(frame)
                    continue
                if folded:
                    yield Folded(folded, wait, called) if innermost else Folded(folded, None)
                    folded = []
                innermost = False
                yield row
            if folded:
                notes = [role, wait if innermost else None]
                yield Folded(folded, ", ".join(note for note in notes if note) or None)
            if last is not None:
                for record, label in links:
                    yield Elsewhere(last, record, label)

        return rows()

    @staticmethod
    def _link(process: Process, frame: Json) -> str:
        thread = process.state.thread(frame["lwp"])
        who = f"Thread {thread.id}" if thread is not None else f"LWP {frame['lwp']}"
        what = label_of(frame) if frame.get("construct") else frame.get("function") or "??"
        return f"[continues in {who}] {what}"


class Backtrace(Command):
    """Show the stack of the selected thread as the source reads, across threads.
    Usage: openmp bt [-v] [THREAD] | on [continued] | off

    A worker's stack continues in the thread that opened its region, a task's in what
    generated it. THREAD is as for `openmp thread`.

      openmp bt on            {debugger}'s own backtraces fold the runtime's frames, name
                              constructs, and end with a link to the thread that opened
                              the region; that is so from the start
      openmp bt on continued  they end with all frames of that thread
      openmp bt off           they do not"""

    name = "bt"
    words = ("on", "off", "continued")
    options = ("-v",)

    def __init__(self, session: Session, folding: Folding) -> None:
        self.folding = folding
        super().__init__(session)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        if rest in (["on"], ["on", "continued"], ["off"]):
            self.folding.enabled = rest[0] == "on"
            self.folding.continued = rest[-1] == "continued"
            return
        if len(rest) > 1:
            raise CommandError(f"Usage: {self.usage()}")
        process = self.process()
        thread = find_thread(process, rest[0]) if rest else self.session.selected_thread()
        self.show_view(process, f"stack {thread.lwp}", "-v" in flags)
