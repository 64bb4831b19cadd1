"""Stopping where regions, tasks and threads begin and end, and running until something happens."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref
from typing import Callable

import gdb

from . import ompd
from .command import Command, has_colours, selected_thread, show, width
from .debugger import lwp_of
from .library import NoLibrary
from .process import EVENTS, NotNow, Process, StopPoint, thread_id
from .session import Session
from .threads import Query, function_at, symbol_at

#: What begins or ends, in the words that stand before what else is known.
WORDS = {
    "parallel-begin": "A parallel region begins",
    "parallel-end": "A parallel region ends",
    "task-begin": "A task begins",
    "task-end": "A task ends",
    "thread-begin": "A thread begins",
    "thread-end": "A thread ends",
    "barrier-begin": "The thread comes to a barrier",
}

#: Seconds within which a process that is interrupted stops.
PATIENCE = 5.0

#: Events that are about the region, and about the task.
OF_REGION = ("parallel-begin", "parallel-end")
OF_TASK = ("task-begin", "task-end")


class Place(gdb.Breakpoint):
    """One of the places of a stop. gdb does not list it: the stop is listed by `openmp break`."""

    def __init__(self, owner: EventStop, process: Process, point: StopPoint) -> None:
        super().__init__(f"*{point.address:#x}", gdb.BP_BREAKPOINT, internal=True)
        self.silent = True
        self.owner = owner
        #: In which it is.
        self.process = process
        self.point = point

    def stop(self) -> bool:
        try:
            return self.owner.reached(self.process, self.point)
        except (NoLibrary, NotNow, ompd.OmpdError, gdb.error) as failure:
            # To go on would be to miss it.
            show(f"Stop {self.owner.number}: whether it counts is not known: {failure}")
            return True


class EventStop:
    """A request to stop when something begins or ends: all places at which that can be, wherever the runtime is; in the process for
    which it was made, and in others that run the same program: its children, if gdb follows them."""

    def __init__(self, process: Process, number: int, events: tuple[str, ...], condition: str, lwp: int | None) -> None:
        self.process = process
        self.number = number
        self.events = events
        #: Evaluated in the thread that gets there.
        self.condition = condition
        #: Only this thread counts.
        self.lwp = lwp
        self.places: list[Place] = []
        self.hits = 0
        #: What began or ended at the last hit.
        self.event = events[0]
        #: Why it has no places yet, or not all.
        self.gaps: list[str] = []

    def is_about(self, process: Process) -> bool:
        """Whether what happens in a process counts."""
        if process is self.process:
            return True
        programs = [one.debugger.inferior.progspace.filename for one in (process, self.process)]
        return self.lwp is None and programs[0] is not None and programs[0] == programs[1]

    def arm(self, process: Process) -> None:
        """Finds the places in a process, which is selected. Raises `NotNow` or `OmpdError` if there is no runtime yet."""
        self.disarm(process)
        process.space()
        points = [point for point in process.stop_points() if point.event in self.events]
        found = [point for point in points if point.point and not point.own]
        # OMPD's own symbols, through which runtimes pass only if asked to, are better than nothing.
        found = found or [point for point in points if point.point]
        self.gaps = sorted({f"{point.runtime}: {point.place}" for point in points if not point.point and not point.own})
        try:
            for _, point in sorted({point.address: point for point in found}.items()):
                self.places.append(Place(self, process, point))
        except gdb.error:
            self.disarm(process)
            raise

    def is_armed(self, process: Process) -> bool:
        """Whether it has places in a process."""
        return any(place.process is process for place in self.places)

    def disarm(self, process: Process | None = None) -> None:
        """Takes the breakpoints away: all, or those in one process."""
        for place in self.places:
            if process in (None, place.process) and place.is_valid():
                place.delete()
        # gdb deletes those of an inferior that is removed.
        self.places = [place for place in self.places if place.is_valid()]

    def reached(self, process: Process, point: StopPoint) -> bool:
        """A thread is at one of the places: whether to stop."""
        thread = selected_thread()
        # Since the last stop that gdb has told of, the process has run.
        process.debugger.ran()
        if self.lwp is not None and lwp_of(thread) != self.lwp:
            return False
        counts = process.counts(lwp_of(thread))
        if counts is None and point.condition is not None:
            show(f"Stop {self.number}: whether this counts is not known. It does if {point.condition}.")
        if counts is False:
            return False
        if self.condition and not gdb.parse_and_eval(self.condition):
            return False
        self.hits += 1
        self.event = point.event
        return True

    def describe(self) -> str:
        """One line for the list."""
        text = f"{self.number}  {', '.join(self.events)}"
        if self.condition:
            text += f" if {self.condition}"
        places = len(self.places)
        where = f"{places} place{'s' * (places != 1)}" if places else "waits for a runtime to be loaded"
        return f"{text}  ({where}; {self.hits} hit{'s' * (self.hits != 1)})"


class Stops:
    """All stops of this gdb."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.all: list[EventStop] = []
        self._next = 1
        gdb.events.stop.connect(self._stopped)
        gdb.events.new_objfile.connect(self._new_objfile)
        gdb.events.exited.connect(lambda event: self._disarm(event.inferior))

    def add(self, process: Process, events: tuple[str, ...], condition: str = "", lwp: int | None = None) -> EventStop:
        """A new one; it is armed at once if there is a runtime, and else when one is loaded."""
        stop = EventStop(process, self._next, events, condition, lwp)
        self._next += 1
        self.all.append(stop)
        try:
            stop.arm(process)
        except (NotNow, ompd.OmpdError):
            return stop
        except gdb.error:
            self.remove(stop)
            raise
        if not stop.places:
            self.remove(stop)
            reasons = "\n  ".join(stop.gaps) or "no runtime tells of it"
            raise gdb.GdbError(f"There is no place to stop at for {', '.join(events)}:\n  {reasons}")
        return stop

    def remove(self, stop: EventStop) -> None:
        """Takes one away."""
        stop.disarm()
        self.all.remove(stop)

    def _new_objfile(self, event: gdb.NewObjFileEvent) -> None:
        file = event.new_objfile
        if file.progspace is not None and file.filename == file.progspace.filename:
            # The program has become another, or begins anew: nothing lies where it was.
            for inferior in gdb.inferiors():
                if inferior.progspace == file.progspace:
                    self._disarm(inferior)
        if gdb.selected_inferior().progspace == file.progspace:
            # It may be another runtime, beside one that is there.
            self._arm(anew=True)

    def _arm(self, anew: bool) -> None:
        """Finds places in the selected inferior: for stops that have none there, and for the others as well if `anew`."""
        inferior = gdb.selected_inferior()
        if not self.all or inferior.pid == 0:
            return
        # If there is no runtime yet, that is for later.
        with suppress(NotNow, ompd.OmpdError, NoLibrary, gdb.error):
            process = self.session.process(inferior)
            for stop in self.all:
                if stop.is_about(process) and (anew or not stop.is_armed(process)):
                    stop.arm(process)

    def _disarm(self, inferior: gdb.Inferior) -> None:
        for process in self.session.known():
            if process.debugger.inferior.num == inferior.num:
                for stop in self.all:
                    stop.disarm(process)

    def _stopped(self, event: gdb.StopEvent) -> None:
        for place in getattr(event, "breakpoints", []):
            if isinstance(place, Place):
                show(told(place.process, place.owner))
                return
        # Of a program that has its runtime built in, no file tells that it is loaded.
        self._arm(anew=False)


