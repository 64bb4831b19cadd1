"""The settings: `set openmp library` and `set openmp thread-names`."""

from __future__ import annotations

import gdb

from openmp_core import PREFIX
from openmp_core.names import ThreadNames
from openmp_core.session import LibraryChoice

from . import output


class LibrarySetting(gdb.Parameter):
    """Path of libompd.so; empty: the one beside the plugin.

    It takes effect before the first command that needs the library."""

    set_doc = "Set the path of libompd.so; empty: the one beside the plugin."
    show_doc = "Show the path of libompd.so."

    def __init__(self, choice: LibraryChoice) -> None:
        self._choice = choice
        super().__init__(f"{PREFIX} library", gdb.COMMAND_DATA, gdb.PARAM_OPTIONAL_FILENAME)
        self.value = ""

    def get_set_string(self) -> str:
        self._choice.path = str(self.value or "")
        return self._choice.refusal("gdb")

    def get_show_string(self, value: str) -> str:
        return self._choice.shown(value)


class NamesSetting(gdb.Parameter):
    """Whether `info threads` names OpenMP's threads by their place: `omp 0.3 (4)` is thread 3 of team 0, which has 4.

    It takes a look at the process at each stop. It is on from the start for front ends that use MI or DAP."""

    set_doc = "Set whether `info threads` names threads by their place in OpenMP."
    show_doc = "Show whether `info threads` names threads by their place in OpenMP."

    def __init__(self, names: ThreadNames) -> None:
        self._names = names
        super().__init__(f"{PREFIX} thread-names", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = names.enabled = output.is_front_end()

    def get_set_string(self) -> str:
        self._names.enable(bool(self.value))
        return ""

    def get_show_string(self, value: str) -> str:
        return f"Naming threads by their place in OpenMP is {value}."


def add_prefix(verb: str) -> None:
    """Adds `set openmp` or `show openmp`."""

    class Settings(gdb.Command):
        def __init__(self) -> None:
            super().__init__(f"{verb} {PREFIX}", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

        def invoke(self, argument: str, from_tty: bool) -> None:
            if verb == "set" or argument:
                raise gdb.GdbError(f"One of the settings is wanted: help {verb} {PREFIX}")
            for name in ("library", "thread-names"):
                gdb.execute(f"show {PREFIX} {name}")

    Settings.__doc__ = f"{verb.capitalize()} how OpenMP programs are shown."
    Settings()
