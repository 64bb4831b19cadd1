"""OpenMP inside gdb: what threads, teams and tasks do, what they wait for, and why they hang.

`register()` adds the commands below the prefix `openmp` (docs/gdb-plugin.md).
"""

from __future__ import annotations

import gdb

from . import frames, stops, threads, variables, views
from .session import PREFIX, LibrarySetting, Session

_session: Session | None = None


class Prefix(gdb.Command):
    """Say what an OpenMP program is doing: its threads, teams and tasks, and why it hangs.

    It works on any process or core file that gdb has, with libgomp, libomp or libiomp5 as
    they come: no preparation, no debug information of the runtime. Start with

      openmp status     what all threads do, and why they hang if they do
      openmp threads    every thread: team, number, task, what it waits for
      openmp why        why the selected thread does not get on"""

    def __init__(self, name: str) -> None:
        super().__init__(name, gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


def register() -> Session:
    """Adds the commands, once."""
    global _session
    if _session is None:
        Prefix(PREFIX)
        for verb in ("set", "show"):
            _settings(verb)
        session = Session(LibrarySetting())
        for command in (*views.ALL, *threads.ALL, *variables.ALL):
            command(session)
        frames.Backtrace(session, frames.Filter(session))
        stops.add(session)
        threads.functions(session)
        threads.NamesSetting(session)
        session.listen()
        gdb.execute(f"alias -a ompd = {PREFIX}")
        _session = session
    return _session


def _settings(verb: str) -> None:
    class Settings(gdb.Command):
        def __init__(self) -> None:
            super().__init__(f"{verb} {PREFIX}", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    Settings.__doc__ = f"{verb.capitalize()} how OpenMP programs are shown."
    Settings()
