"""What LLDB tells the plugin of: stops, files that are loaded, processes that end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lldb

from openmp_core import Plugin

from .breakpoints import Breakpoint, breakpoints_of, has_other_reason, hide, hit_now, stop_of
from .inferior import Inferior

if TYPE_CHECKING:
    from .debugger import Debugger

#: What LLDB calls at each stop.
HOOK = f"{__package__}.hooks.StopHook"
#: A thread with such a reason has not stopped the process.
NO_REASONS = (lldb.eStopReasonNone, lldb.eStopReasonInvalid)
#: The function of the dynamic linker's that is called when files were loaded, for debuggers.
RENDEZVOUS = "_dl_debug_state"


class Events:
    """Follows what LLDB does with its targets."""

    def __init__(self, debugger: Debugger, plugin: Plugin) -> None:
        self._debugger = debugger
        self._plugin = plugin
        #: By target: its process, and how many files it had.
        self._processes: dict[int, int] = {}
        self._files: dict[int, int] = {}
        self._watched: dict[int, list[Any]] = {}
        #: Targets that call at stops, unless all do.
        self._hooked: set[int] = set()
        self._is_inherited = False
        #: The process and the stop that was looked at last. LLDB calls once for each thread.
        self._seen: tuple[int, int] | None = None
        #: The process is to stay at that stop.
        self._stays = True

    def begin(self) -> None:
        """Has LLDB call at each stop: in the targets that are there, or in all that come."""
        count = self._debugger.lldb.GetNumTargets()
        if count:
            for number in range(count):
                self._hook(self._debugger.lldb.GetTargetAtIndex(number))
            return
        # Without a target it is for those to come.
        self._is_inherited = self._add_hook()

    def _hook(self, target: Any) -> None:
        number = self._debugger.targets.number(target)
        if self._is_inherited or number in self._hooked:
            return
        before = self._debugger.lldb.GetSelectedTarget()
        self._debugger.lldb.SetSelectedTarget(target)
        if self._add_hook():
            self._hooked.add(number)
        self._debugger.lldb.SetSelectedTarget(before)

    def _add_hook(self) -> bool:
        result = lldb.SBCommandReturnObject()
        command = f"target stop-hook add -P {HOOK}"
        self._debugger.lldb.GetCommandInterpreter().HandleCommand(command, result)
        return bool(result.Succeeded())

    def look(self) -> None:
        """Reports what has changed since the last call: processes that are new or gone, and targets that are."""
        for inferior in self._debugger.targets.removed():
            self._plugin.removed(inferior)
        target = self._debugger.selections.target()
        if not target.IsValid():
            return
        self._hook(target)
        inferior = self._debugger.targets.inferior(target)
        now = int(inferior.process.GetUniqueID()) if inferior.pid else 0
        before = self._processes.get(inferior.number, now)
        self._processes[inferior.number] = now
        if before != now:
            # What is loaded is not what was.
            self._files[inferior.number] = 0
            self._plugin.replaced(inferior)

    def watch(self) -> None:
        """Has LLDB stop when files were loaded, if there are stops that wait for that."""
        target = self._debugger.selections.target()
        number = self._debugger.targets.number(target)
        if not self._plugin.stops.all or number in self._watched or not target.IsValid():
            return
        # The dynamic linker has loaded all that the program needs before that begins.
        program = target.GetExecutable().GetFilename()
        self._watched[number] = [target.BreakpointCreateByName(RENDEZVOUS)]
        if program:
            self._watched[number].append(target.BreakpointCreateByName("main", program))
        for breakpoint in self._watched[number]:
            hide(target, breakpoint)
        inferior = self._debugger.targets.inferior(target)
        self._files[number] = inferior.module_count()
        self._place(inferior)

    def _place(self, inferior: Inferior) -> None:
        """LLDB 14 does not place a breakpoint in the dynamic linker by name, but it does by address."""
        all_breakpoints = self._watched.get(inferior.number, [])
        if not all_breakpoints or not inferior.pid or inferior.is_core() or all_breakpoints[0].GetNumResolvedLocations():
            return
        address = inferior.symbol(RENDEZVOUS)
        if address is not None:
            inferior.target.BreakpointDelete(all_breakpoints[0].GetID())
            all_breakpoints[0] = inferior.target.BreakpointCreateByAddress(address)
            hide(inferior.target, all_breakpoints[0])

    def _look_for_files(self, inferior: Inferior, are_loaded: bool) -> None:
        # The list of files may still have those of the last run.
        count = inferior.module_count()
        before = self._files.get(inferior.number, count)
        self._files[inferior.number] = count
        if are_loaded or before != count:
            self._plugin.files_loaded(inferior)

    def _is_for_files(self, process: Any, number: int) -> bool:
        """True if only the dynamic linker has stopped a process."""
        own = {breakpoint.GetID() for breakpoint in self._watched.get(number, [])}
        reasons = [thread for thread in process if thread.GetStopReason() not in NO_REASONS]
        return bool(own and reasons) and all(is_at(thread, own) for thread in reasons)

    def stopped(self, context: Any) -> bool:
        """A process has stopped. Returns whether it stays so."""
        process, target = context.GetProcess(), context.GetTarget()
        inferior = self._debugger.targets.inferior(target)
        for_files = self._is_for_files(process, inferior.number)
        now = stop_of(process)
        if now == self._seen:
            # LLDB asks for each thread with a reason.
            return self._stays
        self._seen = now
        continues = False
        if any(thread.GetStopReason() == lldb.eStopReasonExec for thread in process):
            self._plugin.replaced(inferior)
        ours = hit_now(self._debugger, process)
        hits = [(one, process.GetThreadByID(lwp)) for one in ours for lwp in one.hits]
        with self._debugger.selections.held(target, hits[0][1] if hits else context.GetThread()):
            self.look()
            self._place(inferior)
            if not for_files:
                # Threads that get to places at the same time stop together. The last one that is reported is selected.
                for breakpoint, thread in reversed(hits[1:]):
                    self._tell_too(breakpoint, target, thread)
                continues = not self._plugin.stopped(ours)
            self._look_for_files(inferior, for_files)
        self._stays = not for_files and (not continues or has_other_reason(process))
        return self._stays

    def _tell_too(self, breakpoint: Breakpoint, target: Any, thread: Any) -> None:
        with self._debugger.selections.held(target, thread):
            self._plugin.stopped_too(breakpoint)


def is_at(thread: Any, own: set[int]) -> bool:
    """True if a thread has stopped at one of these breakpoints and at no other but LLDB's own, whose numbers are negative."""
    if thread.GetStopReason() != lldb.eStopReasonBreakpoint:
        return False
    ids = breakpoints_of(thread)
    return bool(ids) and ids <= own
