"""A debugger that says what a test has written down, and a library that does."""

from __future__ import annotations

import ctypes
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from headers import FUNCTIONS
from openmp_core import Plugin, ompd
from openmp_core import debugger as core
from openmp_core.callbacks import Callbacks
from openmp_core.errors import DebuggerError, NoSuchName, OmpdError
from openmp_core.library import Library

Json = Any


class Thread(core.Thread):
    """A thread that stands still, unless a test says that it runs."""

    def __init__(self, number: int, lwp: int) -> None:
        self.number = number
        self._lwp = lwp
        self.running = False
        self.name: str | None = None
        self.named_by_user = False
        self.frames: list[Frame] = []
        #: Its registers by name; none can be read if it is empty.
        self.values: dict[str, int] = {}

    @property
    def lwp(self) -> int:
        return self._lwp

    @property
    def id(self) -> str:
        return str(self.number)

    def pthread(self) -> int | None:
        return 0x7F00_0000_0000 + self._lwp

    def is_running(self) -> bool:
        return self.running

    def give_name(self, name: str) -> bool:
        if self.named_by_user:
            return False
        self.name = name
        return True

    def take_name(self) -> None:
        self.name = None


class Value(core.Value):
    """A value that is printed as a test says, or not at all."""

    def __init__(self, content: str | DebuggerError) -> None:
        self.content = content

    def text(self) -> str:
        if isinstance(self.content, DebuggerError):
            raise self.content
        return self.content


class Frame(core.Frame):
    """A frame with its variables. One with the value `None` is there, but optimized out; an error is raised when it is printed."""

    def __init__(self, pc: int, name: str | None = None, inline: bool = False, **variables: str | DebuggerError | None) -> None:
        self._pc = pc
        self._name = name
        self._inline = inline
        self.variables = variables
        self.line: core.Source | None = None
        self.caller: Frame | None = None

    @property
    def pc(self) -> int:
        return self._pc

    @property
    def is_inline(self) -> bool:
        return self._inline

    @property
    def name(self) -> str | None:
        return self._name

    def source(self) -> core.Source | None:
        return self.line

    def older(self) -> Frame | None:
        return self.caller

    def evaluate(self, expression: str) -> Value:
        if expression not in self.variables:
            raise NoSuchName(f'No symbol "{expression}" in current context.')
        value = self.variables[expression]
        if value is None:
            raise DebuggerError(f"{expression} is optimized out")
        return Value(value)


def stack(*frames: Frame) -> list[Frame]:
    """Frames, of which each was called by the next."""
    for frame, caller in zip(frames, frames[1:]):
        frame.caller = caller
    return list(frames)


class Inferior(core.Inferior):
    """A process without memory, unless a test gives it some."""

    def __init__(self, number: int = 1, pid: int = 100) -> None:
        self._number = number
        self._pid = pid
        self.path: str | None = "/bin/program"
        self.modules = 5
        self.core = False
        self.stops = 0
        self.all_threads: list[Thread] = []
        self.symbols: dict[str, int] = {}
        self.memory: dict[int, bytes] = {}
        #: What was asked, in order.
        self.questions: list[str] = []

    @property
    def number(self) -> int:
        return self._number

    @property
    def pid(self) -> int:
        return self._pid

    def end(self) -> None:
        """There is no process any more."""
        self._pid = 0

    @property
    def program(self) -> str | None:
        return self.path

    def lib_root(self) -> str:
        return ""

    def module_count(self) -> int:
        return self.modules

    def is_core(self) -> bool:
        return self.core

    def stop_number(self) -> int:
        return self.stops

    def threads(self) -> Sequence[Thread]:
        self.questions.append("threads")
        return self.all_threads

    def read(self, address: int, size: int) -> bytes | memoryview | None:
        for start, content in self.memory.items():
            if start <= address and address + size <= start + len(content):
                return content[address - start : address - start + size]
        return None

    def symbol(self, name: str) -> int | None:
        self.questions.append(f"symbol {name}")
        return self.symbols.get(name)

    def type_sizes(self) -> core.TypeSizes:
        return core.TypeSizes(1, 2, 4, 8, 8, 8)

    def is_big_endian(self) -> bool:
        return False

    def registers(self, threads: Sequence[core.Thread], names: Mapping[str, Sequence[str]]) -> list[core.Registers | None]:
        self.questions.append("registers " + " ".join(str(thread.lwp) for thread in threads))
        return [self._registers(thread, names) for thread in threads]

    def _registers(self, thread: core.Thread, names: Mapping[str, Sequence[str]]) -> core.Registers | None:
        assert isinstance(thread, Thread)
        if not thread.values:
            return None
        return core.Registers("x86-64", [thread.values.get(name) for name in names["x86-64"]])


