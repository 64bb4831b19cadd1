"""A small debugger: it holds a process by ptrace and reads its memory in /proc. For x86-64."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import fake
from openmp_core import debugger as core
from openmp_core.inferior import X86_64

SEIZE, INTERRUPT, GETREGS, DETACH = 0x4206, 0x4207, 12, 17
#: Waits for threads as well.
WALL = 0x4000_0000

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long


def ptrace(request: int, lwp: int, data: int | None = None) -> None:
    """Raises `OSError` if the kernel refuses."""
    if _LIBC.ptrace(request, lwp, None, data) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class StoppedProcess(fake.Inferior):
    """A process of which all threads are held until `release`."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid=pid)
        self.path = os.readlink(f"/proc/{pid}/exe")
        #: False for a debugger that cannot read them.
        self.has_registers = True
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        self._files = self._modules(pid)
        self.modules = len(self._files)
        for number, lwp in enumerate(sorted(int(name) for name in os.listdir(f"/proc/{pid}/task")), 1):
            ptrace(SEIZE, lwp)
            ptrace(INTERRUPT, lwp)
            os.waitpid(lwp, WALL)
            self.all_threads.append(fake.Thread(number, lwp))

    def release(self) -> None:
        """Lets the process run on."""
        os.close(self._memory)
        for thread in self.all_threads:
            ptrace(DETACH, thread.lwp)

    @staticmethod
    def _modules(pid: int) -> dict[str, int]:
        """The files that are mapped, and where they begin."""
        found: dict[str, int] = {}
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            *fields, file = line.split(maxsplit=5)
            if file.startswith("/") and len(fields) == 5:
                found.setdefault(file, int(fields[0].partition("-")[0], 16))
        return found

    def read(self, address: int, size: int) -> bytes | None:
        try:
            found = os.pread(self._memory, size, address)
        except (OSError, OverflowError):
            return None
        return found if len(found) == size else None

    def symbol(self, name: str) -> int | None:
        self.questions.append(f"symbol {name}")
        for file, base in self._files.items():
            done = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=False)
            for line in done.stdout.splitlines():
                words = line.split()
                if len(words) == 3 and words[2].partition("@")[0] == name:
                    return base + int(words[0], 16)
        return None

    def registers(self, threads: Sequence[core.Thread], names: Mapping[str, Sequence[str]]) -> list[core.Registers | None]:
        if not self.has_registers:
            return [None] * len(threads)
        # The kernel writes all of them (`struct user_regs_struct`), the core wants some.
        words = (ctypes.c_uint64 * len(X86_64))()
        found: list[core.Registers | None] = []
        for thread in threads:
            ptrace(GETREGS, thread.lwp, ctypes.addressof(words))
            values = dict(zip(X86_64, words))
            found.append(core.Registers("x86-64", [values[name] for name in names["x86-64"]]))
        return found


def await_rest(pid: int, threads: int, patience: float) -> None:
    """Waits until so many threads sleep at one moment. Raises `TimeoutError` after `patience` seconds."""
    deadline = time.monotonic() + patience
    before = None
    # A thread that sleeps in both looks, and did not go to sleep between them, slept all the time.
    while (now := sleeps(pid, threads)) is None or now != before:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} does not come to rest within {patience} s")
        before = now
        os.sched_yield()


def sleeps(pid: int, threads: int) -> dict[str, str] | None:
    """How often each thread has gone to sleep, by kernel id. `None` unless there are so many and all sleep."""
    found = {}
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(line.split(":", 1) for line in path.read_text().splitlines())
        if fields["State"].split()[0] != "S":
            return None
        found[path.parent.name] = fields["voluntary_ctxt_switches"]
    return found if len(found) == threads else None


def why_not() -> str | None:
    """Why processes cannot be held in this way here."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "this reads registers of x86-64 Linux"
    return None
