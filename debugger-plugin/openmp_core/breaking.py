"""Commands about stops: make, list, change, save and load them."""

from __future__ import annotations

import os
from typing import NamedTuple

from .command import Command
from .errors import CommandError, DebuggerError
from .process import EVENTS, Process
from .selection import RANGE
from .session import PREFIX, Session
from .stops import CONTINUE, EventStop, Stops

#: What begins a line of a file with a stop, and with a command of the stop above.
LINE = f"{PREFIX} break"
COMMAND = f"{PREFIX} commands last"
HEAD = f"# Stops of OpenMP. `{PREFIX} load FILE` makes them again, and so does the debugger's command that executes a file.\n"


#: What debuggers take for `continue`.
SHORT = ("c", "cont", "process continue", CONTINUE)


class Wanted(NamedTuple):
    """A stop as the user has described it."""

    event: str
    condition: str
    is_temporary: bool
    is_enabled: bool
    commands: tuple[str, ...] = ()


class StopCommand(Command):
    """A command about stops."""

    def __init__(self, session: Session, stops: Stops) -> None:
        self.stops = stops
        super().__init__(session)

    def chosen(self, words: list[str]) -> list[EventStop]:
        """The stops with these numbers; all without numbers. Raises `CommandError` if one is not there."""
        known = {stop.number: stop for stop in self.stops.listed()}
        found: list[int] = []
        for word in words:
            bounds = RANGE.fullmatch(word)
            first, last = (int(bounds["first"]), int(bounds["last"] or bounds["first"])) if bounds is not None else (0, -1)
            numbers = [number for number in known if first <= number <= last]
            if not numbers:
                raise CommandError(f"There is no stop {word} (`{LINE}` lists them).")
            found += numbers
        repeated = sorted({number for number in found if found.count(number) > 1})
        if repeated:
            names = ", ".join(str(number) for number in repeated)
            raise CommandError(f"Stop {names} is named more than once: nothing was changed.")
        return [known[number] for number in (found if words else known)]


class Break(StopCommand):
    """Stop when a region, a task or a thread begins or ends, or at a construct; or list these stops.
    Usage: openmp break [-temporary] [-disabled] [EVENT [if CONDITION]]

    EVENT is parallel-begin, parallel-end, task-begin, task-end, thread-begin, thread-end,
    barrier-begin, lock-acquire, critical-acquire, taskwait-begin, worksharing-begin (loops
    and sections) or single-begin. At locks and constructs, it stops before the thread waits.
    The condition is evaluated in the thread that gets there, where
    {level} and its like can be used; variables of the program's functions are not known there.
    If no runtime is loaded yet, it holds as soon
    as one is, also in what the process becomes by exec, and in children that {debugger} follows.
    No preparation of the process is needed.

      -temporary  the stop ends with its first hit
      -disabled   the stop counts only after `openmp enable`

    Without EVENT, it lists the stops with their numbers and hits. A number stays
    with its stop, and is not used again. `openmp delete`, `openmp disable`, `openmp enable`,
    `openmp condition` and `openmp commands` change stops. `openmp save` and `openmp load` keep
    them in a file."""

    name = "break"
    options = ("-temporary", "-disabled")
    words = tuple(EVENTS.values())

    def run(self, argument: str, from_tty: bool) -> None:
        if not argument.strip():
            lines = [stop.describe() for stop in self.stops.listed()]
            self.show("\n".join(lines) if lines else "There are no stops (`openmp break EVENT` makes one).")
            return
        wanted = self.parse(argument)
        process = self.process()
        process.runs()
        self.make(process, wanted)

    @classmethod
    def parse(cls, argument: str) -> Wanted:
        """The stop that a user describes."""
        flags = set()
        event, _, rest = argument.strip().partition(" ")
        while event.startswith("-"):
            if event not in cls.options:
                raise CommandError(f"Unknown option {event}. Usage: {cls.usage()}")
            flags.add(event)
            event, _, rest = rest.strip().partition(" ")
        if event not in cls.words:
            what = f"{event} is no event" if event else "An event is wanted"
            raise CommandError(f"{what}. Usage: {cls.usage()}\n  EVENT: {', '.join(cls.words)}")
        keyword, _, condition = rest.strip().partition(" ")
        if rest.strip() and (keyword != "if" or not condition.strip()):
            raise CommandError(f"Behind the event comes `if` and a condition. Usage: {cls.usage()}")
        return Wanted(event, condition.strip(), "-temporary" in flags, "-disabled" not in flags)

    def make(self, process: Process, wanted: Wanted) -> None:
        """Makes a stop, and shows it."""
        stop = self.stops.add(process, (wanted.event,), wanted.condition, is_temporary=wanted.is_temporary, is_enabled=wanted.is_enabled)
        stop.command(wanted.commands)
        self.show(f"Stop {stop.describe()}")
        for gap in stop.gaps:
            self.show(f"  not met: {gap}")


