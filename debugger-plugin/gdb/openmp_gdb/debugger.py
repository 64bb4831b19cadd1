"""Implements the interface `openmp_core.debugger` for gdb.

Nothing is written to the process. No text from the process becomes a command or an expression of gdb.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

import gdb

from openmp_core import debugger as core
from openmp_core.errors import DebuggerError

from . import dap, output, running
from .breakpoints import Breakpoint
from .selecting import errors, kept_selection, language_c, select

#: The types whose sizes are wanted, and the pointer.
C_TYPES = ("char", "short", "int", "long", "long long")


class Thread(core.Thread):
    """A thread of an inferior."""

    def __init__(self, thread: gdb.InferiorThread) -> None:
        self.thread = thread

    @property
    @errors()
    def lwp(self) -> int:
        process, lwp, tid = self.thread.ptid
        return lwp or tid or process

    @property
    @errors()
    def id(self) -> str:
        several = len(gdb.inferiors()) > 1
        return f"{self.thread.inferior.num}.{self.thread.num}" if several else str(self.thread.num)

    def pthread(self) -> int | None:
        try:
            return int.from_bytes(self.thread.handle(), "little")
        except RuntimeError:
            return None

    @errors()
    def is_running(self) -> bool:
        return self.thread.is_running()

    @errors()
    def give_name(self, name: str) -> bool:
        given = self.thread.name
        self.thread.name = None
        if self.thread.name != given:
            # The user has named it.
            self.thread.name = given
            return False
        self.thread.name = name
        return True

    @errors()
    def take_name(self) -> None:
        if self.thread.is_valid():
            self.thread.name = None


class Value(core.Value):
    """A value that gdb has read."""

    def __init__(self, value: gdb.Value) -> None:
        self.value = value

    @errors()
    def text(self) -> str:
        return self.value.format_string()


class Frame(core.Frame):
    """A frame of the selected thread."""

    def __init__(self, frame: gdb.Frame) -> None:
        self.frame = frame

    @property
    @errors()
    def pc(self) -> int:
        return self.frame.pc()

    @property
    @errors()
    def is_inline(self) -> bool:
        return self.frame.type() == gdb.INLINE_FRAME

    @property
    @errors()
    def name(self) -> str | None:
        return self.frame.name()

    @errors()
    def source(self) -> core.Source | None:
        return source_of(self.frame.find_sal())

    @errors()
    def older(self) -> Frame | None:
        frame = self.frame.older()
        return Frame(frame) if frame is not None else None

    @errors()
    def evaluate(self, expression: str) -> Value:
        self.frame.select()
        value = gdb.parse_and_eval(expression)
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            # clang makes references of shared variables.
            value = value.referenced_value()
        if value.is_optimized_out:
            raise DebuggerError(f"{expression} is optimized out")
        value.fetch_lazy()
        return Value(value)


def source_of(place: gdb.Symtab_and_line) -> core.Source | None:
    """A place in the source, if it is known."""
    return core.Source(place.symtab.filename, place.line) if place.symtab is not None else None


class Stops:
    """How often inferiors may have changed."""

    def __init__(self) -> None:
        self._all = 0
        self._one: dict[int, int] = {}

    def ran(self, inferior: gdb.Inferior | None) -> None:
        """One has run, or perhaps all."""
        if inferior is None:
            self._all += 1
        else:
            self._one[inferior.num] = self._one.get(inferior.num, 0) + 1

    def number(self, inferior: gdb.Inferior) -> int:
        """A count that rises each time."""
        return self._all + self._one.get(inferior.num, 0)


class Inferior(core.Inferior):
    """One of gdb's inferiors."""

    def __init__(self, inferior: gdb.Inferior, stops: Stops) -> None:
        self.inferior = inferior
        self._stops = stops

    @property
    @errors()
    def number(self) -> int:
        return self.inferior.num

    @property
    @errors()
    def pid(self) -> int:
        return self.inferior.pid

    @property
    @errors()
    def program(self) -> str | None:
        return self.inferior.progspace.filename

    @errors()
    def lib_root(self) -> str:
        # "target:" has gdb ask the server for files.
        root = str(gdb.parameter("sysroot") or "")
        return "" if root.startswith("target:") else root

    @errors()
    def module_count(self) -> int:
        return len(self.inferior.progspace.objfiles())

    @errors()
    def is_core(self) -> bool:
        # Connections are known since gdb 12; before, gdb says by itself what it cannot do.
        connection = getattr(self.inferior, "connection", None)
        return connection is not None and connection.type == "core"

    @errors()
    def stop_number(self) -> int:
        return self._stops.number(self.inferior)

    @errors()
    def threads(self) -> list[Thread]:
        return [Thread(thread) for thread in self.inferior.threads()]

    def read(self, address: int, size: int) -> memoryview | None:
        try:
            return self.inferior.read_memory(address, size)
        except (RuntimeError, OverflowError):
            return None

    def symbol(self, name: str) -> int | None:
        try:
            # In quotes no macro of the program's is expanded, which might call a function of it.
            with language_c():
                return int(gdb.parse_and_eval(f"(unsigned long)&'{name}'"))
        except RuntimeError:
            return None

    @errors()
    def type_sizes(self) -> core.TypeSizes:
        with language_c():
            char, short, number, long, long_long = (gdb.lookup_type(name).sizeof for name in C_TYPES)
            return core.TypeSizes(char, short, number, long, long_long, gdb.lookup_type("void").pointer().sizeof)

    @errors()
    def is_big_endian(self) -> bool:
        return "big endian" in gdb.execute("show endian", to_string=True)

    @errors()
    def registers(self, threads: Sequence[core.Thread], names: Mapping[str, Sequence[str]]) -> list[core.Registers | None]:
        # To go back to the selected thread each time would be dear.
        with kept_selection():
            return [self._registers(native(thread), names) for thread in threads]

    @staticmethod
    def _registers(thread: gdb.InferiorThread, names: Mapping[str, Sequence[str]]) -> core.Registers | None:
        try:
            select(thread)
            frame = gdb.newest_frame()
            machine = "x86-64" if frame.architecture().name().startswith("i386:x86-64") else "aarch64"
        except (RuntimeError, ValueError):
            return None
        wanted, read = names[machine], frame.read_register
        try:
            return core.Registers(machine, [int(read(name)) for name in wanted])
        except (RuntimeError, ValueError):
            # Not all of them are there.
            return core.Registers(machine, [register(frame, name) for name in wanted])


