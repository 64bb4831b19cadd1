"""Variables of a construct's body in one member of the team or in all."""

from __future__ import annotations

from typing import NamedTuple

from .command import Command
from .debugger import Debugger, Frame, Thread
from .errors import CommandError, DebuggerError, NoSuchName
from .process import Json, Process
from .selection import numbered, ranges

#: Columns for the numbers of members that have a value; longer lists move the value.
WIDEST = 24


def frames_of(process: Process, lwp: int) -> list[tuple[int, int]]:
    """The program's frames in a thread's stack, as thread and address: its own, then those of the thread that opened its region."""
    stack = next((s for s in process.report()["stacks"] if s["lwp"] == lwp), None)
    frames = stack["frames"] if stack else []
    return [(f["lwp"], int(f["address"], 16)) for f in frames if f.get("lwp") and f.get("address")]


def evaluate(process: Process, lwp: int, expression: str, like: str | None) -> tuple[str | None, str, str]:
    """Evaluates an expression in the selected thread, in the first frame where it has a value.

    These are the selected frame and the program's frames around it, and then those of the thread that
    opened the region. `like` is the function of the frame that the user has selected in another thread:
    if this thread is in it too, the first of its frames of that function takes the place of the selected
    one, so that names mean the same in both. Without such a frame it begins with the innermost of the
    program. Returns the value, where it is from if another frame's variable may be meant, and why there
    is none. Raises `DebuggerError` if the value cannot be printed."""
    debugger = process.debugger
    frames = frames_of(process, lwp)
    own = {address for holder, address in frames if holder == lwp}
    chosen = like is None
    absent, lost = "" if own or chosen else "no frame of the program is known", ""
    frame: Frame | None = debugger.selected_frame()
    if not chosen:
        frame = frame_like(frame, like, own) or frame
    while frame is not None:
        if chosen or frame.pc in own:
            try:
                value = frame.evaluate(expression)
            except NoSuchName as failure:
                absent = absent or str(failure)
            except DebuggerError as failure:
                # Further out there may be a variable of the name: the same, or what a private one was made from.
                lost = lost or str(failure)
            else:
                # If it cannot be printed, another frame's variable of the name is not meant.
                return value.text(), f"in {frame.name or '??'}; {lost} here" if lost else "", ""
        # Variables of the runtime's and the C library's functions are not meant.
        chosen = False
        frame = frame.older()
    for holder, address in frames:
        thread = process.state.thread(holder) if holder != lwp else None
        if thread is None:
            continue
        with debugger.selected(thread):
            same = frames_at(debugger, address)
            where = f"Thread {thread.id}, {same[0].name or '??'}" if same else ""
            if len(same) > 1:
                return None, "", f"which of {len(same)} calls in {where} has opened the region is not known"
            for frame in same:
                try:
                    value = frame.evaluate(expression)
                except DebuggerError:
                    continue
                return value.text(), f"in {where}" + (f"; {lost} here" if lost else ""), ""
    # A variable without a value tells more than a name that another frame does not have.
    return None, "", lost or absent


def frame_like(frame: Frame | None, function: str | None, own: set[int]) -> Frame | None:
    """The first of the program's frames from this one on that is of a function."""
    while frame is not None and not (frame.pc in own and frame.name == function):
        frame = frame.older()
    return frame


def frames_at(debugger: Debugger, address: int) -> list[Frame]:
    """The frames of the selected thread that execute at an address, or whose callee returns to it."""
    found = []
    frame: Frame | None = debugger.newest_frame()
    while frame is not None:
        # What is inlined has the address of what it is inlined into.
        if frame.pc == address and not frame.is_inline:
            found.append(frame)
        frame = frame.older()
    return found


class Place(NamedTuple):
    """A member of a team. Both are `None` for a thread outside of all teams."""

    #: The team as users name it: `2`, or `1:2` where several runtimes have teams.
    team: str | None
    number: int | None


