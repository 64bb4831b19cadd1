"""gdb as libompd sees it: the callbacks of OMPD, and what goes beyond them (docs/libompd.md), answered by gdb's own interface.

Nothing is written to the process, nothing runs in it, and no text that comes from it is ever given to gdb as a command or an
expression.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

import gdb

from . import ompd

#: The registers that gdb is asked for, in the order of the kernel's `struct user_regs_struct` (x86-64).
X86_64 = [
    "r15",
    "r14",
    "r13",
    "r12",
    "rbp",
    "rbx",
    "r11",
    "r10",
    "r9",
    "r8",
    "rax",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "orig_rax",
    "rip",
    "cs",
    "eflags",
    "rsp",
    "ss",
    "fs_base",
    "gs_base",
    "ds",
    "es",
    "fs",
    "gs",
]
#: `struct user_pt_regs` (aarch64), and what the library wants behind it.
AARCH64 = [*(f"x{n}" for n in range(31)), "sp", "pc", "cpsr", "tpidr"]
#: Registers that say nothing about where a thread is: a gdb that does not have them is not turned down.
OPTIONAL = frozenset(("cs", "eflags", "ss", "gs_base", "ds", "es", "fs", "gs", "cpsr", "orig_rax", "tpidr"))

#: Names of symbols are part of an expression, so that nothing else may be.
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_MASK = (1 << 64) - 1

#: The part of an address that is a count, in the segments that take one.
COUNT = (1 << 32) - 1


@contextmanager
def selected(thread: gdb.InferiorThread) -> Iterator[None]:
    """Selects a thread, and afterwards the thread and frame that were selected before."""
    before = gdb.selected_thread()
    with kept_selection():
        # To switch to it would select its innermost frame.
        if before is None or before.ptid != thread.ptid:
            thread.switch()
        yield


@contextmanager
def kept_selection() -> Iterator[None]:
    """Selects afterwards the thread and frame that were selected before."""
    before = gdb.selected_thread()
    frame: gdb.Frame | None = None
    try:
        if before is not None and before.is_stopped():
            frame = gdb.selected_frame()
    except gdb.error:
        pass  # A thread without registers has no frame.
    try:
        yield
    finally:
        if before is not None and before.is_valid():
            before.switch()
            if frame is not None and frame.is_valid():
                frame.select()


@contextmanager
def switched(thread: gdb.InferiorThread) -> Iterator[None]:
    """Selects a thread, for somebody who sees to what is selected afterwards."""
    thread.switch()
    yield


@contextmanager
def language_c() -> Iterator[None]:
    """Has gdb understand C: expressions and names of types are those of the selected frame's language else."""
    before = gdb.parameter("language")
    if before == "c":
        yield
        return
    gdb.execute("set language c", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set language {before}", to_string=True)


class Debugger:
    """One inferior: its memory, symbols, threads and registers, and how often it has been let run."""

    def __init__(self, inferior: gdb.Inferior) -> None:
        self.inferior = inferior
        #: Another number each time anything may have changed.
        self.stop = 1
        #: How often the library has asked for anything, by callback.
        self.asked: dict[str, int] = {}
        self._threads: dict[int, gdb.InferiorThread] = {}
        self._threads_of = 0
        self._registers: dict[int, bytes] = {}
        self._symbols: dict[str, int | None] = {}
        self._swapped: bool | None = None

    def ran(self) -> None:
        """Whatever was read may be different now."""
        self.stop += 1
        self._registers.clear()

    def new_modules(self) -> None:
        """Symbols may have come or gone."""
        self._symbols.clear()

    def is_swapped(self) -> bool:
        """True if numbers in the process have their bytes in the other order than here."""
        if self._swapped is None:
            big = "big endian" in gdb.execute("show endian", to_string=True)
            self._swapped = big
        return self._swapped

    def thread(self, lwp: int) -> gdb.InferiorThread | None:
        """The thread with this kernel thread id."""
        if self._threads_of != self.stop:
            self._threads = {lwp_of(thread): thread for thread in self.inferior.threads()}
            self._threads_of = self.stop
        return self._threads.get(lwp)

    def thread_by_pthread(self, pthread: int) -> gdb.InferiorThread | None:
        """The thread with this `pthread_t`, as far as gdb knows those."""
        for thread in self.inferior.threads():
            try:
                if int.from_bytes(thread.handle(), "little") == pthread:
                    return thread
            except gdb.error:
                continue
        return None

    def symbol(self, name: str) -> int | None:
        """Where a symbol lies."""
        if not SYMBOL.match(name):
            return None
        if name not in self._symbols:
            try:
                # In quotes no macro of the program's is expanded, which might call a function of it.
                with language_c():
                    self._symbols[name] = int(gdb.parse_and_eval(f"(unsigned long)&'{name}'")) & _MASK
            except (gdb.error, RuntimeError):
                self._symbols[name] = None
        return self._symbols[name]

    def read(self, address: int, size: int) -> memoryview | None:
        """Memory of the process."""
        try:
            return self.inferior.read_memory(address, size)
        except (gdb.error, OverflowError):
            return None

    def lwps(self, size: int) -> bytes:
        """How many threads there are, and as many of their kernel ids as go into so many bytes."""
        lwps = [lwp_of(thread) for thread in self.inferior.threads()]
        shown = lwps[: size // 8 - 1]
        return struct.pack(f"={1 + len(shown)}Q", len(lwps), *shown).ljust(size, b"\0")

    def registers(self, lwp: int, alone: bool = True) -> bytes | None:
        """The registers of a thread as the kernel keeps them. If they are not asked for `alone`, that thread stays selected."""
        if lwp in self._registers:
            return self._registers[lwp]
        thread = self.thread(lwp)
        if thread is None:
            return None
        try:
            with selected(thread) if alone else switched(thread):
                frame = gdb.newest_frame()
                names = X86_64 if frame.architecture().name().startswith("i386:x86-64") else AARCH64
                words = [self._register(frame, name) for name in names]
        except (gdb.error, ValueError):
            return None
        if None in words:
            return None
        order = "big" if self.is_swapped() else "little"
        found = b"".join((word or 0).to_bytes(8, order) for word in words)  # type: ignore[arg-type]
        self._registers[lwp] = found
        return found

    @staticmethod
    def _register(frame: gdb.Frame, name: str) -> int | None:
        try:
            return int(frame.read_register(name)) & _MASK
        except (gdb.error, ValueError):
            return 0 if name in OPTIONAL else None


def lwp_of(thread: gdb.InferiorThread) -> int:
    """The kernel thread id of a thread; some targets have only a number of their own."""
    return thread.ptid[1] or thread.ptid[2] or thread.ptid[0]


def pieces(debugger: Debugger, question: bytes, size: int) -> bytes:
    """Pieces of memory, given by address and length each: for each 1 or 0, and room for its bytes."""
    found = bytearray()
    for address, length in struct.iter_unpack("=2Q", question):
        part = debugger.read(address, length)
        found += struct.pack("=Q", part is not None)
        found += bytes(length) if part is None else part
    return bytes(found).ljust(size, b"\0")


def all_registers(debugger: Debugger, question: bytes, size: int) -> bytes | None:
    """The registers of threads given by their kernel ids: for each 1 or 0, and the registers if it is 1."""
    lwps = [lwp for (lwp,) in struct.iter_unpack("=Q", question)]
    if not lwps:
        return None
    # One after another is dear only if gdb goes back to the selected thread each time.
    with kept_selection():
        sets = [debugger.registers(lwp, alone=False) for lwp in lwps]
    room = size // len(lwps) - 8
    return b"".join(struct.pack("=Q", found is not None) + (found or b"").ljust(room, b"\0")[:room] for found in sets)


def _guarded(function: Callable[..., int]) -> Callable[..., int]:
    """A callback that fails answers that it failed. Left to itself, ctypes would print a traceback and answer that all is well."""

    @functools.wraps(function)
    def guarded(self: Callbacks, *arguments: object) -> int:
        if self.failure is not None and not isinstance(self.failure, Exception):
            # The user has pressed Ctrl-C: the call is to end.
            return ompd.ERROR
        try:
            return function(self, *arguments)
        except BaseException as failure:
            self.failure = failure
            return ompd.ERROR

    return guarded


class Callbacks:
    """The table of callbacks that the library is given. One for all inferiors: each is told by its number."""

    def __init__(self, find: Callable[[int], Debugger | None], forget: Callable[[], None]) -> None:
        self._find = find
        #: Has everything read anew.
        self.forget = forget
        #: Memory that was given to the library, by address.
        self._memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        #: What went wrong in a callback, since it was last looked at.
        self.failure: BaseException | None = None
        #: What the library has said last: why it refused a process.
        self.said = ""
        copy = ompd.DeviceHost(self._device_host)
        read = ompd.ReadMemory(self._read_memory)
        self.table = ompd.Callbacks(
            ompd.AllocMemory(self._alloc),
            ompd.FreeMemory(self._free),
            ompd.PrintString(self._print),
            ompd.SizeofType(self._sizeof),
            ompd.SymbolAddrLookup(self._symbol),
            read,
            ompd.WriteMemory(self._write_memory),
            ompd.ReadMemory(self._read_string),
            copy,
            copy,
            ompd.ThreadContextForId(self._thread_context),
        )

    def take(self, address: int) -> None:
        """Memory that the library has handed out is not needed any more."""
        self._memory.pop(address, None)

    def _asked(self, number: int | None, what: str) -> Debugger | None:
        debugger = self._find(number or 0)
        if debugger is not None:
            debugger.asked[what] = debugger.asked.get(what, 0) + 1
        return debugger

    @_guarded
    def _alloc(self, size: int, out: ctypes._Pointer[ctypes.c_void_p]) -> int:
        try:
            block = ctypes.create_string_buffer(max(size, 1))
        except (MemoryError, OverflowError, ValueError):
            return ompd.NOMEM
        address = ctypes.addressof(block)
        self._memory[address] = block
        out[0] = ctypes.c_void_p(address)
        return ompd.OK

    @_guarded
    def _free(self, address: int | None) -> int:
        self.take(address or 0)
        return ompd.OK

    @_guarded
    def _print(self, text: bytes, _category: int) -> int:
        self.said = text.decode("utf-8", "replace").strip()
        return ompd.OK

    @_guarded
    def _sizeof(self, context: int, out: ctypes._Pointer[ompd.TypeSizes]) -> int:
        if self._asked(context, "sizeof_type") is None:
            return ompd.ERROR
        try:
            names = ("char", "short", "int", "long", "long long")
            with language_c():
                sizes = [gdb.lookup_type(name).sizeof for name in names]
                pointer = gdb.lookup_type("void").pointer().sizeof
        except gdb.error:
            return ompd.ERROR
        out[0] = ompd.TypeSizes(*sizes, pointer)
        return ompd.OK

    @_guarded
    def _symbol(self, context: int, _thread: int | None, name: bytes, out: ctypes._Pointer[ompd.Address], _file: bytes | None) -> int:
        debugger = self._asked(context, "symbol_addr_lookup")
        if debugger is None:
            return ompd.ERROR
        found = debugger.symbol(name.decode("ascii", "replace"))
        if found is None:
            return ompd.UNAVAILABLE
        out[0] = ompd.Address(0, found)
        return ompd.OK

    @_guarded
    def _read_memory(self, context: int, thread: int | None, at: ctypes._Pointer[ompd.Address], size: int, buffer: int) -> int:
        segment, address = at[0].segment, at[0].address
        if segment == ompd.EXTRA_STOP:
            debugger = self._find(context)
            if debugger is None or size != 8:
                return ompd.BAD_INPUT
            found: bytes | memoryview | None = debugger.stop.to_bytes(8, "little")
        elif segment == ompd.EXTRA_REGISTERS:
            debugger = self._asked(context, "registers")
            found = debugger.registers(thread or 0) if debugger else None
        elif segment == ompd.EXTRA_PIECES:
            debugger = self._asked(context, "pieces of memory")
            found = pieces(debugger, ctypes.string_at(buffer, 16 * (address & COUNT)), size) if debugger else None
        elif segment == ompd.EXTRA_THREADS:
            debugger = self._asked(context, "threads")
            found = debugger.lwps(size) if debugger else None
        elif segment == ompd.EXTRA_ALL_REGISTERS:
            debugger = self._asked(context, "registers of all threads")
            found = all_registers(debugger, ctypes.string_at(buffer, 8 * (address & COUNT)), size) if debugger else None
        elif segment:
            return ompd.UNSUPPORTED
        else:
            debugger = self._asked(context, "read_memory")
            found = debugger.read(address, size) if debugger else None
        if found is None or len(found) < size:
            return ompd.ERROR
        ctypes.memmove(buffer, bytes(found), size)
        return ompd.OK

    @_guarded
    def _read_string(self, context: int, _thread: int | None, at: ctypes._Pointer[ompd.Address], size: int, buffer: int) -> int:
        debugger = self._asked(context, "read_string")
        text = bytearray()
        while debugger is not None and len(text) < size and 0 not in text:
            address = at[0].address + len(text)
            part = debugger.read(address, min(size - len(text), 64 - address % 64))
            if part is None:
                return ompd.ERROR
            text += part
        if not text:
            return ompd.ERROR
        ctypes.memmove(buffer, bytes(text), len(text))
        return ompd.OK

    @_guarded
    def _write_memory(self, *_: object) -> int:
        # Nothing is ever written.
        return ompd.UNSUPPORTED

    @_guarded
    def _device_host(self, context: int, source: int, unit: int, count: int, target: int) -> int:
        debugger = self._find(context)
        if debugger is None:
            return ompd.ERROR
        data = ctypes.string_at(source, unit * count)
        if debugger.is_swapped():
            data = b"".join(data[n : n + unit][::-1] for n in range(0, len(data), unit))
        ctypes.memmove(target, data, len(data))
        return ompd.OK

    @_guarded
    def _thread_context(self, context: int, kind: int, size: int, identifier: int, out: ctypes._Pointer[ctypes.c_void_p]) -> int:
        debugger = self._asked(context, "get_thread_context_for_thread_id")
        if debugger is None or size not in (4, 8):
            return ompd.BAD_INPUT
        number = int.from_bytes(ctypes.string_at(identifier, size), "little")
        if kind in (ompd.EXTRA_KIND, ompd.EXTRA_BULK):
            return ompd.OK
        if kind == ompd.LWP:
            thread = debugger.thread(number)
        elif kind == ompd.PTHREAD:
            thread = debugger.thread_by_pthread(number)
        else:
            return ompd.UNSUPPORTED
        if thread is None:
            return ompd.UNAVAILABLE
        # The context of a thread is its kernel thread id.
        out[0] = ctypes.c_void_p(lwp_of(thread))
        return ompd.OK