def told(process: Process, stop: EventStop) -> str:
    """What begins or ends at this stop, with all that is known of it."""
    thread = selected_thread()
    lwp = lwp_of(thread)
    process.debugger.ran()
    event = stop.event
    lines = [f"{WORDS[event]} (Thread {thread_id(thread)}, LWP {lwp})."]
    place = source_place([place.location for place in stop.places if place.is_valid()])
    if place is not None:
        lines.append(f"at: {place}")
    if event in OF_REGION:
        lines += region(process, lwp)
    if event in OF_TASK or event in OF_REGION:
        lines += task(process, lwp, "it is" if event in OF_TASK else "met by")
    if event in ("thread-begin", "thread-end", "barrier-begin"):
        lines += thread_lines(process, lwp)
    return "\n  ".join(lines)


def source_place(places: list[str | None]) -> str | None:
    """Where the selected thread is in code that has its source, seen from the inside, outside of the files that have these places: a
    runtime may have its source as well."""
    runtimes = {gdb.solib_name(int(place.lstrip("*"), 16)) for place in places if place} - {None}
    frame: gdb.Frame | None = gdb.newest_frame()
    for _ in range(32):
        if frame is None:
            return None
        place = frame.find_sal()
        if place.symtab is not None and place.line and gdb.solib_name(frame.pc()) not in runtimes:
            return f"{frame.name() or '??'} ({place.symtab.filename}:{place.line})"
        frame = frame.older()
    return None


