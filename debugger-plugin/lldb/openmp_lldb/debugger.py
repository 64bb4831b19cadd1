"""Implements the interface `openmp_core.debugger` for LLDB.

Nothing is written to the process. No text from the process becomes a command or an expression of LLDB.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import lldb

from openmp_core import debugger as core
from openmp_core.errors import CommandError, DebuggerError
from openmp_core.expressions import Expression
from openmp_core.session import Session

from . import editor, running
from .breakpoints import Breakpoint
from .code import Code
from .inferior import Inferior, Targets, Thread, file_of, native, real_name
from .output import Output
from .selecting import Selections
from .turn import Turn
from .values import Variables, text_of


class Value(core.Value):
    """A value that LLDB has read, or a number that was computed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def text(self) -> str:
        return str(self.value) if isinstance(self.value, (int, float)) else text_of(self.value)


class Frame(core.Frame):
    """A frame of the selected thread."""

    def __init__(self, frame: Any, session: Session) -> None:
        self.frame = frame
        self._session = session

    @property
    def pc(self) -> int:
        return int(self.frame.GetPC())

    @property
    def is_inline(self) -> bool:
        return bool(self.frame.IsInlined())

    @property
    def name(self) -> str | None:
        return real_name(self.frame.GetFunctionName())

    def source(self) -> core.Source | None:
        return source_of(self.frame.GetLineEntry())

    def older(self) -> Frame | None:
        frame = self.frame.GetThread().GetFrameAtIndex(self.frame.GetFrameID() + 1)
        # LLDB 22 and later may have frames of another thread behind those of this one.
        is_own = frame.IsValid() and not (hasattr(frame, "IsSynthetic") and frame.IsSynthetic())
        return Frame(frame, self._session) if is_own else None

    def evaluate(self, expression: str) -> Value:
        return Value(Expression(expression, Variables(self.frame, self._session)).value())


def source_of(entry: Any) -> core.Source | None:
    """A place in the source, if it is known."""
    file = file_of(entry.GetFileSpec()) if entry.IsValid() else None
    return core.Source(file, int(entry.GetLine())) if file is not None else None


class Debugger(core.Debugger):
    """This LLDB."""

    name = "lldb"
    version = lldb.SBDebugger.GetVersionString().partition("\n")[0].removeprefix("lldb version ")
    # The file itself may be a link.
    folder = Path(__file__).resolve().parent
    how_to_begin = "`run` the program, `process attach` to one, or open a core file"
    how_to_stop = "process interrupt"
    how_to_choose_library = "openmp settings set library PATH"
    examples = core.Examples(frames="bt 3", locals="frame variable", level="$_omp_level()", team="$_omp_team()")

    #: Set by the adapter, before anything is asked.
    session: Session

    def __init__(self, debugger: Any) -> None:
        self.lldb = debugger
        self.output = Output(debugger)
        self.selections = Selections(debugger)
        self.targets = Targets(debugger)
        self.turn = Turn()
        #: How often a command has let a process run.
        self.ran = 0
        #: The last stop at which a process stays, by `stop_of`. The event is set then.
        self.stayed_at: tuple[int, int] | None = None
        self.stayed = threading.Event()

    # The user.

    def write(self, text: str) -> None:
        self.output.write(text)

    def width(self) -> int:
        # An editor wraps lines itself.
        return 0 if editor.is_here() else int(self.lldb.GetTerminalWidth())

    def has_colours(self) -> bool:
        return bool(self.lldb.GetUseColor()) and self.output.is_terminal()

    def words(self, text: str) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError as failure:
            raise CommandError(f"{failure}: {text}") from failure

    def execute(self, command: str, from_tty: bool) -> None:
        # It may let the process run, or end it.
        self.ran += 1
        result = lldb.SBCommandReturnObject()
        self.lldb.GetCommandInterpreter().HandleCommand(command, self.selections.context(), result)
        self.write(result.GetOutput() or "")
        if not result.Succeeded():
            raise DebuggerError((result.GetError() or f"{command}: failed").strip().removeprefix("error: "))

    # What is selected.

    def selected_inferior(self) -> Inferior:
        target = self.selections.target()
        return self.targets.inferior(target)

    def selected_thread(self) -> Thread | None:
        thread = self.selections.thread()
        return Thread(thread, self.targets) if thread.IsValid() else None

    def select_thread(self, thread: core.Thread) -> None:
        self.selections.select(native(thread), 0)

    @contextmanager
    def selected(self, thread: core.Thread) -> Iterator[None]:
        with self.selections.held(self.selections.target(), native(thread)):
            yield

    def selected_frame(self) -> Frame:
        return Frame(self.selections.frame(), self.session)

    def newest_frame(self) -> Frame:
        frame = self.selections.thread().GetFrameAtIndex(0)
        if not frame.IsValid():
            raise DebuggerError("There is no frame.")
        return Frame(frame, self.session)

    def select_frame(self, frame: core.Frame) -> None:
        assert isinstance(frame, Frame)
        self.selections.select(frame.frame.GetThread(), frame.frame.GetFrameID())

    def show_frame(self, from_tty: bool = False) -> None:
        stream = lldb.SBStream()
        self.selections.frame().GetDescription(stream)
        self.write(str(stream.GetData() or ""))

    def is_true(self, expression: str) -> bool:
        return Expression(expression, Variables(self.selections.frame(), self.session)).is_true()

    # The program.

    @property
    def _code(self) -> Code:
        return Code(self.selections.target())

    def symbol_at(self, address: int) -> str | None:
        return self._code.symbol_at(address)

    def function_at(self, address: int) -> core.Function | None:
        return self._code.function_at(address)

    def source_at(self, address: int) -> core.Source | None:
        return source_of(self._code.at(address).GetLineEntry())

    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        return self._code.line_entries(start, end, file)

    def addresses_of(self, line: core.Source) -> list[int]:
        return self._code.addresses_of(line)

    def module_at(self, address: int) -> str | None:
        return self._code.module_at(address)

    def call_targets(self, start: int, end: int) -> list[int | None]:
        return self._code.call_targets(start, end)

    def straight_to(self, start: int, end: int) -> int:
        return self._code.straight_to(start, end)

    # What runs.

    def break_at(self, address: int, reached: Callable[[], bool]) -> Breakpoint:
        return Breakpoint(self, self.selections.target(), address, reached)

    def go_on(self) -> bool:
        return running.go_on(self)

    @contextmanager
    def holding(self, threads: Sequence[core.Thread]) -> Iterator[None]:
        # Those that the user has suspended stay so.
        held = [thread for thread in map(native, threads) if not thread.IsSuspended()]
        try:
            for thread in held:
                thread.Suspend()
            yield
        finally:
            for thread in held:
                if thread.IsValid():
                    thread.Resume()

    def run_for(self, inferior: core.Inferior, seconds: float) -> core.Stopped:
        assert isinstance(inferior, Inferior)
        return running.run_for(self, inferior.process, seconds)