class Breakpoint:
    """A breakpoint; `hit` is what a debugger does when a thread gets there."""

    #: Whether the debugger has stops reported.
    is_native = False
    report: Callable[[], str | None] | None = None
    continues = False

    def __init__(self, address: int, reached: Callable[[], bool]) -> None:
        self.address = address
        self._reached = reached
        self._valid = True
        self.enabled = True

    def is_valid(self) -> bool:
        return self._valid

    def set_enabled(self, enabled: bool) -> None:
        assert self._valid
        self.enabled = enabled

    def then(self, report: Callable[[], str | None] | None, continues: bool) -> bool:
        assert self._valid
        self.report, self.continues = report, continues
        return Breakpoint.is_native

    def delete(self) -> None:
        assert self._valid
        self._valid = False

    def hit(self) -> bool:
        """Whether the process stops."""
        return self._reached()


class Debugger(core.Debugger):
    """A debugger with the inferiors that a test gives it."""

    name = "fake"
    version = "1"
    folder = Path(__file__).parent
    how_to_begin = "begin with one"
    how_to_stop = "halt"
    how_to_choose_library = "choose PATH"
    examples = core.Examples(frames="top 3", locals="variables", level="level()", team="team()")

    def __init__(self, *inferiors: core.Inferior) -> None:
        self.inferiors = list(inferiors)
        self.selected_number = 0
        self.thread: Thread | None = None
        self.frame: Frame | None = None
        self.printed: list[str] = []
        self.breakpoints: list[Breakpoint] = []
        #: Expressions that are true.
        self.true: set[str] = set()
        self.functions: list[core.Function] = []
        self.lines: list[tuple[int, int, str]] = []
        #: Where the code of any function calls; `None` for an indirect call.
        self.targets: list[int | None] = []
        #: Where there are calls, jumps and returns.
        self.jumps: list[int] = []
        self.libraries: dict[range, str] = {}
        #: What happens when the process is let run: whether it lives on.
        self.running: Callable[[], bool] = lambda: True
        #: The threads that were held at last.
        self.held: list[str] = []
        self.can_hold = True
        self.columns = 80
        self.colours = False
        self.executed: list[str] = []
        #: Why commands fail.
        self.refused: dict[str, DebuggerError] = {}
        #: What happens when it is let run for some time.
        self.running_for: Callable[[], core.Stopped] = lambda: core.Stopped.TIME
        #: For how long that was, each time.
        self.seconds: list[float] = []

    def output(self) -> str:
        """What was printed since this was asked last."""
        text = "".join(self.printed)
        self.printed.clear()
        return text

    def write(self, text: str) -> None:
        self.printed.append(text)

    def width(self) -> int:
        return self.columns

    def has_colours(self) -> bool:
        return self.colours

    def words(self, text: str) -> list[str]:
        return shlex.split(text)

    def execute(self, command: str, from_tty: bool) -> None:
        self.executed.append(command)
        if command in self.refused:
            raise self.refused[command]
        self.write(f"executed {command} in {self.thread.id if self.thread else '-'}\n")

    def selected_inferior(self) -> core.Inferior:
        return self.inferiors[self.selected_number]

    def selected_thread(self) -> Thread | None:
        return self.thread

    def select_thread(self, thread: core.Thread) -> None:
        assert isinstance(thread, Thread)
        self.thread = thread
        self.frame = thread.frames[0] if thread.frames else None

    @contextmanager
    def selected(self, thread: core.Thread) -> Iterator[None]:
        before = self.thread, self.frame
        if before[0] is not thread:
            self.select_thread(thread)
        try:
            yield
        finally:
            self.thread, self.frame = before

    def selected_frame(self) -> Frame:
        if self.frame is None:
            raise DebuggerError("No frame selected.")
        return self.frame

    def newest_frame(self) -> Frame:
        if self.thread is None or not self.thread.frames:
            raise DebuggerError("No stack.")
        return self.thread.frames[0]

    def select_frame(self, frame: core.Frame) -> None:
        assert isinstance(frame, Frame)
        self.frame = frame

    def show_frame(self, from_tty: bool = False) -> None:
        self.write("the frame\n")

    def is_true(self, expression: str) -> bool:
        return expression in self.true

    def symbol_at(self, address: int) -> str | None:
        return next((f"function_{f.start:x}" for f in self.functions if f.start <= address < f.end), None)

    def function_at(self, address: int) -> core.Function | None:
        return next((f for f in self.functions if f.start <= address < f.end), None)

    def source_at(self, address: int) -> core.Source | None:
        before = [(file, line) for at, line, file in sorted(self.lines) if at <= address]
        return core.Source(*before[-1]) if before else None

    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        return [(at, line) for at, line, of in self.lines if start <= at < end and of == file]

    def addresses_of(self, line: core.Source) -> list[int]:
        return [at for at, number, file in self.lines if (file, number) == line]

    def module_at(self, address: int) -> str | None:
        return next((name for where, name in self.libraries.items() if address in where), None)

    def call_targets(self, start: int, end: int) -> list[int | None]:
        return self.targets

    def straight_to(self, start: int, end: int) -> int:
        return min((at for at in self.jumps if start <= at < end), default=end)

    def break_at(self, address: int, reached: Callable[[], bool]) -> Breakpoint:
        made = Breakpoint(address, reached)
        self.breakpoints.append(made)
        return made

    def go_on(self) -> bool:
        return self.running()

    @contextmanager
    def holding(self, threads: Sequence[core.Thread]) -> Iterator[None]:
        self.held = [thread.id for thread in threads]
        if threads and not self.can_hold:
            raise DebuggerError("It holds no threads.")
        yield

    def run_for(self, inferior: core.Inferior, seconds: float) -> core.Stopped:
        self.seconds.append(seconds)
        return self.running_for()

    def active(self) -> list[Breakpoint]:
        """The breakpoints that are there and enabled."""
        return [made for made in self.breakpoints if made.is_valid() and made.enabled]