def asked(ask: Callable[[], object]) -> str:
    """An answer in words, or that it is not known."""
    try:
        found = ask()
    except ompd.OmpdError:
        return "not known"
    return "not known" if found is None else str(found)


def code_at(address: int) -> str:
    """A function by its address, with its place in the source."""
    name = symbol_at(address) or f"{address:#x}"
    place = gdb.find_pc_line(address)
    return f"{name} ({place.symtab.filename}:{place.line})" if place.symtab is not None else name


def region_function(process: Process, lwp: int) -> int:
    """The function that the compiler made of the body of the innermost region. Raises `OmpdError` if it is not known."""
    address = ompd.Address()
    with process.current(lwp, "parallel") as handle:
        process.library.call("ompdx_get_parallel_function", handle, byref(address))
    return int(address.address)


def region(process: Process, lwp: int) -> list[str]:
    """The innermost region of a thread."""
    query = Query(process, lwp)
    return [
        f"threads: {asked(lambda: query.icv('team-size-var'))}",
        f"function: {asked(lambda: code_at(region_function(process, lwp)))}",
    ]


def task_function(process: Process, lwp: int) -> int:
    """The function of the task that a thread executes. Raises `OmpdError` if it is not known."""
    address = ompd.Address()
    with process.current(lwp, "task") as handle:
        process.library.call("ompd_get_task_function", handle, byref(address))
    return int(address.address)


def named_task(process: Process, lwp: int) -> str:
    """The task that a thread executes, by its function."""
    try:
        return f"the task of {code_at(task_function(process, lwp))}"
    except ompd.OmpdError:
        outside = asked(lambda: Query(process, lwp).icv("levels-var")) == "0"
        return "the initial task" if outside else "a task whose function is not known"


def task(process: Process, lwp: int, relation: str) -> list[str]:
    """The task that a thread executes, and its frames."""
    library = process.library
    lines = []
    try:
        with process.current(lwp, "task") as handle:
            lines.append(f"{relation}: {named_task(process, lwp)}")
            enter, leave = ompd.FrameInfo(), ompd.FrameInfo()
            library.call("ompd_get_task_frame", handle, byref(leave), byref(enter))
            places = [("called the runtime", enter), ("was called", leave)]
            text = [f"{what} at {f.frame_address.address:#x}" for what, f in places if f.frame_address.address]
            lines.append(f"its frames: {', '.join(text) or 'none'}")
    except ompd.OmpdError:
        lines.append("its frames: not known" if lines else f"{relation}: not known")
    return lines


def thread_lines(process: Process, lwp: int) -> list[str]:
    """Where a thread is in OpenMP."""
    query = Query(process, lwp)
    try:
        return [f"thread {query.icv('thread-num-var')} of {query.icv('team-size-var')}, level {query.icv('levels-var')}"]
    except ompd.OmpdError:
        return []


