"""Variables of a construct's body, also those that its function lost, in one member of the team or in all."""

from __future__ import annotations

import gdb

from .command import Command, selected_thread, show, show_json
from .debugger import selected
from .process import Json, Process, thread_id
from .threads import members_of


def frames_of(process: Process, lwp: int) -> list[tuple[int, int]]:
    """Where the names of the source may have values, from the inside out: threads and addresses of their frames. Behind a thread's own
    frames come those of the thread that opened its region."""
    stack = next((s for s in process.report()["stacks"] if s["lwp"] == lwp), None)
    frames = stack["frames"] if stack else []
    return [(f["lwp"], int(f["address"], 16)) for f in frames if f.get("lwp") and f.get("address")]


def evaluate(process: Process, lwp: int, expression: str) -> tuple[gdb.Value | None, str, str]:
    """The value of an expression in a thread: in the frame that is selected, if it is that thread, and else in the innermost that has
    it. The value, where it is from if not from the thread's own frames, and why there is none."""
    trouble = "no frame of its source is known"
    own = gdb.selected_thread()
    if own is not None and own.ptid[1] == lwp:
        try:
            return value_of(expression), "", ""
        except gdb.error as failure:
            trouble = str(failure)
    for holder, address in frames_of(process, lwp):
        thread = process.debugger.thread(holder)
        if thread is None:
            continue
        with selected(thread):
            frame: gdb.Frame | None = gdb.newest_frame()
            while frame is not None and frame.pc() != address:
                frame = frame.older()
            if frame is None:
                continue
            frame.select()
            try:
                value = value_of(expression)
            except gdb.error as failure:
                # The innermost frame says best what is wrong.
                trouble = trouble if trouble.startswith("No symbol") or holder != lwp else str(failure)
                continue
            where = "" if holder == lwp else f"in Thread {thread_id(thread)}, {frame.name() or '??'}"
            return value, where, ""
    return None, "", trouble


def value_of(expression: str) -> gdb.Value:
    """The value of an expression in the selected frame. Raises `gdb.error` if it has none there."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        # clang makes references of shared variables.
        value = value.referenced_value()
    if value.is_optimized_out:
        raise gdb.error(f"{expression} is optimized out")
    value.fetch_lazy()
    return value


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
            show_json(rows)
            return
        if flags & {"-all", "-team"}:
            for row in rows:
                self.show(row)
            return
        row = rows[0]
        if row["value"] is None:
            raise gdb.GdbError(row["unknown"])
        show(f"{row['value']}" + (f"    ({row['where']})" if row["where"] else ""))

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
            raise gdb.GdbError(f"An expression is wanted. Usage: {self.usage()}")
        return rest, flags, team

    def threads(self, process: Process, flags: set[str], team: str | None) -> list[gdb.InferiorThread]:
        """Those in which to evaluate."""
        own = selected_thread()
        if team is not None:
            return members_of(process, team)
        if "-all" not in flags:
            return [own]
        places = process.members(own.ptid[1])
        if not places:
            raise gdb.GdbError("The selected thread is in no team (`openmp threads` lists those that are).")
        lwps = process.team(places[0].runtime, places[0].team)["members"]
        found = [process.debugger.thread(lwp) for lwp in lwps if lwp is not None]
        return [thread for thread in found if thread is not None]

    @staticmethod
    def row(process: Process, thread: gdb.InferiorThread, expression: str) -> Json:
        """The value in one thread."""
        lwp = thread.ptid[1]
        with selected(thread):
            value, where, trouble = evaluate(process, lwp, expression)
            places = process.members(lwp)
            return {
                "thread": thread_id(thread),
                "lwp": lwp,
                "team": places[0].team if places else None,
                "thread_num": places[0].number if places else None,
                "value": None if value is None else value.format_string(),
                "where": where or None,
                "unknown": trouble or None,
            }

    @staticmethod
    def show(row: Json) -> None:
        """One line."""
        place = f"{row['team']}.{row['thread_num']}" if row["team"] is not None else "-"
        value = row["value"] if row["value"] is not None else f"not known: {row['unknown']}"
        where = f"    ({row['where']})" if row["where"] else ""
        show(f"{place:8} Thread {row['thread']:6} {value}{where}")


ALL = (Print,)
