"""What the plugin knows of this gdb: its inferiors, the library, the settings."""

from __future__ import annotations

import gdb

from . import ompd
from .debugger import Callbacks, Debugger
from .library import Library, NoLibrary
from .process import NotNow, Process

#: The one prefix of all commands.
PREFIX = "openmp"


class LibrarySetting(gdb.Parameter):
    """Path of libompd.so; empty: the one beside the plugin.

    It takes effect before the first command that needs the library."""

    set_doc = "Set the path of libompd.so; empty: the one beside the plugin."
    show_doc = "Show the path of libompd.so."

    def __init__(self) -> None:
        super().__init__(f"{PREFIX} library", gdb.COMMAND_DATA, gdb.PARAM_OPTIONAL_FILENAME)
        self.value = ""

    #: Where the library was loaded from.
    loaded: str | None = None

    def get_set_string(self) -> str:
        if self.loaded is not None and str(self.value or "") != self.loaded:
            return f"{self.loaded} is loaded already, and stays so: another one is for a new gdb."
        return ""

    def get_show_string(self, value: str) -> str:
        return f"libompd.so is taken from {self.loaded or value or 'beside the plugin'}."


class Session:
    """All inferiors of this gdb."""

    def __init__(self, setting: LibrarySetting) -> None:
        self._setting = setting
        self._library: Library | None = None
        self._processes: dict[int, Process] = {}
        self._debuggers: dict[int, Debugger] = {}

    def library(self) -> Library:
        """The library, loaded at the first need."""
        if self._library is None:
            callbacks = Callbacks(self._debuggers.get, self._all_ran)
            self._library = Library.load(str(self._setting.value or "") or None, callbacks)
            self._setting.loaded = str(self._library.path)
        return self._library

    def process(self, inferior: gdb.Inferior | None = None) -> Process:
        """What is known of an inferior; without one, of the selected."""
        inferior = inferior or gdb.selected_inferior()
        if inferior.num not in self._processes:
            self._debuggers[inferior.num] = Debugger(inferior)
            self._processes[inferior.num] = Process(self.library(), self._debuggers[inferior.num])
        return self._processes[inferior.num]

    def known(self) -> list[Process]:
        """Those that were asked about."""
        return list(self._processes.values())

    def listen(self) -> None:
        """Follows what gdb does with its inferiors."""
        events = gdb.events
        events.cont.connect(lambda event: self._ran(event.inferior_thread))
        for name in ("stop", "inferior_call", "memory_changed", "register_changed"):
            getattr(events, name).connect(lambda _: self._all_ran())
        events.new_objfile.connect(self._new_objfile)
        events.clear_objfiles.connect(lambda event: self._modules(event.progspace))
        events.exited.connect(lambda event: self._gone(event.inferior))
        events.inferior_deleted.connect(lambda event: self._deleted(event.inferior))

    def _ran(self, thread: gdb.InferiorThread | None) -> None:
        if thread is None or not thread.is_valid():
            self._all_ran()
        elif thread.inferior.num in self._debuggers:
            self._debuggers[thread.inferior.num].ran()

    def _all_ran(self) -> None:
        for debugger in self._debuggers.values():
            debugger.ran()

    def _new_objfile(self, event: gdb.NewObjFileEvent) -> None:
        progspace = event.new_objfile.progspace
        if progspace is None:
            return
        # The program itself is loaded anew: that is how `exec` and `run` show.
        if event.new_objfile.filename == progspace.filename:
            for process in self._of(progspace):
                process.close()
        self._modules(progspace)

    def _modules(self, progspace: gdb.Progspace) -> None:
        for process in self._of(progspace):
            process.modules_changed()

    def _of(self, progspace: gdb.Progspace) -> list[Process]:
        return [process for process in self.known() if process.debugger.inferior.progspace == progspace]

    def _gone(self, inferior: gdb.Inferior) -> None:
        if inferior.num in self._processes:
            self._processes[inferior.num].close()

    def _deleted(self, inferior: gdb.Inferior) -> None:
        self._gone(inferior)
        self._processes.pop(inferior.num, None)
        self._debuggers.pop(inferior.num, None)


def explained(failure: Exception) -> gdb.GdbError:
    """A failure as gdb shows it: a sentence, no traceback."""
    if isinstance(failure, gdb.GdbError):
        return failure
    if isinstance(failure, (NoLibrary, NotNow)):
        return gdb.GdbError(str(failure))
    if isinstance(failure, ompd.OmpdError):
        return gdb.GdbError(f"{failure}.")
    return gdb.GdbError(str(failure))
