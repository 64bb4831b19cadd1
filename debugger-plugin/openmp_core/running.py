"""Commands that let the process run: until something begins, and until it hangs."""

from __future__ import annotations

from .command import Command
from .debugger import Stopped, Thread
from .errors import CommandError, OmpdError
from .functions import Query
from .gathering import Gathering, line_of
from .process import Member, Process, known
from .session import Session
from .stepping import begin_of_body
from .stop_text import OF_REGION, region_function, select_program_frame, task_function
from .stops import EventStop, Stops


class Running(Command):
    """A command that lets the process run until a thread gets somewhere."""

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    @classmethod
    def primary(cls, process: Process, lwp: int) -> int:
        """The kernel id of thread 0 in a thread's team."""
        place = cls.place(process, lwp)
        found = process.team(place.runtime, place.team)["members"][0]
        if found is None:
            raise CommandError(f"Thread 0 of team {place.team}, in which the region ends, was not found.")
        return int(found)

    def end_of(self, process: Process, primary: int, region: int) -> EventStop:
        """A stop at the end of a region, in thread 0 of its team, by its kernel id."""
        return self.stops.add(process, ("parallel-end",), f"{self.debugger.examples.team} == {region}", primary)

    def until(self, stop: EventStop) -> str | None:
        """Runs to one of the events of a stop, and removes it. Returns the event, or `None` after another stop."""
        try:
            if not self.debugger.go_on() or not stop.hits:
                return None
            select_program_frame(self.debugger, stop.addresses())
            return stop.event
        finally:
            self.stops.remove(stop)

    def ready(self, process: Process) -> int:
        """The kernel id of the selected thread, which stands still in a process that can run. Raises `NotNow` if not."""
        process.opened()
        process.runs()
        return self.standing()

    @staticmethod
    def place(process: Process, lwp: int) -> Member:
        """A thread's place in its innermost team."""
        places = process.members(lwp)
        if not places:
            raise CommandError("The selected thread is in no team (`openmp threads` lists those that are).")
        return places[0]

    @staticmethod
    def others(process: Process, lwp: int) -> list[Thread]:
        """The threads that are in teams, but neither in that of a thread, if it is in one, nor inside of it."""
        own = process.members(lwp)[:1]
        inside = {(place.runtime, place.team) for place in own}
        for runtime, _, _ in own:
            teams = process.report()["runtimes"][runtime]["teams"]
            # A team comes to the set after the one around it, whatever their order is.
            for _ in teams:
                inside |= {(runtime, number) for number, team in enumerate(teams) if (runtime, known(team.get("parent"))) in inside}
        found = []
        for thread in process.inferior.threads():
            places = process.members(thread.lwp)
            if places and not any((place.runtime, place.team) in inside for place in places):
                found.append(thread)
        return found


class Step(Running):
    """Run until the selected thread is in the next parallel region or task that it begins.
    Usage: openmp step

    It stops at the first line of the region's or task's body. All threads continue until
    then, also in non-stop mode. Breakpoints count meanwhile, and so does Ctrl-C."""

    name = "step"

    def run(self, argument: str, from_tty: bool) -> None:
        process = self.process()
        lwp = self.ready(process)
        events = ("parallel-begin", "task-begin")
        # At a stop where one begins, that one is meant.
        event = process.event_at(lwp)
        function = self.body(process, lwp, event) if event in events else None
        if function is None:
            event = self.until(self.stops.add(process, events, "", lwp))
            if event is None:
                return
            function = self.body(process, lwp, event)
        if function is None:
            self.show("The runtime does not tell which function is the body: the process is where it begins.")
            self.debugger.show_frame()
            return
        if self.run_to(begin_of_body(self.debugger, function), lwp):
            self.debugger.show_frame()

    @staticmethod
    def body(process: Process, lwp: int, event: str | None) -> int | None:
        """The function of the body that begins; `None` if it is unknown."""
        try:
            return region_function(process, lwp) if event in OF_REGION else task_function(process, lwp)
        except OmpdError:
            return None

    def run_to(self, address: int, lwp: int) -> bool:
        """Runs until a thread is at an address. False after another stop."""
        hits: list[int] = []

        def reached() -> bool:
            if self.session.selected_thread().lwp == lwp:
                hits.append(lwp)
            return bool(hits)

        breakpoint = self.debugger.break_at(address, reached)
        try:
            return self.debugger.go_on() and bool(hits)
        finally:
            if breakpoint.is_valid():
                breakpoint.delete()


