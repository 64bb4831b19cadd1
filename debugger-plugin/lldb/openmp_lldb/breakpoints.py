"""Breakpoints that LLDB does not list."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable

import lldb

from openmp_core.errors import DebuggerError

if TYPE_CHECKING:
    from .debugger import Debugger

#: The name of all breakpoints of the plugin. LLDB neither lists nor deletes breakpoints of that name.
NAME = "openmp_plugin"

#: By the number of the debugger, of the target and of the breakpoint.
_all: dict[tuple[int, int, int], Breakpoint] = {}


class Breakpoint:
    """A breakpoint in one target. At each hit, `reached` returns whether to stop."""

    def __init__(self, debugger: Debugger, target: Any, address: int, reached: Callable[[], bool]) -> None:
        self.debugger = debugger
        self.target = target
        self.reached = reached
        #: The threads that have stopped the process here, the first of them first, and the stop.
        self.hits: list[int] = []
        self._stop: tuple[int, int] | None = None
        self.breakpoint = target.BreakpointCreateByAddress(address)
        if not self.breakpoint.IsValid():
            raise DebuggerError(f"LLDB makes no breakpoint at {address:#x}.")
        hide(target, self.breakpoint)
        self.breakpoint.SetScriptCallbackFunction(f"{__name__}.on_hit")
        self._key = (debugger.lldb.GetID(), debugger.targets.number(target), self.breakpoint.GetID())
        _all[self._key] = self

    def is_valid(self) -> bool:
        return bool(self.target.IsValid() and self.breakpoint.IsValid())

    def set_enabled(self, enabled: bool) -> None:
        if self.is_valid():
            self.breakpoint.SetEnabled(enabled)

    @staticmethod
    def then(_report: Callable[[], str | None] | None, _continues: bool) -> bool:
        """False: LLDB would execute commands in place of the callback."""
        return False

    def delete(self) -> None:
        _all.pop(self._key, None)
        if self.is_valid():
            self.target.BreakpointDelete(self.breakpoint.GetID())

    def is_hit(self, process: Any) -> bool:
        """True if it has stopped the process at this stop."""
        return bool(self.hits) and self._stop == stop_of(process) and self.target == process.GetTarget()

    def stopped(self, thread: Any, process: Any) -> None:
        """A thread stops the process here."""
        if not self.is_hit(process):
            self.hits = []
            self._stop = stop_of(process)
        self.hits.append(int(thread.GetThreadID()))


def stop_of(process: Any) -> tuple[int, int]:
    """Identifies a stop of a process: another run of the program has other stops."""
    return int(process.GetUniqueID()), int(process.GetStopID())


def hide(target: Any, breakpoint: Any) -> None:
    """Has LLDB not list a breakpoint."""
    name = lldb.SBBreakpointName(target, NAME)
    name.SetAllowList(False)
    name.SetAllowDelete(False)
    name.SetAllowDisable(False)
    breakpoint.AddName(NAME)


def hit_now(debugger: Debugger, process: Any) -> list[Breakpoint]:
    """The breakpoints that have stopped a process at this stop."""
    return [one for one in _all.values() if one.debugger is debugger and one.is_hit(process)]


def breakpoints_of(thread: Any) -> set[int]:
    """The numbers of the breakpoints at which a thread has stopped. LLDB's own, which have negative numbers, are left out."""
    pairs = range(0, thread.GetStopReasonDataCount(), 2)
    return {one for n in pairs if (one := ctypes.c_int32(thread.GetStopReasonDataAtIndex(n)).value) >= 0}


def has_other_reason(process: Any) -> bool:
    """True if a thread has stopped for a reason that users know: a breakpoint of theirs, a signal."""
    target = process.GetTarget()
    for thread in process:
        reason = thread.GetStopReason()
        if reason == lldb.eStopReasonBreakpoint:
            all_breakpoints = [target.FindBreakpointByID(one) for one in breakpoints_of(thread)]
            # A stop may have deleted itself.
            if any(one.IsValid() and not one.MatchesName(NAME) for one in all_breakpoints):
                return True
        elif reason in (lldb.eStopReasonSignal, lldb.eStopReasonException, lldb.eStopReasonWatchpoint):
            return True
    return False


def on_hit(frame: Any, location: Any, _internal: Any) -> bool:
    """What LLDB calls at each hit: whether to stop."""
    thread = frame.GetThread()
    process = thread.GetProcess()
    target = process.GetTarget()
    breakpoint_id, debugger_id = location.GetBreakpoint().GetID(), target.GetDebugger().GetID()
    for (of_debugger, _, number), found in list(_all.items()):
        if (of_debugger, number) == (debugger_id, breakpoint_id) and found.target == target:
            return _reached(found, target, thread, process)
    return False


def _reached(found: Breakpoint, target: Any, thread: Any, process: Any) -> bool:
    debugger = found.debugger
    # To go on would be to miss it.
    stops = True
    with debugger.turn.taken(), debugger.session.failures.guarded(debugger.write), debugger.selections.held(target, thread):
        stops = found.reached()
    if stops:
        found.stopped(thread, process)
    return stops
