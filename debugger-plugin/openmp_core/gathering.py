"""The members of a team come to a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from .debugger import Breakpoint, Debugger, Source
from .errors import CommandError, DebuggerError, OmpdError
from .functions import Query
from .process import Process
from .selection import ranges
from .stepping import behind_prologue


class Gathering:
    """Lets a process run until every member of a team has come to a line of the source, in the region that the team executes now."""

    def __init__(self, process: Process, runtime: int | None, team: int, region: int, line: Source) -> None:
        self.process = process
        self.team = team
        #: The region, by its record in the runtime.
        self.region = region
        self.line = line
        self.debugger: Debugger = process.debugger
        members = process.team(runtime, team)["members"]
        missing = [number for number, lwp in enumerate(members) if lwp is None]
        if missing:
            raise CommandError(f"Not found among the threads of the process: {ranges(missing)} of team {team}.")
        #: The kernel ids of the members, by their numbers.
        self.members: list[int] = members
        self.addresses = sorted({behind_head(self.debugger, address) for address in self.debugger.addresses_of(line)})
        if not self.addresses:
            raise CommandError(f"There is no code of line {line.line} of {line.file} in what is loaded.")
        #: The kernel ids of those that have come.
        self.come: set[int] = set()

    def is_complete(self) -> bool:
        """True if every member has come."""
        return self.come == set(self.members)

    def there(self) -> set[int]:
        """The members that are at the line before anything runs."""
        found = set()
        for lwp in self.members:
            thread = self.process.state.thread(lwp)
            if thread is not None:
                with self.debugger.selected(thread):
                    if self.debugger.newest_frame().pc in self.addresses:
                        found.add(lwp)
        return found

    def run(self) -> None:
        """Runs until the last member comes, or something else stops the process."""
        with self._armed(stops_each=False):
            self.debugger.go_on()

    def run_held(self, others: Collection[int]) -> None:
        """The same, but each one that has come is held, and so are other threads, by their kernel ids."""
        # In a loop they come to the line again.
        there = self.there()
        self.come = there if there != set(self.members) else set()
        with self._armed(stops_each=True):
            while not self.is_complete():
                before = len(self.come)
                kept = {*others, *self.come}
                with self.debugger.holding([thread for thread in self.process.inferior.threads() if thread.lwp in kept]):
                    if not self.debugger.go_on() or len(self.come) == before:
                        return

    @contextmanager
    def _armed(self, stops_each: bool) -> Iterator[None]:
        breakpoints: list[Breakpoint] = []
        try:
            # One that cannot be made leaves those before it in the list.
            breakpoints.extend(self.debugger.break_at(address, lambda: self._reached(stops_each)) for address in self.addresses)
            yield
        finally:
            for breakpoint in breakpoints:
                if breakpoint.is_valid():
                    breakpoint.delete()

    def _reached(self, stops_each: bool) -> bool:
        """A thread is at the line: whether to stop."""
        thread = self.debugger.selected_thread()
        if thread is None or thread.lwp not in self.members or thread.lwp in self.come:
            return False
        # Since the last stop that the debugger has reported, the process has run.
        self.process.state.ran()
        with suppress(OmpdError):
            if Query(self.process, thread.lwp).descriptor("parallel") == self.region:
                self.come.add(thread.lwp)
                return stops_each or self.is_complete()
        return False

    def text(self) -> str:
        """Which members have come."""
        line = f"{self.line.file}:{self.line.line}"
        if self.is_complete():
            return f"All {len(self.members)} threads of team {self.team} have come to {line}."
        come, missing = ([n for n, lwp in enumerate(self.members) if (lwp in self.come) is there] for there in (True, False))
        if not come:
            return f"No thread of team {self.team} has come to {line}."
        verb = "has" if len(come) == 1 else "have"
        return f"Of team {self.team}, {named(come)} {verb} come to {line}. Missing: {named(missing)}."


def named(numbers: list[int]) -> str:
    """Threads by their numbers in the team: `thread 2`, `threads 0-1,3`."""
    return f"thread{'s' * (len(numbers) != 1)} {ranges(numbers)}"


def behind_head(debugger: Debugger, address: int) -> int:
    """The address, or where the function's parameters are in place if it is where the function begins."""
    function = debugger.function_at(address)
    return behind_prologue(debugger, address) if function is not None and function.start == address else address


def line_of(debugger: Debugger, text: str) -> Source:
    """The line that a user names: `FILE:LINE`, or `LINE` of the selected frame's file."""
    file, _, number = text.rpartition(":")
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < 1 << 31):
        raise CommandError(f"{text} is no line: grid.c:35 is wanted, or 35 in the file of the selected frame.")
    if not file:
        try:
            source = debugger.selected_frame().source()
        except DebuggerError:
            source = None
        if source is None:
            raise CommandError(f"The selected frame has no source file: FILE:{number} is wanted.")
        file = source.file
    return Source(file, int(number))
