"""Variables of a construct's body in one member of the team or in all."""

from __future__ import annotations

from .command import Command
from .debugger import Debugger, Frame, Thread
from .errors import CommandError, DebuggerError, NoSuchName
from .process import Json, Process
from .selection import members_of


def frames_of(process: Process, lwp: int) -> list[tuple[int, int]]:
    """The program's frames in a thread's stack, as thread and address: its own, then those of the thread that opened its region."""
    stack = next((s for s in process.report()["stacks"] if s["lwp"] == lwp), None)
    frames = stack["frames"] if stack else []
    return [(f["lwp"], int(f["address"], 16)) for f in frames if f.get("lwp") and f.get("address")]


def evaluate(process: Process, lwp: int, expression: str, chosen: bool) -> tuple[str | None, str, str]:
    """Evaluates an expression in the selected thread, in the first frame where it has a value.

    These are the selected frame, if the user has `chosen` it, the program's frames around it, and those
    of the thread that opened the region. Returns the value, where it is from if that is another thread,
    and why there is none. Raises `DebuggerError` if the value cannot be printed."""
    debugger = process.debugger
    frames = frames_of(process, lwp)
    own = {address for holder, address in frames if holder == lwp}
    trouble = "" if own or chosen else "no frame of the program is known"
    is_absent = False
    frame: Frame | None = debugger.selected_frame()
    while frame is not None:
        if chosen or frame.pc in own:
            try:
                value = frame.evaluate(expression)
            except DebuggerError as failure:
                # A variable without a value tells more than a name that another frame does not have.
                if not trouble or (is_absent and not isinstance(failure, NoSuchName)):
                    trouble, is_absent = str(failure), isinstance(failure, NoSuchName)
            else:
                # If it cannot be printed, another frame's variable of the name is not meant.
                return value.text(), "", ""
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
                return value.text(), f"in {where}", ""
    return None, "", trouble


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


class Print(Command):
    """Evaluate an expression in the selected thread, or in each member of its team.
    Usage: openmp print [-all | -team TEAM[.NUMBERS]] [-json] EXPRESSION

      openmp print x        where x has a value: in the selected frame, in the frames
                            around it, or in those of the thread that opened the region,
                            where shared variables live that the compiler did not describe
      openmp print -all x   the same in each member of the team; `openmp print x -all` too

    What is not known in a thread is said, and why."""

    name = "print"
    words = ("-all", "-team", "-json")

    def run(self, argument: str, from_tty: bool) -> None:
        expression, flags, team = self.parse(argument)
        process = self.process()
        process.held()
        threads = self.threads(process, flags, team)
        rows = [self.row(process, thread, expression) for thread in threads]
        if "-json" in flags:
            self.show_json(rows)
            return
        if flags & {"-all", "-team"}:
            for row in rows:
                self.show_row(row)
            return
        row = rows[0]
        if row["value"] is None:
            raise CommandError(row["unknown"])
        self.show(f"{row['value']}" + (f"    ({row['where']})" if row["where"] else ""))

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
        while rest.endswith((" -all", " -json")):
            rest, _, word = rest.rpartition(" ")
            flags.add(word)
            rest = rest.strip()
        if not rest or (team is not None and not team):
            raise CommandError(f"An expression is wanted. Usage: {self.usage()}")
        return rest, flags, team

    def threads(self, process: Process, flags: set[str], team: str | None) -> list[Thread]:
        """Those in which to evaluate."""
        own = self.session.selected_thread()
        if team is not None:
            return members_of(process, team)
        if "-all" not in flags:
            return [own]
        places = process.members(own.lwp)
        if not places:
            raise CommandError("The selected thread is in no team (`openmp threads` lists those that are).")
        lwps = process.team(places[0].runtime, places[0].team)["members"]
        found = [process.state.thread(lwp) for lwp in lwps if lwp is not None]
        return [thread for thread in found if thread is not None]

    @staticmethod
    def row(process: Process, thread: Thread, expression: str) -> Json:
        """The value in one thread."""
        debugger, lwp = process.debugger, thread.lwp
        before = debugger.selected_thread()
        chosen = before is not None and before.lwp == lwp
        with debugger.selected(thread):
            value, where, trouble = evaluate(process, lwp, expression, chosen)
            places = process.members(lwp)
            return {
                "thread": thread.id,
                "lwp": lwp,
                "team": places[0].team if places else None,
                "thread_num": places[0].number if places else None,
                "value": value,
                "where": where or None,
                "unknown": trouble or None,
            }

    def show_row(self, row: Json) -> None:
        """One line."""
        place = f"{row['team']}.{row['thread_num']}" if row["team"] is not None else "-"
        value = row["value"] if row["value"] is not None else f"not known: {row['unknown']}"
        where = f"    ({row['where']})" if row["where"] else ""
        self.show(f"{place:8} Thread {row['thread']:6} {value}{where}")


ALL = (Print,)
