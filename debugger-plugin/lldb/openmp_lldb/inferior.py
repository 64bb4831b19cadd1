"""LLDB's targets and threads as inferiors of the core."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import lldb

from openmp_core import debugger as core
from openmp_core.errors import DebuggerError

from .files import Files

#: The line of `platform status` that has the folder with the files of another machine.
SYSROOT = re.compile(r"^ *Sysroot: (.+)$", re.MULTILINE)
#: States of a process that is there.
ALIVE = (lldb.eStateStopped, lldb.eStateRunning, lldb.eStateStepping, lldb.eStateCrashed, lldb.eStateSuspended)
#: The plugins of LLDB that read core files.
CORES = ("elf-core", "minidump", "mach-o-core")
#: A process may stop so often before its number could become that of the next one.
STOPS = 1 << 32
#: Symbols that are no address in memory.
NOWHERE = (lldb.eSymbolTypeInvalid, lldb.eSymbolTypeUndefined, lldb.eSymbolTypeTrampoline, lldb.eSymbolTypeSourceFile)
#: Sections of which each thread has its own copy.
THREAD_LOCAL = (".tbss", ".tdata")


def is_alive(process: Any) -> bool:
    """True if a process is there. One without threads is killed, which LLDB has not noticed yet."""
    return bool(process.IsValid() and process.GetState() in ALIVE and process.GetNumThreads())


def real_name(name: str | None) -> str | None:
    """A function's name; `None` for the name that LLDB makes for one without."""
    return None if not name or name.startswith("___lldb_unnamed_symbol") else name


def file_of(spec: Any) -> str | None:
    """The path of a file, if it has one."""
    return str(spec.fullpath) if spec.IsValid() and spec.fullpath else None


class Thread(core.Thread):
    """A thread of a process."""

    def __init__(self, thread: Any, targets: Targets) -> None:
        self.thread = thread
        self._targets = targets

    @property
    def lwp(self) -> int:
        return int(self.thread.GetThreadID())

    @property
    def id(self) -> str:
        number = self.thread.GetIndexID()
        target = self.thread.GetProcess().GetTarget()
        return f"{self._targets.number(target)}.{number}" if self._targets.are_several() else str(number)

    def pthread(self) -> int | None:
        return None

    def is_running(self) -> bool:
        return bool(self.thread.GetProcess().GetState() in (lldb.eStateRunning, lldb.eStateStepping))

    def give_name(self, name: str) -> bool:
        return False

    def take_name(self) -> None:
        pass


def native(thread: core.Thread) -> Any:
    """LLDB's own object."""
    assert isinstance(thread, Thread)
    if not thread.thread.IsValid():
        raise DebuggerError("The thread is gone.")
    return thread.thread


