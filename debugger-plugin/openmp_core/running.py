"""Commands that let the process run: until something begins or ends, and until it hangs."""

from __future__ import annotations

from .command import Command
from .debugger import Stopped
from .errors import CommandError, OmpdError
from .process import EVENTS, Process
from .session import Session
from .stepping import behind_prologue, body_of
from .stop_text import OF_REGION, region_function, task_function
from .stops import Stops


class Break(Command):
    """Stop when a parallel region, a task or a thread begins or ends; or list these stops.
    Usage: openmp break [EVENT [if CONDITION]]

    EVENT is parallel-begin, parallel-end, task-begin, task-end, thread-begin, thread-end
    or barrier-begin. The condition is evaluated in the thread that gets there, where
    {level} and its like can be used. If no runtime is loaded yet, it holds as soon
    as one is, also in what the process becomes by exec, and in children that {debugger} follows.
    No preparation of the process is needed.

    `openmp delete` takes stops away."""

    name = "break"
    words = tuple(EVENTS.values())

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    def run(self, argument: str, from_tty: bool) -> None:
        event, _, rest = argument.strip().partition(" ")
        if not event:
            lines = [stop.describe() for stop in self.stops.all]
            self.show("\n".join(lines) if lines else "There are no stops (`openmp break EVENT` makes one).")
            return
        if event not in self.words:
            raise CommandError(f"{event} is no event. Usage: {self.usage()}\n  EVENT: {', '.join(self.words)}")
        keyword, _, condition = rest.strip().partition(" ")
        if rest.strip() and (keyword != "if" or not condition.strip()):
            raise CommandError(f"Behind the event comes `if` and a condition. Usage: {self.usage()}")
        process = self.process()
        process.runs()
        stop = self.stops.add(process, (event,), condition.strip())
        self.show(f"Stop {stop.describe()}")
        for gap in stop.gaps:
            self.show(f"  not met: {gap}")


class Delete(Command):
    """Take stops away that `openmp break` has made.
    Usage: openmp delete [NUMBER]...

    Without numbers, all of them."""

    name = "delete"

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    def run(self, argument: str, from_tty: bool) -> None:
        _, rest = self.split(argument)
        known = {str(stop.number): stop for stop in self.stops.all}
        wrong = [number for number in rest if number not in known]
        if wrong:
            raise CommandError(f"There is no stop {', '.join(wrong)} (`openmp break` lists them).")
        repeated = [number for number in known if rest.count(number) > 1]
        if repeated:
            raise CommandError(f"Stop {', '.join(repeated)} is named more than once: nothing was deleted.")
        for number in rest or known:
            self.stops.remove(known[number])


class Running(Command):
    """A command that lets the process run until a thread gets somewhere."""

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    def until(self, process: Process, events: tuple[str, ...]) -> str | None:
        """Runs to one of the events in the selected thread. Returns it, or `None` after another stop."""
        process.held()
        process.runs()
        lwp = self.session.selected_thread().lwp
        stop = self.stops.add(process, events, lwp=lwp)
        try:
            alive = self.debugger.go_on()
            if not alive:
                self.show("The process has ended.")
                return None
            if not stop.hits:
                self.debugger.show_frame()
                return None
            return stop.event
        finally:
            self.stops.remove(stop)


class Step(Running):
    """Run until the selected thread is in the next parallel region or task that it begins.
    Usage: openmp step

    It stops at the first line of the region's or task's body. Breakpoints count meanwhile,
    and so does Ctrl-C."""

    name = "step"

    def run(self, argument: str, from_tty: bool) -> None:
        process = self.process()
        lwp = self.session.selected_thread().lwp
        event = self.until(process, ("parallel-begin", "task-begin"))
        if event is None:
            return
        try:
            function = region_function(process, lwp) if event in OF_REGION else task_function(process, lwp)
        except OmpdError:
            self.show("The runtime does not tell which function is the body: the process is where it begins.")
            self.debugger.show_frame()
            return
        target = behind_prologue(self.debugger, body_of(self.debugger, function))
        body = self.debugger.break_at(target, thread=self.session.selected_thread())
        try:
            self.debugger.go_on()
        finally:
            if body.is_valid():
                body.delete()
        self.debugger.show_frame()


class Until(Running):
    """Run until the selected thread comes to a barrier.
    Usage: openmp until barrier

    An explicit one, one at the end of a worksharing construct, or the end of the region."""

    name = "until"
    words = ("barrier",)

    def run(self, argument: str, from_tty: bool) -> None:
        if argument.split() != ["barrier"]:
            raise CommandError(f"Usage: {self.usage()}")
        if self.until(self.process(), ("barrier-begin",)) is not None:
            self.debugger.show_frame()


class Catch(Command):
    """Run until the process hangs.
    Usage: openmp catch deadlock [SECONDS]

    Every SECONDS (1 if not given) the process is stopped for a moment. When two looks at
    it find the same threads at the same places with the same verdict, it stays stopped,
    and the verdict is shown: DEADLOCK, or SUSPECT if something from outside of the process
    may still end it. Breakpoints count meanwhile, and so does Ctrl-C."""

    name = "catch"
    words = ("deadlock",)

    def run(self, argument: str, from_tty: bool) -> None:
        words = argument.split()
        try:
            interval = float(words[1]) if len(words) > 1 else 1.0
        except ValueError:
            interval = 0.0
        if words[:1] != ["deadlock"] or len(words) > 2 or not 0.01 <= interval <= 86400:
            raise CommandError(f"Usage: {self.usage()}")
        process = self.process()
        self.session.selected_thread()
        process.runs()
        before: set[tuple[object, ...]] = set()
        while True:
            found = self.verdicts(process)
            if found & before:
                self.show_view(process, "waits")
                return
            before = found
            if not self.run_for(process, interval):
                return

    @staticmethod
    def verdicts(process: Process) -> set[tuple[object, ...]]:
        """The verdicts of this stop, each with the stacks of its threads; none without a runtime."""
        if not process.is_openmp():
            return set()
        report = process.report()
        places = {stack["lwp"]: tuple(frame.get("address") for frame in stack["frames"]) for stack in report["stacks"]}
        return {
            (verdict["verdict"], verdict["situation"], *((lwp, places.get(lwp)) for lwp in verdict["threads"]))
            for verdict in report["verdicts"]
        }

    def run_for(self, process: Process, seconds: float) -> bool:
        """Lets the process run for some time. False if it has stopped by itself."""
        stopped = self.debugger.run_for(process.inferior, seconds)
        if stopped is Stopped.ENDED:
            self.show("The process has ended.")
        elif stopped is Stopped.OTHER:
            self.debugger.show_frame()
        return stopped is Stopped.TIME
