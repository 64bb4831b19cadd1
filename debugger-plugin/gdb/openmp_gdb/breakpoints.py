"""Breakpoints that gdb does not list, each in one inferior.

gdb has a breakpoint at `*0x1234` in every program space: it evaluates the expression there as soon as
one has new files. In another process that address has other code, or none, which gdb refuses to run.
So the expression is a function. In other inferiors it returns where their program begins: that is
executed once, and does not stop.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Callable, NamedTuple

import gdb

from . import output
from .selecting import errors, language_c

#: The function that returns where a breakpoint is in the selected inferior.
FUNCTION = "_omp_breakpoint_address"


class Place(NamedTuple):
    """An address in one inferior."""

    inferior: int
    address: int


class Places(gdb.Function):
    """Where a breakpoint of the plugin is in the selected inferior.
    Usage: $_omp_breakpoint_address(NUMBER)

    The plugin uses it for the stops of `openmp break`."""

    def __init__(self) -> None:
        super().__init__(FUNCTION)
        self._places: dict[int, Place] = {}
        self._next = 0

    def add(self, place: Place) -> int:
        """A number for a place."""
        self._next += 1
        self._places[self._next] = place
        return self._next

    def remove(self, number: int) -> None:
        """The place is not needed any more."""
        self._places.pop(number, None)

    def invoke(self, *arguments: gdb.Value) -> int:
        if len(arguments) != 1:
            raise gdb.GdbError("One number is wanted.")
        inferior = gdb.selected_inferior()
        place = self._places.get(int(arguments[0]))
        if place is not None and place.inferior == inferior.num:
            return place.address
        return begin_of_program(inferior)


def begin_of_program(inferior: gdb.Inferior) -> int:
    """Where the kernel begins to execute the program; 0 without a process."""
    if inferior.pid:
        with suppress(gdb.error):
            for line in gdb.execute("info auxv", to_string=True).splitlines():
                words = line.split()
                if words[1:2] == ["AT_ENTRY"]:
                    return int(words[-1], 0)
    return 0


@functools.cache
def places() -> Places:
    """The places of all breakpoints."""
    return Places()


#: All breakpoints of the plugin by gdb's numbers of them.
by_number: dict[int, Breakpoint] = {}


class Breakpoint(gdb.Breakpoint):
    """A breakpoint in the selected inferior that gdb does not list. At each hit, `reached` returns whether to stop."""

    def __init__(self, address: int, reached: Callable[[], bool]) -> None:
        self.reached = reached
        self.inferior_number = gdb.selected_inferior().num
        self._place = places().add(Place(self.inferior_number, address))
        # gdb evaluates it again in the language of this moment. In C, a number with `0x` has no other base.
        with language_c():
            super().__init__(f"*${FUNCTION}({self._place:#x})", gdb.BP_BREAKPOINT, internal=True)
        by_number[self.number] = self
        #: What gdb calls behind a stop there.
        self.report: Callable[[], str | None] | None = None
        self.silent = self.is_silent()

    @errors()
    def set_enabled(self, enabled: bool) -> None:
        """Has threads stop there, or not."""
        self.enabled = enabled

    @errors()
    def then(self, report: Callable[[], str | None] | None, continues: bool) -> bool:
        """Has gdb call `report` behind a stop there, by commands of the breakpoint."""
        self.report = report
        lines = [f"python __import__('{__name__}', fromlist=['report']).report({self.number})"] if report is not None else []
        self.commands = "\n".join([*lines, "continue"] if continues else lines)
        self.silent = self.is_silent()
        return True

    def is_silent(self) -> bool:
        """Whether gdb is to print nothing of a stop there, which the plugin reports."""
        # In MI, a silent stop has no reason, frame and thread.
        return not output.is_front_end() and (self.report is not None or not output.can_be_quiet())

    @errors()
    def delete(self) -> None:
        by_number.pop(self.number, None)
        super().delete()
        places().remove(self._place)

    def stop(self) -> bool:
        """What gdb asks at each hit: whether to stop."""
        stops = gdb.selected_inferior().num == self.inferior_number and self.reached()
        # Where gdb executes commands behind a stop, it does so as soon as Python executes one: not before the stop is handled.
        if stops and self.report is None:
            output.begin_quiet()
        return stops


def report(number: int) -> None:
    """What gdb calls behind a stop at the breakpoint with this number."""
    breakpoint = by_number.get(number)
    failure = breakpoint.report() if breakpoint is not None and breakpoint.report is not None else None
    if failure is not None:
        # gdb executes no command behind this one.
        raise gdb.GdbError(failure)