class Inferior(core.Inferior):
    """One of LLDB's targets."""

    def __init__(self, target: Any, targets: Targets) -> None:
        self.target = target
        self._targets = targets
        self._files = Files(target)

    @property
    def process(self) -> Any:
        """LLDB's process; it is not valid if there is none."""
        return self.target.GetProcess()

    @property
    def number(self) -> int:
        return self._targets.number(self.target)

    @property
    def pid(self) -> int:
        process = self.process
        # A core may not say which process it is of.
        return (int(process.GetProcessID()) or 1) if is_alive(process) else 0

    @property
    def program(self) -> str | None:
        return file_of(self.target.GetExecutable())

    def lib_root(self) -> str:
        # What `platform select --sysroot` has named. No function of LLDB returns it.
        result = lldb.SBCommandReturnObject()
        interpreter = self.target.GetDebugger().GetCommandInterpreter()
        interpreter.HandleCommand("platform status", lldb.SBExecutionContext(self.target), result)
        found = SYSROOT.search(result.GetOutput() or "")
        return found[1] if found else ""

    def module_count(self) -> int:
        return int(self.target.GetNumModules())

    def is_core(self) -> bool:
        return self.process.GetPluginName() in CORES

    def stop_number(self) -> int:
        process = self.process
        return self._targets.changes + int(process.GetUniqueID()) * STOPS + int(process.GetStopID())

    def threads(self) -> list[Thread]:
        return [Thread(thread, self._targets) for thread in self.process] if self.pid else []

    def read(self, address: int, size: int) -> bytes | None:
        if not size:
            return b""
        error = lldb.SBError()
        found = self.process.ReadMemory(address, size, error)
        if error.Success() and found is not None and len(found) == size:
            return bytes(found)
        # A core leaves out what is in files.
        return self._files.read(address, size) if self.is_core() else None

    def symbol(self, name: str) -> int | None:
        for context in self.target.FindSymbols(name):
            symbol = context.GetSymbol()
            address = symbol.GetStartAddress()
            if symbol.GetType() in NOWHERE or address.GetSection().GetName() in THREAD_LOCAL:
                continue
            found = address.GetLoadAddress(self.target)
            if found != lldb.LLDB_INVALID_ADDRESS:
                return int(found)
        return None

    def type_sizes(self) -> core.TypeSizes:
        kinds = (lldb.eBasicTypeChar, lldb.eBasicTypeShort, lldb.eBasicTypeInt, lldb.eBasicTypeLong, lldb.eBasicTypeLongLong)
        sizes = [int(self.target.GetBasicType(kind).GetByteSize()) for kind in kinds]
        if not all(sizes):
            raise DebuggerError("LLDB does not know the sizes of C's types.")
        char, short, number, long, long_long = sizes
        return core.TypeSizes(char, short, number, long, long_long, int(self.target.GetAddressByteSize()))

    def is_big_endian(self) -> bool:
        return bool(self.target.GetByteOrder() == lldb.eByteOrderBig)

    def registers(self, threads: Sequence[core.Thread], names: Mapping[str, Sequence[str]]) -> list[core.Registers | None]:
        triple = self.target.GetTriple() or ""
        machine = next((own for own, begin in (("x86-64", "x86_64"), ("aarch64", "aarch64")) if triple.startswith(begin)), None)
        if machine is None:
            return [None for _ in threads]
        return [self._registers(native(thread), machine, names[machine]) for thread in threads]

    @staticmethod
    def _registers(thread: Any, machine: str, names: Sequence[str]) -> core.Registers | None:
        frame = thread.GetFrameAtIndex(0)
        if not frame.IsValid():
            return None
        values: list[int | None] = []
        for name in names:
            error = lldb.SBError()
            register = frame.FindRegister(name)
            value = register.GetValueAsUnsigned(error, 0) if register.IsValid() else 0
            values.append(int(value) if register.IsValid() and error.Success() else None)
        return core.Registers(machine, values)


class Targets:
    """LLDB's targets, each with a number that it keeps."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger
        self._inferiors: dict[int, Inferior] = {}
        self._next = 0
        #: Rises when a user may have changed something. LLDB does not tell.
        self.changes = 0

    def inferior(self, target: Any) -> Inferior:
        """A target for the core. One that is not valid has no process."""
        return self._inferiors.get(self.number(target)) or Inferior(target, self)

    def number(self, target: Any) -> int:
        """The number of a target; 0 without one."""
        if not target.IsValid():
            return 0
        for number, inferior in self._inferiors.items():
            if inferior.target == target:
                return number
        self._next += 1
        self._inferiors[self._next] = Inferior(target, self)
        return self._next

    def are_several(self) -> bool:
        """True if the debugger has several targets."""
        return bool(self._debugger.GetNumTargets() > 1)

    def removed(self) -> list[Inferior]:
        """The targets that are deleted since the last call."""
        gone = {number: inferior for number, inferior in self._inferiors.items() if not inferior.target.IsValid()}
        for number in gone:
            del self._inferiors[number]
        return list(gone.values())