def register(frame: gdb.Frame, name: str) -> int | None:
    """A register of a frame."""
    try:
        return int(frame.read_register(name))
    except (gdb.error, ValueError):
        return None


def native(thread: core.Thread) -> gdb.InferiorThread:
    """gdb's own object."""
    assert isinstance(thread, Thread)
    return thread.thread


class Debugger(core.Debugger):
    """This gdb."""

    name = "gdb"
    version = gdb.VERSION
    # The file itself may be a link.
    folder = Path(__file__).resolve().parent
    how_to_begin = "`run` the program, `attach` to one, or open a core file"
    how_to_stop = "interrupt -a"
    how_to_choose_library = "set openmp library PATH"
    examples = core.Examples(frames="bt 3", locals="info locals", level="$_omp_level()", team="$_omp_team()")

    def __init__(self) -> None:
        self.stops = Stops()
        self._is_late = False

    @contextmanager
    def in_event(self) -> Iterator[None]:
        """Has texts reach an editor that uses DAP, of an event that gdb handles meanwhile."""
        self._is_late = output.protocol() == "dap"
        try:
            yield
        finally:
            self._is_late = False

    def inferior(self, inferior: gdb.Inferior) -> Inferior:
        """An inferior for the core."""
        return Inferior(inferior, self.stops)

    # The user.

    @errors()
    def write(self, text: str) -> None:
        if self._is_late:
            output.write_later(text)
        else:
            gdb.write(text)

    @errors()
    def width(self) -> int:
        columns = gdb.parameter("width")
        return int(columns) if isinstance(columns, int) else 0

    @errors()
    def has_colours(self) -> bool:
        return output.has_colours()

    @errors()
    def words(self, text: str) -> list[str]:
        return gdb.string_to_argv(text)

    @errors()
    def execute(self, command: str, from_tty: bool) -> None:
        gdb.execute(command, from_tty)

    # What is selected.

    @errors()
    def selected_inferior(self) -> Inferior:
        return self.inferior(gdb.selected_inferior())

    @errors()
    def selected_thread(self) -> Thread | None:
        thread = gdb.selected_thread()
        return Thread(thread) if thread is not None else None

    @errors()
    def select_thread(self, thread: core.Thread) -> None:
        chosen, before = native(thread), gdb.selected_thread()
        if before is not None and before.ptid == chosen.ptid:
            chosen.switch()
            return
        # The command tells front ends that use MI, which `switch` does not. What it prints at a terminal comes by `show_frame`.
        with output.quiet():
            gdb.execute(f"thread {chosen.inferior.num}.{chosen.num}")
        dap.show_selected()

    @contextmanager
    def selected(self, thread: core.Thread) -> Iterator[None]:
        with errors(), kept_selection():
            select(native(thread))
            yield

    @errors()
    def selected_frame(self) -> Frame:
        return Frame(gdb.selected_frame())

    @errors()
    def newest_frame(self) -> Frame:
        return Frame(gdb.newest_frame())

    @errors()
    def select_frame(self, frame: core.Frame) -> None:
        assert isinstance(frame, Frame)
        frame.frame.select()

    @errors()
    def show_frame(self, from_tty: bool = False) -> None:
        # In an event, gdb 18 prints a frame beside the records of MI.
        self.write(gdb.execute("frame", from_tty, to_string=True))

    @errors()
    def is_true(self, expression: str) -> bool:
        return bool(gdb.parse_and_eval(expression))

    # The program.

    @errors()
    def symbol_at(self, address: int) -> str | None:
        found = function_at(address)
        if found is not None:
            return str(found[1].linkage_name)
        # Names as they are: a part of a clone's name is no part of a C++ name.
        text = gdb.execute(f"with print demangle off -- info symbol {address:#x}", to_string=True)
        return None if text.startswith("No symbol") else text.split(" in section")[0].strip()

    @errors()
    def function_at(self, address: int) -> core.Function | None:
        found = function_at(address)
        if found is None:
            return None
        block, symbol = found
        return core.Function(block.start, block.end, symbol.symtab.filename, symbol.line)

    @errors()
    def source_at(self, address: int) -> core.Source | None:
        return source_of(gdb.find_pc_line(address))

    @errors()
    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        # A file has one table for each unit it is part of: `start` leads to the table of this code.
        found = function_at(start)
        tables = [gdb.find_pc_line(start).symtab, found[1].symtab if found is not None else None]
        table = next((table for table in tables if table is not None and table.filename == file), None)
        return [(entry.pc, entry.line) for entry in table.linetable() if start <= entry.pc < end] if table is not None else []

    @errors()
    def addresses_of(self, line: core.Source) -> list[int]:
        try:
            _, places = gdb.decode_line(f"'{line.file}':{line.line}")
        except gdb.error:
            return []
        # Other inferiors have programs of their own.
        here = gdb.selected_inferior().progspace
        found = [place for place in places or () if place.pc and place.line == line.line and place.symtab is not None]
        return sorted({place.pc for place in found if place.symtab.objfile.progspace == here})

    @errors()
    def module_at(self, address: int) -> str | None:
        return gdb.solib_name(address)

    @errors()
    def call_targets(self, start: int, end: int) -> list[int | None]:
        return targets_of(text for _, text in disassembled(start, end))

    @errors()
    def straight_to(self, start: int, end: int) -> int:
        return next((address for address, text in disassembled(start, end) if is_jump(text)), end)

    # What runs.

    @errors()
    def break_at(self, address: int, reached: Callable[[], bool]) -> Breakpoint:
        return Breakpoint(address, reached)

    @errors()
    def go_on(self) -> bool:
        return running.go_on()

    @contextmanager
    def holding(self, threads: Sequence[core.Thread]) -> Iterator[None]:
        if not threads:
            yield
            return
        with errors():
            selected = gdb.selected_thread()
            others = {thread.ptid for thread in gdb.selected_inferior().threads()} - {selected.ptid if selected is not None else None}
            held = {native(thread).ptid for thread in threads}
        if held != others:
            raise DebuggerError(
                "gdb cannot hold these threads: it lets one thread continue, or all. In non-stop mode, continue the team by "
                '`eval "thread apply %s -q continue &", $_omp_team(TEAM)`.'
            )
        with errors(), running.only_selected():
            yield

    @errors()
    def run_for(self, inferior: core.Inferior, seconds: float) -> core.Stopped:
        assert isinstance(inferior, Inferior)
        return running.run_for(inferior.inferior, seconds)


