"""The interface between this package and a debugger: all that is ever asked of one.

An adapter implements `Debugger`, `Inferior`, `Thread` and `Frame`, and makes breakpoints that are like
`Breakpoint`. In the other direction it tells `Plugin` what happens (see `plugin.py`).

Rules for adapters:

- Nothing is written to the process, and nothing runs in it, but by the methods that say so. An
  expression comes from the user; no text from the process is ever part of one.
- What the debugger refuses is raised as `DebuggerError`, with the debugger's own text. Methods that
  answer `None` do so where something is unknown, and raise nothing.
- Objects are asked for anew at each use, except `Inferior`, which is kept until it is removed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Callable, NamedTuple, Protocol


class TypeSizes(NamedTuple):
    """Bytes of C's types in the process."""

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
    """A function of which there is debug information: its code from `start` to before `end`, and its place in the source."""

    start: int
    end: int
    file: str
    line: int


class Registers(NamedTuple):
    """Values of registers, in the order in which they were wanted; `None` for those that the debugger does not have."""

    #: `x86-64` or `aarch64`.
    machine: str
    values: Sequence[int | None]


class Stopped(Enum):
    """Why a process stands still again that was let run for some time."""

    #: The time was over.
    TIME = 1
    #: Something else came first: a breakpoint, a signal, the user.
    OTHER = 2
    #: The process has ended.
    ENDED = 3


class Thread(ABC):
    """A thread of a process."""

    @property
    @abstractmethod
    def lwp(self) -> int:
        """The kernel's id of it, or, from targets that have none, the only number they give."""

    @property
    @abstractmethod
    def id(self) -> str:
        """What users call it: `3`, or `1.3` where the debugger has several processes."""

    @abstractmethod
    def pthread(self) -> int | None:
        """Its `pthread_t`."""

    @abstractmethod
    def is_running(self) -> bool:
        """True if it does not stand still."""

    @abstractmethod
    def give_name(self, name: str) -> bool:
        """Has the debugger show a name with it, unless the user has given it one. True if that is so."""

    @abstractmethod
    def take_name(self) -> None:
        """Takes back the name that `give_name` has given. The thread may be gone."""


class Frame(ABC):
    """A frame of the stack of the selected thread."""

    @property
    @abstractmethod
    def pc(self) -> int:
        """Where it executes, or where its callee returns to."""

    @property
    @abstractmethod
    def is_inline(self) -> bool:
        """True if it is of a function that was inlined: it has the address of what it is inlined into."""

    @property
    @abstractmethod
    def name(self) -> str | None:
        """Its function."""

    @abstractmethod
    def source(self) -> Source | None:
        """Its line."""

    @abstractmethod
    def older(self) -> Frame | None:
        """The frame that has called it."""

    @abstractmethod
    def evaluate(self, expression: str) -> str:
        """The value of an expression of the user's, as text; of a reference, what it refers to. The frame may be selected afterwards.

        Raises `NoSuchName` if a name is unknown here, and `DebuggerError` if there is no value."""


class Inferior(ABC):
    """A process or core file that the debugger has, or is to start. gdb calls it an inferior, LLDB a target."""

    @property
    @abstractmethod
    def number(self) -> int:
        """The debugger's number of it, from 1 on."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Its process id, 0 as long as there is no process. Of a core file, any other number."""

    @property
    @abstractmethod
    def program(self) -> str | None:
        """The path of the program."""

    @abstractmethod
    def module_count(self) -> int:
        """How many files with code it has: the program, its libraries, what the kernel gives it."""

    @abstractmethod
    def is_core(self) -> bool:
        """True if it is known to be a core file."""

    @abstractmethod
    def stop_number(self) -> int:
        """A count that never falls, and rises whenever memory, registers or threads may have changed."""

    @abstractmethod
    def threads(self) -> Sequence[Thread]:
        """All its threads."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes | memoryview | None:
        """So many bytes of its memory, or `None` if one of them cannot be read."""

    @abstractmethod
    def symbol(self, name: str) -> int | None:
        """The address of a symbol. The name is an identifier of C."""

    @abstractmethod
    def type_sizes(self) -> TypeSizes:
        """Bytes of C's types."""

    @abstractmethod
    def is_big_endian(self) -> bool:
        """True if the first byte of a number is its highest."""

    @abstractmethod
    def registers(self, threads: Sequence[Thread], names: Mapping[str, Sequence[str]]) -> list[Registers | None]:
        """Registers of threads, as they are in the innermost frame; `None` for threads that cannot be read.

        `names` has what is wanted, for each machine. The selection stays as it is."""