class FakeLibrary(Library):
    """Answers what a test has written down, and keeps what it was asked."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.path = Path("/fake/libompd.so")
        self.callbacks = callbacks
        self.calls: list[str] = []
        #: How texts were wanted, in order.
        self.wanted: list[ompd.TextOptions] = []
        self.report: Json = {"schema": 1, "runtimes": [], "stacks": [], "verdicts": []}
        #: Return codes by function; 0 if it is not here.
        self.codes: dict[str, int] = {}
        #: Answers by function, in place of those below.
        self.answers: dict[str, Callable[..., None]] = {}
        self.points: list[ompd.StopPoint] = []
        #: What `ompdx_get_stop` says, and control variables by number.
        self.counts = 1
        #: The event at the place of any thread, by its number.
        self.event = 0
        self.icvs: dict[int, int] = {}

    def asked(self, name: str) -> int:
        """How often a function was called."""
        return self.calls.count(name)

    def call(self, name: str, *arguments: Any) -> None:
        assert name in FUNCTIONS, f"the library has no function {name}"
        self.calls.append(name)
        code = self.codes.get(name, 0)
        if code:
            raise OmpdError(name, code, self.callbacks.debugger)
        answer = self.answers.get(name) or getattr(self, f"_{name}", None)
        if answer is not None:
            answer(*arguments)

    def text(self, name: str, *arguments: Any) -> str:
        assert arguments[0].value, "without a process there is no report"
        self.call(name)
        if name == "ompdx_report_json":
            return json.dumps(self.report)
        self.wanted.append(arguments[2]._obj)
        return f"view {arguments[1].decode()}\n\nmore\n"

    def version(self) -> tuple[int, ...]:
        return (2024, 11)

    @staticmethod
    def _ompd_process_initialize(_context: c_void_p, out: Any) -> None:
        out._obj.value = 1

    def _ompdx_stop_points(self, space: c_void_p, block: Any, count: Any) -> None:
        assert space.value, "without a process there are no places"
        array = (ompd.StopPoint * len(self.points))(*self.points)
        address = ctypes.addressof(array)
        # `take` forgets it, as it does with what the library hands out.
        self.callbacks._memory[address] = array  # type: ignore[assignment]
        block._obj.value, count._obj.value = address, len(self.points)

    def _ompdx_get_stop(self, _thread: c_void_p, _point: Any, event: Any, counts: Any) -> None:
        event._obj.value = self.event
        counts._obj.value = self.counts

    @staticmethod
    def _ompd_enumerate_icvs(_space: c_void_p, current: c_uint64, following: Any, name: Any, scope: Any, more: Any) -> None:
        names = [b"thread-num-var", b"team-size-var", b"levels-var"]
        _ICV_NAMES[:] = [ctypes.create_string_buffer(text) for text in names]
        following._obj.value = current.value + 1
        name._obj.value = ctypes.addressof(_ICV_NAMES[current.value])
        scope._obj.value, more._obj.value = ompd.SCOPE_TASK, current.value + 1 < len(names)

    def _ompd_get_icv_from_scope(self, _handle: c_void_p, _scope: int, number: int, value: Any) -> None:
        value._obj.value = self.icvs[number]


#: Memory of the texts that were handed out.
_ICV_NAMES: list[ctypes.Array[ctypes.c_char]] = []


@contextmanager
def refusing(of: type, name: str) -> Iterator[None]:
    """Has a debugger refuse one method or property of a class of this file."""

    def refuse(*_: object) -> None:
        raise DebuggerError("Remote connection closed")

    is_property = isinstance(getattr(of, name), property)
    with mock.patch.object(of, name, property(refuse) if is_property else refuse):
        yield


def point(event: int, address: int, own: bool = False, place: str = "", condition: str | None = None) -> ompd.StopPoint:
    """A place to stop at, as the library hands it out; address 0: why there is none."""
    return ompd.StopPoint(
        point=1 if address else 0,
        event=event,
        own=own,
        address=ompd.Address(0, address),
        runtime=b"libfake",
        place=place.encode(),
        condition=condition.encode() if condition else None,
    )


def fact(value: Any) -> Json:
    """A value of the report."""
    return {"value": value}


def member(lwp: int, team: int, number: int, wait: Json = None) -> Json:
    """A thread of the report."""
    found = {"lwp": lwp, "team": fact(team), "thread_num": fact(number), "role": fact("worker" if number else "initial")}
    return {**found, "wait": fact(wait)} if wait else found


def runtime(*teams: list[int | None]) -> Json:
    """A runtime of the report, with teams of threads."""
    threads = [member(lwp, team, number) for team, lwps in enumerate(teams) for number, lwp in enumerate(lwps) if lwp]
    return {
        "family": "libgomp",
        "product": "Fake runtime",
        "path": "/lib/libfake.so",
        "base": "0x1000",
        "threads": threads,
        "teams": [{"members": lwps, "size": fact(len(lwps))} for lwps in teams],
        "locks": [],
    }


class World:
    """A debugger with one inferior of four threads, the plugin, and the library."""

    def __init__(self) -> None:
        self.inferior = Inferior()
        self.inferior.all_threads = [Thread(number, 100 + number) for number in range(1, 5)]
        self.debugger = Debugger(self.inferior)
        self.plugin = Plugin(self.debugger)
        self.session = self.plugin.session
        callbacks = Callbacks(self.session._states.get, self.session._all_ran, self.debugger.name)
        self.library = FakeLibrary(callbacks)
        self.session._library = self.library
        self.library.report["runtimes"] = [runtime([101, 102, 103, 104])]
        self.debugger.select_thread(self.threads[0])

    @property
    def threads(self) -> list[Thread]:
        """The threads of the inferior."""
        return self.inferior.all_threads

    def run(self, line: str) -> str:
        """Runs a command of the plugin; what it prints."""
        name, _, argument = line.partition(" ")
        command = next(command for command in self.plugin.commands if command.name == name)
        command.run(argument, False)
        return self.debugger.output()