class Until(Running):
    """Run until the selected thread comes to a barrier, or all threads of its team to a line.
    Usage: openmp until barrier | [-hold] [FILE:]LINE

      openmp until barrier    an explicit one, one at the end of a worksharing construct,
                              or the end of the region
      openmp until grid.c:35  the last thread of the team comes to this line
      openmp until 35         the same, in the file of the selected frame

    All threads continue until then, also those that have come to the line. With -hold, these
    wait there for the others, and threads of other teams stay where they are. It is refused
    where {debugger} cannot hold threads. If the others wait for one that is held, they do not
    come: Ctrl-C stops it. The end of the region stops it too. Then, and when something
    else stops the process, it is shown which threads have come. Breakpoints count meanwhile."""

    name = "until"
    words = ("barrier",)
    options = ("-hold",)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        if len(rest) != 1 or (rest == ["barrier"] and flags):
            raise CommandError(f"Usage: {self.usage()}")
        process = self.process()
        lwp = self.ready(process)
        if rest == ["barrier"]:
            if self.until(self.stops.add(process, ("barrier-begin",), "", lwp)) is not None:
                self.debugger.show_frame()
            return
        place = self.place(process, lwp)
        region = Query(process, lwp).descriptor("parallel")
        team = Gathering(process, place.runtime, place.team, region, line_of(self.debugger, rest[0]))
        others = self.others(process, lwp) if flags else []
        if flags:
            # A debugger that cannot hold threads refuses before anything runs.
            with self.debugger.holding([self.session.selected_thread()]):
                pass
        end = self.end_of(process, self.primary(process, lwp), region)
        try:
            if flags:
                team.run_held([thread.lwp for thread in others])
            else:
                team.run()
            if end.hits:
                self.show("The region ends.")
                select_program_frame(self.debugger, end.addresses())
        finally:
            self.stops.remove(end)
        self.show(team.text())
        if team.is_complete() or end.hits:
            self.debugger.show_frame()


class Finish(Running):
    """Run until the parallel region of the selected thread ends.
    Usage: openmp finish [-hold]

    It stops in thread 0 of the team, when all members have come to the end of the region.
    All threads continue until then. With -hold, threads of other teams stay where they
    are, but not those of teams inside the region. It is refused where {debugger} cannot hold
    threads. If the team waits for a thread that is held, it does not end: Ctrl-C stops it.
    Breakpoints count meanwhile."""

    name = "finish"
    options = ("-hold",)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        if rest:
            raise CommandError(f"Usage: {self.usage()}")
        process = self.process()
        lwp = self.ready(process)
        event = process.event_at(lwp)
        if event == "parallel-end":
            raise CommandError("The region of this thread ends here. Select a thread of another region.")
        # A region that begins here ends in this thread.
        primary = lwp if event == "parallel-begin" else self.primary(process, lwp)
        # Thread 0 may begin and end other regions before.
        region = Query(process, lwp).descriptor("parallel")
        held = self.others(process, lwp) if "-hold" in flags else []
        with self.debugger.holding(held):
            event = self.until(self.end_of(process, primary, region))
        if event is not None:
            self.debugger.show_frame()


def seconds(text: str) -> float:
    """A time that a user has typed. Raises `ValueError`."""
    found = float(text)
    if not 0.01 <= found <= 86400:
        raise ValueError(text)
    return found


class Catch(Command):
    """Run until the process hangs.
    Usage: openmp catch deadlock [-limit LIMIT] [SECONDS]

    Every SECONDS (1 if not given) the process is stopped for a moment. After LIMIT seconds
    without a verdict it stays stopped; without LIMIT, it continues until it ends. When two looks at
    it find the same threads at the same places with the same verdict, it stays stopped,
    and the verdict is shown: DEADLOCK, or SUSPECT if something from outside of the process
    may still end it. Breakpoints count meanwhile, and so does Ctrl-C."""

    name = "catch"
    words = ("deadlock", "-limit")

    def run(self, argument: str, from_tty: bool) -> None:
        words = argument.split()
        limit = interval = 0.0
        try:
            if words[1:2] == ["-limit"]:
                limit = seconds(words[2])
                del words[1:3]
            interval = seconds(words[1]) if len(words) > 1 else 1.0
        except (IndexError, ValueError):
            words = []
        if words[:1] != ["deadlock"] or len(words) > 2:
            raise CommandError(f"Usage: {self.usage()}")
        process = self.process()
        self.session.selected_thread()
        process.runs()
        before: set[tuple[object, ...]] = set()
        ran = 0.0
        while True:
            found = self.verdicts(process)
            if found & before:
                self.show_view(process, "waits")
                return
            before = found
            if limit and ran >= limit:
                self.show(f"No deadlock was found in {limit:g} seconds. The process is stopped.")
                return
            if self.debugger.run_for(process.inferior, interval) is not Stopped.TIME:
                return
            ran += interval

    @staticmethod
    def verdicts(process: Process) -> set[tuple[object, ...]]:
        """The hangs of this stop, each with the stacks of its threads; none without a runtime."""
        if not process.is_openmp():
            return set()
        report = process.report()
        places = {stack["lwp"]: tuple(frame.get("address") for frame in stack["frames"]) for stack in report["stacks"]}
        return {
            (verdict["verdict"], verdict["situation"], *((lwp, places.get(lwp)) for lwp in verdict["threads"]))
            for verdict in report["verdicts"]
            if verdict["verdict"] != "waiting"
        }