class Break(Command):
    """Stop when a parallel region, a task or a thread begins or ends; or list these stops.
    Usage: openmp break [EVENT [if CONDITION]]

    EVENT is parallel-begin, parallel-end, task-begin, task-end, thread-begin, thread-end
    or barrier-begin. The condition is evaluated in the thread that gets there, where
    $_omp_level() and its like can be used. If no runtime is loaded yet, it holds as soon
    as one is, also in what the process becomes by exec, and in children that gdb follows.
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
            show("\n".join(lines) if lines else "There are no stops (`openmp break EVENT` makes one).")
            return
        if event not in self.words:
            raise gdb.GdbError(f"{event} is no event. Usage: {self.usage()}\n  EVENT: {', '.join(self.words)}")
        keyword, _, condition = rest.strip().partition(" ")
        if rest.strip() and (keyword != "if" or not condition.strip()):
            raise gdb.GdbError(f"Behind the event comes `if` and a condition. Usage: {self.usage()}")
        process = self.process()
        process.runs()
        stop = self.stops.add(process, (event,), condition.strip())
        show(f"Stop {stop.describe()}")
        for gap in stop.gaps:
            show(f"  not met: {gap}")


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
            raise gdb.GdbError(f"There is no stop {', '.join(wrong)} (`openmp break` lists them).")
        for number in rest or known:
            self.stops.remove(known[number])


def go_on() -> bool:
    """Lets the process run until it stops again. False if it has ended."""
    try:
        quiet = gdb.parameter("suppress-cli-notifications") is not None
    except RuntimeError:
        quiet = False  # That is not in gdb 10 and 11: there the stop is printed.
    gdb.execute("with suppress-cli-notifications on -- continue" if quiet else "continue", to_string=True)
    return gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None


class Running(Command):
    """A command that lets the process run until a thread gets somewhere."""

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    def until(self, process: Process, events: tuple[str, ...]) -> str | None:
        """Runs until the selected thread is at one of the events; which. `None` if it has stopped for another reason."""
        process.held()
        process.runs()
        lwp = lwp_of(selected_thread())
        stop = self.stops.add(process, events, lwp=lwp)
        try:
            alive = go_on()
            if not alive:
                show("The process has ended.")
                return None
            if not stop.hits:
                gdb.execute("frame")
                return None
            return stop.event
        finally:
            self.stops.remove(stop)


def body_of(function: int) -> int:
    """The function with the source of a construct's body: clang has the runtime call another one, which does nothing but call that."""
    found = function_at(function)
    if found is None:
        return function
    block, symbol = found
    architecture = gdb.selected_frame().architecture()
    calls = []
    for instruction in architecture.disassemble(block.start, block.end - 1):
        mnemonic, _, operands = instruction["asm"].partition(" ")
        if mnemonic in ("call", "callq", "bl"):
            calls.append(operands.split()[0])
    if len(calls) != 1 or not calls[0].startswith("0x"):
        return function
    target = int(calls[0], 16)
    called = function_at(target)
    if called is None or called[0].start != target or called[1].symtab.filename != symbol.symtab.filename:
        return function
    lines = {entry.line for entry in symbol.symtab.linetable() if block.start <= entry.pc < block.end and entry.line}
    # It has no line but the construct's, and what it calls begins there or at the block behind it.
    return target if lines == {symbol.line} and called[1].line in (symbol.line, symbol.line + 1) else function


def behind_prologue(function: int) -> int:
    """The first address of a function at which its arguments are where its source has them, by its line table."""
    place = gdb.find_pc_line(function)
    if place.symtab is None:
        return function
    found = function_at(function)
    end = found[0].end if found is not None else function
    lines = [entry for entry in place.symtab.linetable() if function < entry.pc < end and entry.line]
    return min((entry.pc for entry in lines), default=function)


class Step(Running):
    """Run until the selected thread is in the next parallel region or task that it begins.
    Usage: openmp step

    It stops at the first line of the region's or task's body. Breakpoints count meanwhile,
    and so does Ctrl-C."""

    name = "step"

    def run(self, argument: str, from_tty: bool) -> None:
        process = self.process()
        lwp = lwp_of(selected_thread())
        event = self.until(process, ("parallel-begin", "task-begin"))
        if event is None:
            return
        try:
            function = region_function(process, lwp) if event in OF_REGION else task_function(process, lwp)
        except ompd.OmpdError:
            show("The runtime does not tell which function is the body: the process is where it begins.")
            gdb.execute("frame")
            return
        body = gdb.Breakpoint(f"*{behind_prologue(body_of(function)):#x}", gdb.BP_BREAKPOINT, internal=True)
        body.silent = True
        body.thread = selected_thread().global_num
        try:
            go_on()
        finally:
            if body.is_valid():
                body.delete()
        gdb.execute("frame")


