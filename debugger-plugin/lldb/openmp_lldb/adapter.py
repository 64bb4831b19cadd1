"""What belongs to one debugger of this LLDB: the plugin, and what it prints to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openmp_core import Plugin

from .debugger import Debugger
from .events import Events

#: By the number of the debugger.
_adapters: dict[int, Adapter] = {}


class Adapter:
    """The plugin in one debugger."""

    def __init__(self, debugger: Any) -> None:
        self.lldb = debugger
        self.debugger = Debugger(debugger)
        self.plugin = Plugin(self.debugger)
        self.debugger.session = self.plugin.session
        self.turn = self.debugger.turn
        self.events = Events(self.debugger, self.plugin)
        #: The targets whose frames LLDB asks about, for editors.
        self.recognizing: set[int] = set()
        #: The targets to whose stacks frames are appended.
        self.appending: set[int] = set()

    @staticmethod
    def make(debugger: Any) -> Adapter:
        """The adapter of a debugger, made at the first call."""
        found = _adapters.get(debugger.GetID())
        if found is None:
            found = _adapters[debugger.GetID()] = Adapter(debugger)
        return found

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Reports in one line what fails, for calls of LLDB's."""
        with self.plugin.session.failures.guarded(self.debugger.write):
            yield


def adapter_of(target: Any) -> Adapter | None:
    """The adapter of the debugger that has a target."""
    return _adapters.get(target.GetDebugger().GetID())
