"""The plugin without its debugger.

An adapter makes one `Plugin(debugger)`, adds its `commands` to the debugger, and reports events by
the methods of `Plugin`.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import breaking, threads, variables, views
from .command import Command
from .debugger import Breakpoint, Debugger, Inferior
from .frames import Backtrace, Folding
from .names import ThreadNames
from .running import Catch, Finish, Step, Until
from .session import Session
from .stops import Stops


class Plugin:
    """The commands, and the state they share."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.session = Session(debugger)
        self.stops = Stops(self.session)
        self.folding = Folding(self.session)
        self.names = ThreadNames(self.session)
        self.commands: list[Command] = [command(self.session) for command in (*views.ALL, *threads.ALL, *variables.ALL)]
        self.commands.append(Backtrace(self.session, self.folding))
        self.commands += [command(self.session, self.stops) for command in (*breaking.ALL, Step, Finish, Until)]
        self.commands.append(Catch(self.session))

    def stopped(self, breakpoints: Iterable[Breakpoint]) -> bool:
        """The selected inferior has stopped, perhaps at breakpoints: objects that `break_at` has returned.

        The adapter raises `stop_number` first. Returns False if the process is to continue, where the core executes commands of
        stops and nothing else has stopped it."""
        return self.stops.stopped(breakpoints)

    def stopped_too(self, breakpoint: Breakpoint) -> None:
        """Before `stopped`, of a debugger that stops several threads together: the selected thread is another one that is there."""
        self.stops.stopped_too(breakpoint)

    def replaced(self, inferior: Inferior) -> None:
        """The process has ended, has become another program by `exec`, or begins anew."""
        self.session.replaced(inferior)
        self.stops.replaced(inferior)

    def files_loaded(self, inferior: Inferior) -> None:
        """An inferior has more files."""
        self.session.modules_changed(inferior)
        self.stops.files_loaded(inferior)

    def files_unloaded(self, inferior: Inferior) -> None:
        """An inferior has fewer files, or none."""
        self.session.modules_changed(inferior)

    def removed(self, inferior: Inferior) -> None:
        """The debugger has an inferior no more."""
        self.session.removed(inferior)

    def prompt(self) -> None:
        """The debugger is about to ask for a command, or an editor for the threads."""
        self.names.refresh()