def disassembled(start: int, end: int) -> list[tuple[int, str]]:
    """The instructions from `start` to before `end`, with their addresses."""
    if end <= start:
        return []
    return [(line["addr"], line["asm"]) for line in gdb.selected_frame().architecture().disassemble(start, end - 1)]


def is_jump(instruction: str) -> bool:
    """True for a call, a jump and a return, of x86-64 and of aarch64."""
    word = instruction.split(maxsplit=1)[0]
    return word.startswith(("call", "j", "ret", "loop", "b.", "cb", "tb")) or word in ("b", "bl", "blr", "br")


def targets_of(instructions: Iterable[str]) -> list[int | None]:
    """The targets of the calls among instructions; `None` for an indirect call."""
    found: list[int | None] = []
    for instruction in instructions:
        # Behind the mnemonic comes a blank or a tab.
        words = instruction.split()
        if len(words) > 1 and words[0] in ("call", "callq", "bl", "blr"):
            found.append(int(words[1], 16) if words[1].startswith("0x") else None)
    return found


def function_at(address: int) -> tuple[gdb.Block, gdb.Symbol] | None:
    """The function at an address, as debug information has it."""
    block = gdb.block_for_pc(address)
    while block is not None:
        if block.function is not None:
            return block, block.function
        block = block.superblock
    return None