class Delete(StopCommand):
    """Delete stops that `openmp break` has made.
    Usage: openmp delete [NUMBER | FIRST-LAST]...

    Without numbers, all of them."""

    name = "delete"

    def run(self, argument: str, from_tty: bool) -> None:
        for stop in self.chosen(self.split(argument)[1]):
            self.stops.remove(stop)


class Disable(StopCommand):
    """Disable stops of `openmp break`: they stay in the list, and stop nothing.
    Usage: openmp disable [NUMBER | FIRST-LAST]...

    Without numbers, all of them."""

    name = "disable"
    enables = False

    def run(self, argument: str, from_tty: bool) -> None:
        for stop in self.chosen(self.split(argument)[1]):
            stop.enable(self.enables)


class Enable(Disable):
    """Enable stops that `openmp disable` has disabled.
    Usage: openmp enable [NUMBER | FIRST-LAST]...

    Without numbers, all of them."""

    name = "enable"
    enables = True


class Condition(StopCommand):
    """Change the condition of a stop of `openmp break`.
    Usage: openmp condition NUMBER [CONDITION]

      openmp condition 1 {level} == 2   stop 1 counts where this is true
      openmp condition 1                stop 1 always counts

    The number of hits stays."""

    name = "condition"

    def run(self, argument: str, from_tty: bool) -> None:
        number, _, condition = argument.strip().partition(" ")
        if not number:
            raise CommandError(f"The number of a stop is wanted. Usage: {self.usage()}")
        [stop, *more] = self.chosen([number])
        if more:
            raise CommandError(f"One stop is wanted. Usage: {self.usage()}")
        stop.condition = condition.strip()
        self.show(f"Stop {stop.describe()}")


class Commands(StopCommand):
    """Have {debugger} execute commands when a stop of `openmp break` is met.
    Usage: openmp commands NUMBER | last [COMMAND]

      openmp commands 1 {frames}      one command more for stop 1
      openmp commands 1 continue  the process continues behind the commands before
      openmp commands last {locals}   for the stop that was made last
      openmp commands 1           stop 1 has no commands

    They are executed in the order in which they were given, behind what is shown of the stop,
    in the thread that has come there and the program's frame. If one fails, those behind it
    are left out. A command that lets the process run is the last one, and should be
    continue."""

    name = "commands"
    words = ("last",)

    def run(self, argument: str, from_tty: bool) -> None:
        number, _, command = argument.strip().partition(" ")
        if number == "last":
            stops = self.stops.listed()[-1:]
            if not stops:
                raise CommandError("There are no stops (`openmp break EVENT` makes one).")
        elif number.isascii() and number.isdecimal():
            stops = self.chosen([number])
        else:
            raise CommandError(f"The number of one stop is wanted. Usage: {self.usage()}")
        command = command.strip()
        for stop in stops:
            if not command:
                stop.command([])
            elif stop.continues():
                raise CommandError(
                    f"Behind {CONTINUE}, stop {stop.number} executes nothing: `{PREFIX} {self.name} {stop.number}` removes its commands."
                )
            else:
                stop.command([*stop.commands, whole(command)])
            self.show(f"Stop {stop.describe()}")


