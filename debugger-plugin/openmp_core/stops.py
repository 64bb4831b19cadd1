"""Stops where regions, tasks and threads begin and end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from .command import show
from .debugger import Breakpoint, Inferior
from .errors import EXPECTED, CommandError, DebuggerError, NotNow, OmpdError, message
from .process import Process, StopPoint
from .session import Session
from .stop_text import WORDS, description, select_program_frame

#: The command of all debuggers that has a process continue.
CONTINUE = "continue"


class ArmedPoint:
    """One address of a stop, with its breakpoint. Users see only the stop, by `openmp break`."""

    def __init__(self, stop: EventStop, process: Process, point: StopPoint) -> None:
        self.stop = stop
        #: In which it is.
        self.process = process
        self.point = point
        #: A thread has stopped there, and the debugger has not reported it yet.
        self.hit = False
        self.breakpoint: Breakpoint = process.debugger.break_at(point.address, self.reached)
        if not stop.is_enabled:
            self.breakpoint.set_enabled(False)
        #: The debugger has the stop reported.
        self.is_followed = False
        if stop.commands:
            self.follow()

    def follow(self) -> None:
        """Has the debugger report the stop and execute its commands, if it can."""
        report = (lambda: self.stop.report(self.process)) if self.stop.commands else None
        self.is_followed = self.breakpoint.then(report, self.stop.continues()) and report is not None

    def reached(self) -> bool:
        """A thread is there: whether to stop."""
        if self.stop.is_spent or not self.stop.is_enabled:
            # A thread may have got there before the breakpoint was disabled.
            return False
        try:
            counts = self.stop.reached(self.process, self.point)
        except EXPECTED as failure:
            # To go on would be to miss it.
            show(self.process.debugger, f"Stop {self.stop.number}: whether it counts is not known: {failure}")
            counts = True
        # Another thread may be there at the same stop, and not count.
        self.hit = self.hit or counts
        self.stop.is_spent = counts and self.stop.is_temporary
        return counts


class EventStop:
    """A request to stop when something begins or ends.

    It has a breakpoint at each address where that can happen, in the process for which it was made and
    in processes of the same program: children that the debugger follows."""

    def __init__(
        self, session: Session, process: Process, number: int, events: tuple[str, ...], *, condition: str, lwp: int | None
    ) -> None:
        self.session = session
        self.process = process
        self.number = number
        self.events = events
        #: Evaluated in the thread that gets there.
        self.condition = condition
        #: Only this thread counts.
        self.lwp = lwp
        self.armed: list[ArmedPoint] = []
        self.hits = 0
        self.is_enabled = True
        #: It ends with its first hit.
        self.is_temporary = False
        #: It is temporary, and was hit. Its breakpoints stay until no stop of the debugger is about them.
        self.is_spent = False
        #: What began or ended at the last hit.
        self.event = events[0]
        #: What the debugger executes at each hit.
        self.commands: list[str] = []
        #: Why it has no places yet, or not all.
        self.gaps: list[str] = []

    def is_about(self, process: Process) -> bool:
        """Whether what happens in a process counts."""
        if process is self.process:
            return True
        programs = [one.inferior.program for one in (process, self.process)]
        return self.lwp is None and programs[0] is not None and programs[0] == programs[1]

    def arm(self, process: Process) -> None:
        """Finds the addresses in the selected process. Raises `NotNow` or `OmpdError` if it has no runtime yet."""
        self.disarm(process)
        process.space()
        points = [point for point in process.stop_points() if point.event in self.events]
        found = [point for point in points if point.point and not point.own]
        # OMPD's own symbols, through which runtimes pass only if asked to, are better than nothing.
        found = found or [point for point in points if point.point]
        self.gaps = sorted({f"{point.runtime}: {point.place}" for point in points if not point.point and not point.own})
        try:
            for _, point in sorted({point.address: point for point in found}.items()):
                self.armed.append(ArmedPoint(self, process, point))
        except DebuggerError:
            self.disarm(process)
            raise

    def enable(self, enabled: bool) -> None:
        """Enables or disables it. Its breakpoints stay."""
        self.is_enabled = enabled
        for point in self.armed:
            if point.breakpoint.is_valid():
                point.breakpoint.set_enabled(enabled)

    def is_armed(self, process: Process) -> bool:
        """Whether it has places in a process."""
        return any(point.process is process for point in self.armed)

    def disarm(self, process: Process | None = None) -> None:
        """Takes the breakpoints away: all, or those in one process."""
        for point in self.armed:
            if process in (None, point.process) and point.breakpoint.is_valid():
                point.breakpoint.delete()
        # Debuggers delete those of an inferior that is removed.
        self.armed = [point for point in self.armed if point.breakpoint.is_valid()]

    def reached(self, process: Process, point: StopPoint) -> bool:
        """A thread is at one of the places: whether to stop."""
        thread = self.session.selected_thread()
        # Since the last stop that the debugger has told of, the process has run.
        process.state.ran()
        if self.lwp is not None and thread.lwp != self.lwp:
            return False
        # Without a condition each hit counts.
        counts = True if point.condition is None else process.counts(thread.lwp)
        if counts is None:
            show(self.session.debugger, f"Stop {self.number}: whether this counts is not known. It does if {point.condition}.")
        if counts is False:
            return False
        if self.condition and not self.session.debugger.is_true(self.condition):
            return False
        self.hits += 1
        self.event = point.event
        return True

    def continues(self) -> bool:
        """Whether the process continues at a hit, because the last command has it do so."""
        return self.commands[-1:] == [CONTINUE]

    def command(self, commands: Sequence[str]) -> None:
        """Changes the commands."""
        self.commands = list(commands)
        for point in self.armed:
            if point.breakpoint.is_valid():
                point.follow()

    def report(self, process: Process) -> str | None:
        """Prints what begins or ends at a hit in the selected thread, selects the program's frame, and executes the commands.

        Returns which command has failed, and why."""
        debugger = self.session.debugger
        try:
            text = description(self.session, process, self.event, self.addresses())
        except EXPECTED as failure:
            text = f"{WORDS[self.event]}. Details unknown: {message(failure)}"
        show(debugger, text)
        with suppress(*EXPECTED):
            if select_program_frame(debugger, self.addresses()) and not self.continues():
                debugger.show_frame()
        for command in tuple(self.commands):
            if command == CONTINUE:
                return None
            try:
                debugger.execute(command, False)
            except EXPECTED as failure:
                # As in the debuggers, the others are not executed.
                return f"Stop {self.number}, {command}: {message(failure)}"
        return None

    def addresses(self) -> list[int]:
        """Where its breakpoints are."""
        return [point.point.address for point in self.armed if point.breakpoint.is_valid()]

    def describe(self) -> str:
        """One line for the list."""
        places = len(self.armed)
        where = f"{places} place{'s' * (places != 1)}" if places else "waits for a runtime to be loaded"
        words = ["temporary"] * self.is_temporary + ["disabled"] * (not self.is_enabled)
        known = "; ".join([*words, where, f"{self.hits} hit{'s' * (self.hits != 1)}"])
        return "\n     ".join([f"{self.number}  {self._what()}  ({known})", *self.commands])

    def text(self) -> str:
        """What follows `openmp break` to make it again, without its commands."""
        options = ["-temporary"] * self.is_temporary + ["-disabled"] * (not self.is_enabled)
        return " ".join([*options, self._what()])

    def _what(self) -> str:
        return ", ".join(self.events) + (f" if {self.condition}" if self.condition else "")


class Stops:
    """All stops of this debugger."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.all: list[EventStop] = []
        #: Temporary ones that were hit.
        self._spent: list[EventStop] = []
        self._next = 1
        #: A command has failed in one of several threads that have stopped together.
        self._has_failed = False

    def listed(self) -> list[EventStop]:
        """Those that users have made."""
        return [stop for stop in self.all if stop.lwp is None]

    def add(
        self,
        process: Process,
        events: tuple[str, ...],
        condition: str = "",
        lwp: int | None = None,
        *,
        is_temporary: bool = False,
        is_enabled: bool = True,
    ) -> EventStop:
        """A new one; it is armed at once if there is a runtime, and else when one is loaded."""
        self._forget_spent()
        # What a command runs to is not listed, and needs no number.
        number = self._next if lwp is None else 0
        self._next += lwp is None
        stop = EventStop(self.session, process, number, events, condition=condition, lwp=lwp)
        stop.is_temporary, stop.is_enabled = is_temporary, is_enabled
        self.all.append(stop)
        try:
            stop.arm(process)
        except (NotNow, OmpdError):
            if lwp is None:
                return stop
            # A command that runs to this stop would run on to the end.
            self.remove(stop)
            raise
        except DebuggerError:
            self.remove(stop)
            raise
        if not stop.armed:
            self.remove(stop)
            reasons = "\n  ".join(stop.gaps) or "no runtime tells of it"
            raise CommandError(f"There is no place to stop at for {', '.join(events)}:\n  {reasons}")
        return stop

    def remove(self, stop: EventStop) -> None:
        """Takes one away."""
        stop.disarm()
        self.all.remove(stop)

    def files_loaded(self, inferior: Inferior) -> None:
        """An inferior has new files: one may be another runtime, beside one that is there."""
        if inferior.number == self.session.debugger.selected_inferior().number:
            self._arm(anew=True)

    def replaced(self, inferior: Inferior) -> None:
        """The process has ended, or another program takes its place: nothing lies where it was."""
        process = self.session.known(inferior)
        if process is not None:
            for stop in (*self.all, *self._spent):
                stop.disarm(process)

    def _forget_spent(self) -> None:
        """Deletes the breakpoints of temporary stops that the debugger has reported."""
        for stop in self._spent:
            stop.disarm()
        self._spent.clear()

    def _end_temporary(self) -> None:
        """Temporary stops that were reported end. Their breakpoints are disabled: the debugger is still at one of them."""
        for stop in [stop for stop in self.all if stop.is_spent]:
            self.all.remove(stop)
            self._spent.append(stop)
            stop.enable(False)

    def reason(self, breakpoints: Iterable[Breakpoint]) -> str | None:
        """What begins or ends where the process has stopped at these breakpoints; `None` if a command has let it run there."""
        reported = list(breakpoints)
        hit = [point for stop in self.all for point in stop.armed if point.hit and any(point.breakpoint is one for one in reported)]
        return next((WORDS[point.stop.event] for point in hit if point.stop.lwp is None), None)

    def stopped(self, breakpoints: Iterable[Breakpoint]) -> bool:
        """The selected inferior has stopped, at these breakpoints, if any. Returns False if all their commands have it continue."""
        reported = list(breakpoints)
        self._forget_spent()
        # A debugger may also report breakpoints at the same address that did not stop.
        hit = [point for stop in self.all for point in stop.armed if point.hit and any(point.breakpoint is one for one in reported)]
        for point in hit:
            point.hit = False
        # What a command runs to, the command shows.
        shown = [point for point in hit if point.stop.lwp is None]
        has_failed, self._has_failed = self._has_failed, False
        if shown and not shown[0].is_followed:
            has_failed |= self._is_failure(shown[0].stop.report(shown[0].process))
        self._end_temporary()
        if not hit:
            # Of a program that has its runtime built in, no file tells that it is loaded.
            self._arm(anew=False)
        return not hit or has_failed or any(point.stop.lwp is not None or not point.stop.continues() for point in hit)

    def stopped_too(self, breakpoint: Breakpoint) -> None:
        """The selected thread, another one than `stopped` will be about, has stopped at this breakpoint."""
        for stop in self.all:
            if stop.lwp is None and any(point.breakpoint is breakpoint for point in stop.armed):
                self._has_failed |= self._is_failure(stop.report(self.session.process()))
                return

    def _is_failure(self, failure: str | None) -> bool:
        """Prints why a command has failed, if one has."""
        if failure is not None:
            show(self.session.debugger, failure)
        return failure is not None

    def _arm(self, anew: bool) -> None:
        """Arms stops in the selected inferior: those that are not armed there, or all if `anew`."""
        # If there is no runtime yet, that is for later.
        with suppress(*EXPECTED):
            inferior = self.session.debugger.selected_inferior()
            if not self.all or inferior.pid == 0:
                return
            process = self.session.process(inferior)
            for stop in self.all:
                if stop.is_about(process) and (anew or not stop.is_armed(process)):
                    stop.arm(process)
