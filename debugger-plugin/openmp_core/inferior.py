"""An inferior as the library sees it: the debugger's answers, in the library's form, kept for one stop."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .debugger import Inferior, Registers, Thread

# The names are part of the interface: `Inferior.registers` is asked for them, whatever the debugger calls them.

#: The registers that are wanted of x86-64, named and ordered as in `struct user_regs_struct` of <sys/user.h>.
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
#: Nothing that the library reports depends on these, and debuggers take their time for each.
UNUSED = frozenset(("cs", "eflags", "ss", "gs_base", "ds", "es", "fs", "gs"))
#: Those of aarch64: `struct user_pt_regs` (`cpsr` is its `pstate`), and `tpidr`, which is TPIDR_EL0.
AARCH64 = [*(f"x{n}" for n in range(31)), "sp", "pc", "cpsr", "tpidr"]
ORDERS = {"x86-64": X86_64, "aarch64": AARCH64}
#: What debuggers are asked for.
REGISTERS = {machine: [name for name in order if name not in UNUSED] for machine, order in ORDERS.items()}
#: They say nothing about where a thread is: a debugger without them is good enough.
OPTIONAL = frozenset(("cpsr", "orig_rax", "tpidr"))
#: The library finds them by itself, if it is told that they are absent.
FOUND = frozenset(("fs_base",))
#: What stands for a register that is absent: in `orig_rax`, that the thread is in no system call.
ABSENT = {"orig_rax": -1}

#: Debuggers look for symbols by expressions: nothing but a name may be part of one.
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_MASK = (1 << 64) - 1


class Packed(NamedTuple):
    """Registers of a thread as words of the process."""

    words: bytes
    #: Bit N is set if the debugger has word N.
    there: int
    #: Every word is there without which a library cannot do that is not told what is absent.
    is_whole: bool


class InferiorState:
    """The debugger's answers about one inferior at this stop, and how often the library has asked."""

    def __init__(self, inferior: Inferior) -> None:
        self.inferior = inferior
        #: How often the library has asked for anything, by callback.
        self.asked: dict[str, int] = {}
        self._ran = 1
        self._threads: dict[int, Thread] = {}
        self._threads_at = 0
        self._registers: dict[int, Packed] = {}
        self._registers_at = 0
        self._symbols: dict[str, int | None] = {}
        self._swapped: bool | None = None

    @property
    def stop(self) -> int:
        """Another number each time anything may have changed."""
        return self._ran + self.inferior.stop_number()

    def ran(self) -> None:
        """Whatever was read may be different now, although the debugger has told of no stop."""
        self._ran += 1

    def new_modules(self) -> None:
        """Symbols may have come or gone."""
        self._symbols.clear()

    def is_swapped(self) -> bool:
        """True if numbers in the process have their bytes in the other order than here."""
        if self._swapped is None:
            self._swapped = self.inferior.is_big_endian()
        return self._swapped

    def thread(self, lwp: int) -> Thread | None:
        """The thread with this kernel thread id."""
        if self._threads_at != self.stop:
            self._threads = {thread.lwp: thread for thread in self.inferior.threads()}
            self._threads_at = self.stop
        return self._threads.get(lwp)

    def thread_by_pthread(self, pthread: int) -> Thread | None:
        """The thread with this `pthread_t`, as far as the debugger knows those."""
        return next((thread for thread in self.inferior.threads() if thread.pthread() == pthread), None)

    def symbol(self, name: str) -> int | None:
        """Where a symbol lies."""
        if not SYMBOL.match(name):
            return None
        if name not in self._symbols:
            self._symbols[name] = self.inferior.symbol(name)
        return self._symbols[name]

    def read(self, address: int, size: int) -> bytes | memoryview | None:
        """Memory of the process."""
        return self.inferior.read(address, size)

    def registers(self, lwps: Sequence[int]) -> list[bytes | None]:
        """The registers of threads as the kernel keeps them, for a library that is not told which are absent."""
        return [found.words if found is not None and found.is_whole else None for found in self.packed(lwps)]

    def packed(self, lwps: Sequence[int]) -> list[Packed | None]:
        """The registers of threads as the kernel keeps them. Many at once cost a debugger less."""
        if self._registers_at != self.stop:
            self._registers.clear()
            self._registers_at = self.stop
        wanted = [lwp for lwp in lwps if lwp not in self._registers]
        threads = [thread for thread in map(self.thread, wanted) if thread is not None]
        answers = self.inferior.registers(threads, REGISTERS) if threads else []
        for thread, answer in zip(threads, answers):
            packed = self._packed(answer) if answer is not None else None
            if packed is not None:
                self._registers[thread.lwp] = packed
        return [self._registers.get(lwp) for lwp in lwps]

    def _packed(self, registers: Registers) -> Packed | None:
        """Registers as words of the process; `None` if one is missing that matters."""
        values = dict(zip(REGISTERS[registers.machine], registers.values))
        absent = {name for name, value in values.items() if value is None}
        if not absent <= OPTIONAL | FOUND:
            return None
        order = ORDERS[registers.machine]
        words, there = [], 0
        for number, name in enumerate(order):
            value = values.get(name)
            words.append((ABSENT.get(name, 0) if value is None else value) & _MASK)
            there |= (value is not None) << number
        packed = struct.pack(f"{'>' if self.is_swapped() else '<'}{len(words)}Q", *words)
        return Packed(packed, there, is_whole=absent <= OPTIONAL)

    # The answers to questions about many things at once (docs/libompd.md).

    def lwps(self, size: int) -> bytes:
        """How many threads there are, and as many of their kernel ids as go into so many bytes."""
        lwps = [thread.lwp for thread in self.inferior.threads()]
        shown = lwps[: size // 8 - 1]
        return struct.pack(f"={1 + len(shown)}Q", len(lwps), *shown).ljust(size, b"\0")

    def pieces(self, question: bytes, size: int) -> bytes:
        """Pieces of memory, asked for by address and length: for each 1 or 0, and room for its bytes."""
        found = bytearray()
        for address, length in struct.iter_unpack("=2Q", question):
            part = self.read(address, length)
            found += struct.pack("=Q", part is not None)
            found += bytes(length) if part is None else part
        return bytes(found).ljust(size, b"\0")

    def all_registers(self, question: bytes, size: int) -> bytes | None:
        """Registers of threads, asked for by kernel id: for each 1 or 0, and the registers after a 1."""
        lwps = [lwp for (lwp,) in struct.iter_unpack("=Q", question)]
        if not lwps:
            return None
        room = size // len(lwps) - 8
        sets = self.registers(lwps)
        return b"".join(struct.pack("=Q", found is not None) + (found or b"").ljust(room, b"\0")[:room] for found in sets)

    def partial_registers(self, question: bytes, size: int) -> bytes | None:
        """As `all_registers`, but the number of each thread says which of its words are there: bit N is for word N."""
        lwps = [lwp for (lwp,) in struct.iter_unpack("=Q", question)]
        if not lwps:
            return None
        room = size // len(lwps) - 8
        sets = [found or Packed(b"", 0, is_whole=False) for found in self.packed(lwps)]
        return b"".join(struct.pack("=Q", found.there) + found.words.ljust(room, b"\0")[:room] for found in sets)