class Until(Running):
    """Run until the selected thread comes to a barrier.
    Usage: openmp until barrier

    An explicit one, one at the end of a worksharing construct, or the end of the region."""

    name = "until"
    words = ("barrier",)

    def run(self, argument: str, from_tty: bool) -> None:
        if argument.split() != ["barrier"]:
            raise gdb.GdbError(f"Usage: {self.usage()}")
        if self.until(self.process(), ("barrier-begin",)) is not None:
            gdb.execute("frame")


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
            raise gdb.GdbError(f"Usage: {self.usage()}")
        process = self.process()
        selected_thread()
        process.runs()
        before: set[tuple[object, ...]] = set()
        while True:
            found = self.verdicts(process)
            if found & before:
                text = process.text("waits", width(), False, has_colours())
                show(text)
                return
            before = found
            if not self.run_for(process, interval):
                return

    @staticmethod
    def verdicts(process: Process) -> set[tuple[object, ...]]:
        """The verdicts of this moment, each with its threads and where they are; none as long as there is no runtime."""
        if not process.is_openmp():
            return set()
        report = process.report()
        places = {stack["lwp"]: tuple(frame.get("address") for frame in stack["frames"]) for stack in report["stacks"]}
        return {
            (verdict["verdict"], verdict["situation"], *((lwp, places.get(lwp)) for lwp in verdict["threads"]))
            for verdict in report["verdicts"]
        }

    @staticmethod
    def run_for(process: Process, seconds: float) -> bool:
        """Lets the process run for some time. False if it has stopped by itself."""
        inferior = process.debugger.inferior
        why: list[gdb.StopEvent] = []
        over = threading.Event()

        def complain() -> None:
            # gdbserver interrupts the group of processes that the process leads, and does nothing if it leads none.
            # What gdb prints meanwhile is kept back.
            if not over.wait(PATIENCE):
                os.write(2, b"The process was to stop for a moment, and does not. If gdbserver is attached to it, send it SIGINT.\n")

        def interrupt() -> None:
            if over.wait(seconds):
                return
            connection = getattr(inferior, "connection", None)
            if connection is not None and connection.type == "native":
                # That is what gdb would do, without a way through its queue, in which nothing may be left when gdb ends.
                with suppress(ProcessLookupError):
                    os.kill(inferior.pid, signal.SIGINT)
            else:
                gdb.post_event(lambda: None if over.is_set() else gdb.execute("interrupt"))
            complain()

        gdb.events.stop.connect(why.append)
        timer = threading.Thread(target=interrupt, daemon=True)
        # Signals are for gdb's own thread.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        timer.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        try:
            with stopped_by_sigint():
                alive = go_on()
        finally:
            over.set()
            timer.join()
            gdb.events.stop.disconnect(why.append)
        if not alive:
            show("The process has ended.")
            return False
        ours = any(isinstance(event, gdb.SignalEvent) and event.stop_signal == "SIGINT" for event in why)
        if not ours:
            gdb.execute("frame")
        return ours


@contextmanager
def stopped_by_sigint() -> Iterator[None]:
    """Has SIGINT stop the process, and not get to it, whatever was said of it before."""
    row = gdb.execute("info signals SIGINT", to_string=True).splitlines()[-1].split()
    words = [("" if word == "Yes" else "no") + name for word, name in zip(row[1:4], ("stop", "print", "pass"))]
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"handle SIGINT {' '.join(words)}", to_string=True)


def add(session: Session) -> Stops:
    """Adds the commands."""
    stops = Stops(session)
    for command in (Break, Delete, Step, Until):
        command(session, stops)
    Catch(session)
    return stops
