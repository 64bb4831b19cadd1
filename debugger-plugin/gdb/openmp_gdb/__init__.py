"""OpenMP inside gdb: what threads, teams and tasks do, what they wait for, and why they hang.

`register()` adds the commands below the prefix `openmp` (docs/gdb-plugin.md).
"""

from __future__ import annotations

import functools
from contextlib import suppress

import gdb

from . import frames, stops, threads, variables, views
from .session import PREFIX, LibrarySetting, Session


class Prefix(gdb.Command):
    """Say what an OpenMP program is doing: its threads, teams and tasks, and why it hangs.

    It works on any process or core file that gdb has, with libgomp, libomp or libiomp5 as
    they come: no preparation, no debug information of the runtime. Start with

      openmp status     what all threads do, and why they hang if they do
      openmp threads    every thread: team, number, task, what it waits for
      openmp why        why the selected thread does not get on"""

    def __init__(self, name: str) -> None:
        super().__init__(name, gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


@functools.cache
def register() -> Session:
    """Adds the commands, once."""
    Prefix(PREFIX)
    for verb in ("set", "show"):
        _settings(verb)
    session = Session(LibrarySetting())
    # Before all others that hear of stops: what they ask is answered anew.
    session.listen()
    for command in (*views.ALL, *threads.ALL, *variables.ALL):
        command(session)
    frames.Backtrace(session, frames.Filter(session))
    stops.add(session)
    threads.functions(session)
    threads.NamesSetting(session)
    # LLVM's plugin has commands of that name; where it is loaded as well, they stay its own.
    with suppress(gdb.error):
        gdb.execute(f"alias -a ompd = {PREFIX}")
    return session


def _settings(verb: str) -> None:
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
