"""What is selected in LLDB, for a command or for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import lldb

from openmp_core.errors import DebuggerError


class Selection(NamedTuple):
    """A thread that stands for the selected one, with its target."""

    target: Any
    thread: Any


class Selections:
    """What LLDB has selected, unless another thread stands for that for a while.

    So nothing has to be selected in LLDB, of which front ends would be told."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger
        self._held: list[Selection] = []

    @contextmanager
    def held(self, target: Any, thread: Any) -> Iterator[None]:
        """Has this thread stand for the selected one."""
        self._held.append(Selection(target, thread))
        try:
            yield
        finally:
            self._held.pop()

    @contextmanager
    def of(self, context: Any) -> Iterator[None]:
        """Has the thread stand for the selected one that LLDB runs a command for, if it is another."""
        target, thread = context.GetTarget(), context.GetThread()
        if not target.IsValid() or not thread.IsValid() or same_thread(thread, self.thread()):
            yield
            return
        with self.held(target, thread):
            yield

    def target(self) -> Any:
        """The selected target. Without any it is not valid."""
        return self._held[-1].target if self._held else self._debugger.GetSelectedTarget()

    def thread(self) -> Any:
        """The selected thread. Without any it is not valid."""
        if self._held:
            return self._held[-1].thread
        process = self._debugger.GetSelectedTarget().GetProcess()
        thread = process.GetSelectedThread()
        # Just attached, LLDB 14 has none selected.
        return thread if thread.IsValid() else process.GetThreadAtIndex(0)

    def frame(self) -> Any:
        """The selected frame. Raises `DebuggerError` if there is none."""
        frame = self.thread().GetSelectedFrame()
        if not frame.IsValid():
            raise DebuggerError("There is no frame.")
        return frame

    def context(self) -> Any:
        """The same for a command of LLDB's."""
        frame = self.thread().GetSelectedFrame()
        if frame.IsValid():
            return lldb.SBExecutionContext(frame)
        return lldb.SBExecutionContext(self.target())

    def select(self, thread: Any, frame: int) -> None:
        """Selects a thread and one of its frames in LLDB, and here from now on."""
        thread.GetProcess().SetSelectedThread(thread)
        thread.SetSelectedFrame(frame)
        if self._held:
            self._held[-1] = Selection(self._held[-1].target, thread)


def same_thread(one: Any, other: Any) -> bool:
    """True if both are the same thread of the same process."""
    if not one.IsValid() or not other.IsValid() or one.GetThreadID() != other.GetThreadID():
        return False
    return bool(one.GetProcess().GetUniqueID() == other.GetProcess().GetUniqueID())
