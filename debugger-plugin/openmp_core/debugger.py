"""The interface between this package and a debugger. Nothing else of a debugger is ever called.

An adapter implements `Debugger`, `Inferior`, `Thread`, `Frame` and `Value`, and returns breakpoints
that have the methods of `Breakpoint`. It reports events to `Plugin` (`plugin.py`).

Rules for an adapter:

- It writes nothing to the process, and runs no code in it. The process continues only in `go_on` and
  `run_for`.
- Expressions come from the user. No text from the process becomes a command or an expression.
- Where a debugger refuses, a method raises `DebuggerError` with the debugger's own text. Methods that
  return `None` for what is unknown raise nothing.
- The core keeps an `Inferior` until it is removed, and a `Frame` or `Value` for one command. It keeps a `Thread`
  for one stop, or until `take_name`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Callable, NamedTuple, Protocol


class TypeSizes(NamedTuple):
    """Sizes of C's types in the process, in bytes."""

    of_char: int
    of_short: int
    of_int: int
    of_long: int
    of_long_long: int
    of_pointer: int


class Source(NamedTuple):
    """A line of the source."""

    file: str
    line: int


class Function(NamedTuple):
    """A function that has debug information: its code from `start` to before `end`, and its line."""

    start: int
    end: int
    file: str
    line: int


class Registers(NamedTuple):
    """Values of a thread's registers, in the order of the request."""

    #: `x86-64` or `aarch64`.
    machine: str
    #: `None` for a register that the debugger does not have.
    values: Sequence[int | None]


class Stopped(Enum):
    """Why a process has stopped that `run_for` let run."""

    #: The time was over.
    TIME = 1
    #: A breakpoint, a signal or the user stopped it before.
    OTHER = 2
    #: The process has ended.
    ENDED = 3


class Thread(ABC):
    """A thread of a process."""

    @property
    @abstractmethod
    def lwp(self) -> int:
        """The kernel's thread id. Of a target without those, another number that is unique."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The debugger's own number: `3`, or `1.3` if the debugger has several processes."""

    @abstractmethod
    def pthread(self) -> int | None:
        """Its `pthread_t`."""

    @abstractmethod
    def is_running(self) -> bool:
        """True if it does not stand still."""

    @abstractmethod
    def give_name(self, name: str) -> bool:
        """Names it in the debugger's list of threads. False if the user has named it, or if that is impossible."""

    @abstractmethod
    def take_name(self) -> None:
        """Removes the name that `give_name` gave. The thread may be gone."""


class Value(ABC):
    """The value of an expression, read from the process."""

    @abstractmethod
    def text(self) -> str:
        """The value as the debugger prints it. Its thread is still selected."""


class Frame(ABC):
    """A stack frame of the selected thread."""

    @property
    @abstractmethod
    def pc(self) -> int:
        """Where it executes, or where its callee returns to."""

    @property
    @abstractmethod
    def is_inline(self) -> bool:
        """True if its function is inlined. Then the frame that it is inlined into has the same `pc`."""

    @property
    @abstractmethod
    def name(self) -> str | None:
        """Its function."""

    @abstractmethod
    def source(self) -> Source | None:
        """Its line in the source."""

    @abstractmethod
    def older(self) -> Frame | None:
        """Its caller's frame."""

    @abstractmethod
    def evaluate(self, expression: str) -> Value:
        """The value of an expression, not printed yet. A reference is followed. The frame may be selected afterwards.

        Raises `NoSuchName` if the frame does not know a name, and `DebuggerError` if there is no value."""


class Inferior(ABC):
    """A process, a core file, or a program to be started: an inferior of gdb, a target of LLDB."""

    @property
    @abstractmethod
    def number(self) -> int:
        """The debugger's number of it, from 1 on."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id, and 0 if there is no process. For a core file, any number but 0."""

    @property
    @abstractmethod
    def program(self) -> str | None:
        """The path of the program."""

    @abstractmethod
    def lib_root(self) -> str:
        """The folder with the files of the machine that the process runs on; empty if they are here, or if there is none."""

    @abstractmethod
    def module_count(self) -> int:
        """How many files with code are loaded: program, libraries, vDSO."""

    @abstractmethod
    def is_core(self) -> bool:
        """True if it is known to be a core file."""

    @abstractmethod
    def stop_number(self) -> int:
        """A number that never falls. It rises when memory, registers or threads may have changed."""

    @abstractmethod
    def threads(self) -> Sequence[Thread]:
        """All threads."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes | memoryview | None:
        """Memory: exactly `size` bytes, or `None` if one of them cannot be read."""

    @abstractmethod
    def symbol(self, name: str) -> int | None:
        """The address of a symbol. The name is an identifier of C."""

    @abstractmethod
    def type_sizes(self) -> TypeSizes:
        """Sizes of C's types."""

    @abstractmethod
    def is_big_endian(self) -> bool:
        """True if numbers begin with their highest byte."""

    @abstractmethod
    def registers(self, threads: Sequence[Thread], names: Mapping[str, Sequence[str]]) -> list[Registers | None]:
        """Registers of the innermost frames, for each thread in turn; `None` for an unreadable thread.

        `names` has the wanted registers for each machine (`inferior.py` explains the names). An adapter
        translates them to its debugger's. The selection stays."""