class Save(StopCommand):
    """Save the stops of `openmp break` in a file, as commands that make them again.
    Usage: openmp save FILE

    Hits are not saved. A file of that name is replaced. `openmp load FILE` makes the stops again."""

    name = "save"

    def run(self, argument: str, from_tty: bool) -> None:
        path = file_of(self, argument)
        stops = self.stops.listed()
        if not stops:
            raise CommandError("There are no stops to save (`openmp break EVENT` makes one).")
        lines = "".join(f"{line}\n" for stop in stops for line in lines_of(stop))
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(HEAD + lines)
        except OSError as failure:
            raise CommandError(f"The stops were not saved in {path}: {failure.strerror}.") from failure
        self.show(f"{len(stops)} stop{'s' * (len(stops) != 1)} saved in {path}.")


class Load(StopCommand):
    """Make the stops again that `openmp save` has saved in a file.
    Usage: openmp load FILE

    They get new numbers, beside the stops that are there. Nothing is made if a line is
    something else than `openmp break` with a stop, or `openmp commands last` behind one. {debugger}
    executes these when a stop is met: read the file of somebody else before. A stop without a place to stop at is reported."""

    name = "load"

    def run(self, argument: str, from_tty: bool) -> None:
        path = file_of(self, argument)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError as failure:
            raise CommandError(f"The stops were not loaded from {path}: {failure.strerror}.") from failure
        wanted: list[tuple[int, Wanted]] = []
        for number, line in enumerate(lines, 1):
            if wanted and line.strip().startswith(f"{COMMAND} "):
                before, stop = wanted.pop()
                if stop.commands[-1:] == (CONTINUE,):
                    raise CommandError(f"{path}:{number}: Behind {CONTINUE}, nothing is executed. Nothing was loaded.")
                command = whole(line.strip()[len(COMMAND) :].strip())
                wanted.append((before, stop._replace(commands=(*stop.commands, command))))
            elif is_command(line):
                wanted.append((number, self.parse(path, number, line)))
        process = self.process()
        process.runs()
        maker = Break(self.session, self.stops)
        refused = []
        for number, one in wanted:
            try:
                maker.make(process, one)
            except (CommandError, DebuggerError) as failure:
                refused.append(f"{path}:{number}: {failure}")
        if refused:
            raise CommandError("\n".join(refused))

    @staticmethod
    def parse(path: str, number: int, line: str) -> Wanted:
        """The stop of a line."""
        command, _, rest = line.strip().partition(f"{LINE} ")
        if command or not rest:
            raise CommandError(f"{path}:{number}: `{LINE} EVENT` is wanted. Nothing was loaded.")
        try:
            return Break.parse(rest)
        except CommandError as failure:
            raise CommandError(f"{path}:{number}: {failure}\nNothing was loaded.") from None


def whole(command: str) -> str:
    """A command of the user, by its full name if it has the process continue."""
    return CONTINUE if " ".join(command.split()) in SHORT else command


def lines_of(stop: EventStop) -> list[str]:
    """The commands that make a stop again."""
    return [f"{LINE} {stop.text()}", *(f"{COMMAND} {command}" for command in stop.commands)]


def is_command(line: str) -> bool:
    """True for a line that is neither empty nor a comment."""
    return bool(line.strip()) and not line.strip().startswith("#")


def file_of(command: Command, argument: str) -> str:
    """The file that a user names."""
    _, words = command.split(argument)
    if len(words) != 1:
        raise CommandError(f"One file is wanted. Usage: {command.usage()}")
    return os.path.expanduser(words[0])


ALL = (Break, Delete, Disable, Enable, Condition, Commands, Save, Load)
