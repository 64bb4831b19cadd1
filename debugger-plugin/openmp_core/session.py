"""The inferiors of the debugger, and the library that reads them."""

from __future__ import annotations

from .callbacks import Callbacks
from .debugger import Debugger, Inferior, Thread
from .errors import NotNow
from .failures import Failures
from .inferior import InferiorState
from .library import Library
from .process import Process

#: The one prefix of all commands.
PREFIX = "openmp"


class LibraryChoice:
    """The setting `library`: the path of libompd.so, empty for the one beside the plugin."""

    def __init__(self) -> None:
        self.path = ""
        #: Where the library was loaded from.
        self.loaded: str | None = None

    def refusal(self, debugger: str) -> str:
        """Why the path has no effect any more; empty if it has."""
        if self.loaded is not None and self.path != self.loaded:
            return f"{self.loaded} is loaded already, and stays so: another one is for a new {debugger}."
        return ""

    def shown(self, value: str) -> str:
        """The setting in a sentence."""
        return f"libompd.so is taken from {self.loaded or value or 'beside the plugin'}."


class Session:
    """All inferiors of this debugger."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.choice = LibraryChoice()
        self.failures = Failures()
        self._library: Library | None = None
        self._processes: dict[int, Process] = {}
        self._states: dict[int, InferiorState] = {}

    def library(self) -> Library:
        """The library, loaded at the first need."""
        if self._library is None:
            debugger = self.debugger
            callbacks = Callbacks(self._states.get, self._all_ran, debugger.name)
            self._library = Library.load(self.choice.path or None, debugger.folder, debugger.how_to_choose_library, callbacks)
            self.choice.loaded = str(self._library.path)
        return self._library

    def process(self, inferior: Inferior | None = None) -> Process:
        """What is known of an inferior; without one, of the selected."""
        inferior = inferior or self.debugger.selected_inferior()
        number = inferior.number
        if number not in self._processes:
            state = self._states[number] = InferiorState(inferior)
            self._processes[number] = Process(self.library(), self.debugger, state)
        return self._processes[number]

    def selected_thread(self) -> Thread:
        """The thread that is selected."""
        thread = self.debugger.selected_thread()
        if thread is None:
            raise NotNow(f"No thread is selected: {self.debugger.how_to_begin}.")
        return thread

    def known(self, inferior: Inferior) -> Process | None:
        """What is known of an inferior, if it was asked about."""
        return self._processes.get(inferior.number)

    def replaced(self, inferior: Inferior) -> None:
        """The process has ended, or another program takes its place."""
        process = self.known(inferior)
        if process is not None:
            process.close()

    def modules_changed(self, inferior: Inferior) -> None:
        """Files were loaded or unloaded."""
        process = self.known(inferior)
        if process is not None:
            process.modules_changed()

    def removed(self, inferior: Inferior) -> None:
        """The debugger has it no more."""
        self.replaced(inferior)
        self._processes.pop(inferior.number, None)
        self._states.pop(inferior.number, None)

    def _all_ran(self) -> None:
        for state in self._states.values():
            state.ran()