class Breakpoint(Protocol):
    """A breakpoint that users do not see."""

    def is_valid(self) -> bool:
        """False if it was deleted, perhaps with its process."""

    def set_enabled(self, enabled: bool) -> None:
        """Has threads stop there, or not."""

    def then(self, report: Callable[[], str | None] | None, continues: bool) -> bool:
        """Has the debugger call `report` when it is done with a stop there, and continue the process if it `continues`; `None`: no more.

        What `report` returns is a failure, after which the process does not continue. False if the core is to do that, as far as
        `Plugin.stopped` can."""

    def delete(self) -> None:
        """Deletes it."""


class Examples(NamedTuple):
    """What a user of the debugger types, as examples in help."""

    #: Prints the innermost frames of the selected thread.
    frames: str
    #: Prints the local variables of the selected frame.
    locals: str
    #: The nesting level in a condition: `_omp_level` of `functions.py`.
    level: str
    #: The team of a thread in a condition: `_omp_team` of `functions.py`.
    team: str


class Debugger(ABC):
    """A debugger."""

    #: Its name in texts, and in keys of JSON.
    name: str
    version: str
    #: The folder near which `libompd.so` is searched: that of the adapter's file, after links are followed.
    folder: Path
    #: How the user gets a process, in words behind a colon.
    how_to_begin: str
    #: The command that stops all threads.
    how_to_stop: str
    #: The command that chooses another `libompd.so`.
    how_to_choose_library: str
    examples: Examples

    # The user.

    @abstractmethod
    def write(self, text: str) -> None:
        """Prints text, through the debugger's pager if there is one."""

    @abstractmethod
    def width(self) -> int:
        """Columns of the terminal; 0 without a limit."""

    @abstractmethod
    def has_colours(self) -> bool:
        """True if colours are wanted."""

    @abstractmethod
    def words(self, text: str) -> list[str]:
        """Splits the arguments of a command by the debugger's rules for quotes."""

    @abstractmethod
    def execute(self, command: str, from_tty: bool) -> None:
        """Executes a command of the user."""

    # The selection.

    @abstractmethod
    def selected_inferior(self) -> Inferior:
        """The selected inferior."""

    @abstractmethod
    def selected_thread(self) -> Thread | None:
        """The selected thread. In `reached` of a breakpoint, the thread that hits it."""

    @abstractmethod
    def select_thread(self, thread: Thread) -> None:
        """Selects a thread and its innermost frame, as if the user did."""

    @abstractmethod
    def selected(self, thread: Thread) -> AbstractContextManager[None]:
        """Selects a thread for a while; then the former thread and frame again.

        If the thread is selected already, its selected frame stays."""

    @abstractmethod
    def selected_frame(self) -> Frame:
        """The selected frame."""

    @abstractmethod
    def newest_frame(self) -> Frame:
        """The innermost frame of the selected thread."""

    @abstractmethod
    def select_frame(self, frame: Frame) -> None:
        """Selects a frame of the selected thread."""

    @abstractmethod
    def show_frame(self, from_tty: bool = False) -> None:
        """Prints the selected frame."""

    @abstractmethod
    def is_true(self, expression: str) -> bool:
        """True if an expression of the user is true in the selected frame."""

    # The program.

    @abstractmethod
    def symbol_at(self, address: int) -> str | None:
        """The function at an address, by its linker name."""

    @abstractmethod
    def function_at(self, address: int) -> Function | None:
        """The function at an address, from debug information."""

    @abstractmethod
    def source_at(self, address: int) -> Source | None:
        """The line of an address. The line is 0 if only the file is known."""

    @abstractmethod
    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        """The line table of a file from `start` to before `end`, as pairs of address and line."""

    @abstractmethod
    def addresses_of(self, line: Source) -> list[int]:
        """Where the code of a line begins, at each place where it is in the selected inferior; empty if the line has none.

        The file may be the last part of a path."""

    @abstractmethod
    def module_at(self, address: int) -> str | None:
        """The library at an address; `None` in the program itself and outside of all files."""

    @abstractmethod
    def call_targets(self, start: int, end: int) -> list[int | None]:
        """Where the calls in the code from `start` to before `end` lead, in order; `None` for an indirect call."""

    @abstractmethod
    def straight_to(self, start: int, end: int) -> int:
        """The first call, jump or return in the code from `start` to before `end`; `end` without one."""

    # What runs.

    @abstractmethod
    def break_at(self, address: int, reached: Callable[[], bool]) -> Breakpoint:
        """Makes a breakpoint in the selected inferior, and in no other, that users do not see.

        At each hit, `reached` returns whether to stop. The debugger prints nothing of such a stop."""

    @abstractmethod
    def go_on(self) -> bool:
        """Continues all threads until one stops.

        Returns False if the process has ended, or if other threads have stopped for other reasons at the same time as one at a
        breakpoint of `break_at`. The debugger prints why, except at such breakpoints. Raises `DebuggerError` if the user has it hold
        threads."""

    @abstractmethod
    def holding(self, threads: Sequence[Thread]) -> AbstractContextManager[None]:
        """Has these threads stay where they are for a while, whatever continues. Raises `DebuggerError` if it cannot.

        Each debugger can do so with all threads but the selected one."""

    @abstractmethod
    def run_for(self, inferior: Inferior, seconds: float) -> Stopped:
        """Continues the process for some time, or until something else stops it. Then the debugger prints why.

        Raises `DebuggerError` if the debugger could not stop it."""