class Breakpoint(Protocol):
    """A breakpoint that users do not see."""

    def is_valid(self) -> bool:
        """False if it is gone, perhaps with its process."""

    def delete(self) -> None:
        """Takes it away."""


class Debugger(ABC):
    """A debugger."""

    #: As it is named in texts.
    name: str
    version: str
    #: Where the adapter lies: `libompd.so` is looked for from there on.
    folder: Path
    #: What a user does to have a process, in words that follow a colon.
    how_to_begin: str
    #: The command that stops all threads.
    how_to_stop: str
    #: The command by which another libompd.so is taken.
    how_to_choose_library: str

    # The user.

    @abstractmethod
    def write(self, text: str) -> None:
        """Prints, through the debugger's pager if it has one."""

    @abstractmethod
    def width(self) -> int:
        """Columns of the terminal, 0 if there is no limit."""

    @abstractmethod
    def has_colours(self) -> bool:
        """True if colours are wanted."""

    @abstractmethod
    def words(self, text: str) -> list[str]:
        """The arguments of a command, split as the debugger does that, with its quotes."""

    @abstractmethod
    def execute(self, command: str, from_tty: bool) -> None:
        """Executes a command that the user has given."""

    # What is selected.

    @abstractmethod
    def selected_inferior(self) -> Inferior:
        """The inferior that commands are about."""

    @abstractmethod
    def selected_thread(self) -> Thread | None:
        """The thread that commands are about; at a breakpoint that is being hit, the one that hits it."""

    @abstractmethod
    def select_thread(self, thread: Thread) -> None:
        """Selects a thread and its innermost frame."""

    @abstractmethod
    def selected(self, thread: Thread) -> AbstractContextManager[None]:
        """Selects a thread, and afterwards the thread and frame that were selected before. It stays at its frame if it is selected."""

    @abstractmethod
    def selected_frame(self) -> Frame:
        """The frame that commands are about."""

    @abstractmethod
    def newest_frame(self) -> Frame:
        """The innermost frame of the selected thread."""

    @abstractmethod
    def show_frame(self, from_tty: bool = False) -> None:
        """Prints where the selected frame is."""

    @abstractmethod
    def is_true(self, expression: str) -> bool:
        """Whether an expression of the user's is true in the selected frame."""

    # The program.

    @abstractmethod
    def symbol_at(self, address: int) -> str | None:
        """The function at an address, as the linker names it."""

    @abstractmethod
    def function_at(self, address: int) -> Function | None:
        """The function at an address, if there is debug information of it."""

    @abstractmethod
    def source_at(self, address: int) -> Source | None:
        """The line of an address. The line is 0 if the file alone is known."""

    @abstractmethod
    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        """Entries of the line table from `start` to before `end` that are of this file: address and line."""

    @abstractmethod
    def module_at(self, address: int) -> str | None:
        """The library that an address is in; `None` in the program itself, and where nothing is."""

    @abstractmethod
    def disassemble(self, start: int, end: int) -> list[str]:
        """Instructions from `start` to before `end`, each as mnemonic, space, operands, with absolute addresses in hexadecimal."""

    # What runs.

    @abstractmethod
    def break_at(self, address: int, reached: Callable[[], bool] | None = None, thread: Thread | None = None) -> Breakpoint:
        """Makes a breakpoint in the selected inferior that prints nothing and that users do not see.

        At each hit `reached` says whether to stop, with the thread selected that hits it. With `thread`,
        only that thread hits it."""

    @abstractmethod
    def go_on(self) -> bool:
        """Lets the process run until it stops again, and prints nothing. False if it has ended."""

    @abstractmethod
    def run_for(self, inferior: Inferior, seconds: float) -> Stopped:
        """Lets the process run for some time, if nothing stops it before."""