class Print(Command):
    """Evaluate an expression in the selected thread, or in each member of its team.
    Usage: openmp print [-all | -team TEAM[.NUMBERS]] [-each | -json] EXPRESSION

      openmp print x        where x has a value: in the selected frame, in the frames
                            around it, or in those of the thread that opened the region,
                            where shared variables live that the compiler did not describe
      openmp print -all x   the same in each member of the team; `openmp print x -all` too

    In other members the frame of the selected function counts, if they are in it.
    The value of a variable that is optimized out there may be that of another one
    with its name further out: then the frame is named.

    Members with the same value share a line, which begins with their numbers: 2.0-2,5.
    These can be given to -team, `openmp apply` and, if it is one, `openmp thread`.
    With -each, every member has a line, also without -all.
    A thread without the value has the reason."""

    name = "print"
    words = ("-all", "-team", "-each", "-json")

    def run(self, argument: str, from_tty: bool) -> None:
        expression, flags, team = self.parse(argument)
        process = self.process()
        process.held()
        threads = self.threads(process, flags, team)
        debugger = process.debugger
        like = (debugger.selected_frame().name or "") if debugger.selected_thread() is not None else ""
        rows = [self.row(process, thread, place, expression, like) for place, thread in threads]
        if "-json" in flags:
            self.show_json(rows)
        elif "-each" in flags:
            for row, (place, _) in zip(rows, threads):
                self.show(f"{f'{place.team}.{place.number}':8} Thread {row['thread'] or '-':6} {value_text(row)}")
        elif flags & {"-all", "-team"}:
            self.show_groups(rows, threads[0][0].team)
        elif rows[0]["value"] is None:
            raise CommandError(rows[0]["unknown"])
        else:
            self.show(value_text(rows[0]))

    def parse(self, argument: str) -> tuple[str, set[str], str | None]:
        """The expression, the options, and the team."""
        flags: set[str] = set()
        team = None
        rest = argument.strip()
        while rest.startswith("-"):
            word, _, behind = rest.partition(" ")
            if word not in self.words:
                break
            flags.add(word)
            rest = behind.strip()
            if word == "-team":
                team, _, rest = rest.partition(" ")
                rest = rest.strip()
        while rest.endswith((" -all", " -each", " -json")):
            rest, _, word = rest.rpartition(" ")
            flags.add(word)
            rest = rest.strip()
        if not rest or (team is not None and not team):
            raise CommandError(f"An expression is wanted. Usage: {self.usage()}")
        return rest, flags, team

    def threads(self, process: Process, flags: set[str], team: str | None) -> list[tuple[Place, Thread | None]]:
        """Those in which to evaluate."""
        if team is None:
            own = self.session.selected_thread()
            places = process.members(own.lwp)
            prefix = f"{places[0].runtime}:" if places and len(process.busy()) > 1 else ""
            if not flags & {"-all", "-each"}:
                place = Place(f"{prefix}{places[0].team}", places[0].number) if places else Place(None, None)
                return [(place, own)]
            if not places:
                raise CommandError("The selected thread is in no team (`openmp threads` lists those that are).")
            team = f"{prefix}{places[0].team}"
        name = team.partition(".")[0]
        return [(Place(name, number), thread) for number, thread in numbered(process, team).items()]

    @staticmethod
    def row(process: Process, thread: Thread | None, place: Place, expression: str, like: str) -> Json:
        """The value in one thread."""
        debugger = process.debugger
        value, where, trouble = None, "", "the thread was not found in the process"
        if thread is not None:
            before = debugger.selected_thread()
            chosen = before is not None and before.lwp == thread.lwp
            with debugger.selected(thread):
                value, where, trouble = evaluate(process, thread.lwp, expression, None if chosen else like)
        return {
            "thread": thread.id if thread is not None else None,
            "lwp": thread.lwp if thread is not None else None,
            "team": int(place.team.rpartition(":")[2]) if place.team is not None else None,
            "thread_num": place.number,
            "value": value,
            "where": where or None,
            "unknown": trouble or None,
        }

    def show_groups(self, rows: list[Json], team: str | None) -> None:
        """A line for each value, with the members that have it; the one with the lowest number first."""
        groups: dict[str, list[int]] = {}
        for row in rows:
            groups.setdefault(value_text(row), []).append(row["thread_num"])
        found = [(f"{team}.{ranges(numbers)}", text) for text, numbers in groups.items()]
        width = min(max((len(members) for members, _ in found), default=0), WIDEST)
        for members, text in found:
            # Values of several lines stay in their column.
            self.show(f"{members:{width}}  " + text.replace("\n", "\n" + " " * (width + 2)))


def value_text(row: Json) -> str:
    """The value, with where it is from if that is another thread, or why there is none."""
    if row["value"] is None:
        return f"unknown: {row['unknown']}"
    return f"{row['value']}" + (f"    ({row['where']})" if row["where"] else "")


ALL = (Print,)
