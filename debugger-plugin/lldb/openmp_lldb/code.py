"""What LLDB knows of code: functions, lines, instructions."""

from __future__ import annotations

from typing import Any

import lldb

from openmp_core import debugger as core

from .breakpoints import hide
from .inferior import file_of, real_name

#: Calls of x86-64 and of aarch64.
CALLS = ("call", "callq", "bl", "blr")


class Code:
    """The code of a target."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def at(self, address: int) -> Any:
        """LLDB's address."""
        return self._target.ResolveLoadAddress(address)

    def symbol_at(self, address: int) -> str | None:
        """The function at an address, by its linker name."""
        symbol = self.at(address).GetSymbol()
        return real_name(symbol.GetMangledName() or symbol.GetName()) if symbol.IsValid() else None

    def function_at(self, address: int) -> core.Function | None:
        """The function at an address, from debug information."""
        function = self.at(address).GetFunction()
        if not function.IsValid():
            return None
        begin = function.GetStartAddress()
        entry = begin.GetLineEntry()
        start, end = (int(place.GetLoadAddress(self._target)) for place in (begin, function.GetEndAddress()))
        return core.Function(start, end, file_of(entry.GetFileSpec()) or "", int(entry.GetLine()))

    def line_entries(self, start: int, end: int, file: str) -> list[tuple[int, int]]:
        """The line table of a file from `start` to before `end`."""
        unit = self.at(start).GetCompileUnit()
        found = []
        for entry in unit if unit.IsValid() else ():
            address = int(entry.GetStartAddress().GetLoadAddress(self._target))
            if start <= address < end and file_of(entry.GetFileSpec()) == file:
                found.append((address, int(entry.GetLine())))
        return found

    def addresses_of(self, line: core.Source) -> list[int]:
        """Where the code of a line begins, at each place where it is loaded."""
        # LLDB says so only of breakpoints.
        breakpoint = self._target.BreakpointCreateByLocation(line.file, line.line)
        hide(self._target, breakpoint)
        try:
            # LLDB takes a line behind it if a line has no code.
            found = [location.GetAddress() for location in breakpoint if location.IsResolved()]
            return sorted({int(at.GetLoadAddress(self._target)) for at in found if at.GetLineEntry().GetLine() == line.line})
        finally:
            self._target.BreakpointDelete(breakpoint.GetID())

    def module_at(self, address: int) -> str | None:
        """The library at an address; `None` in the program itself and outside of all files."""
        spec = self.at(address).GetModule().GetFileSpec()
        if not spec.IsValid() or file_of(spec) == file_of(self._target.GetExecutable()):
            return None
        return file_of(spec)

    def _instructions(self, start: int, end: int) -> list[Any]:
        error = lldb.SBError()
        code = self._target.GetProcess().ReadMemory(start, end - start, error) if end > start else None
        if not code or error.Fail():
            return []
        # Of an address in a section, LLDB would say where calls lead in the file.
        begin = lldb.SBAddress()
        begin.SetAddress(lldb.SBSection(), start)
        return list(self._target.GetInstructions(begin, code))

    def call_targets(self, start: int, end: int) -> list[int | None]:
        """Where the calls in a piece of code lead; `None` for an indirect call."""
        found: list[int | None] = []
        for instruction in self._instructions(start, end):
            if instruction.GetMnemonic(self._target) in CALLS:
                operand = (instruction.GetOperands(self._target) or "").split()[:1]
                found.append(int(operand[0], 16) if operand and operand[0].startswith("0x") else None)
        return found

    def straight_to(self, start: int, end: int) -> int:
        """The first call, jump or return in a piece of code; `end` without one."""
        for instruction in self._instructions(start, end):
            mnemonic = instruction.GetMnemonic(self._target)
            if instruction.DoesBranch() or mnemonic in CALLS or mnemonic.startswith("ret"):
                return int(instruction.GetAddress().GetOffset())
        return end
