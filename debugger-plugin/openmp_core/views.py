"""Commands that show what is: each is one view of the report."""

from __future__ import annotations

from collections.abc import Sequence

from .command import Command
from .errors import CommandError
from .process import Json, Process, known
from .selection import find_thread
from .session import Session


class View(Command):
    """One view of the report as text, or its part of the JSON."""

    #: Its name in the library.
    view: str
    #: What the JSON has of the process, and of each runtime.
    of_process: Sequence[str] = ()
    of_runtimes: Sequence[str] = ()
    #: Options by which the library shows another form.
    forms: Sequence[str] = ()

    def __init__(self, session: Session) -> None:
        self.options = ("-v", "-json", *(f"-{form}" for form in self.forms))
        super().__init__(session)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        if rest:
            raise CommandError(f"Unexpected: {' '.join(rest)}. Usage: {self.usage()}")
        process = self.process()
        if "-json" in flags:
            self.show_json(self.part(process))
            return
        forms = [form for form in self.forms if f"-{form}" in flags]
        if len(forms) > 1:
            raise CommandError(f"One of -{', -'.join(forms)} at a time. Usage: {self.usage()}")
        view = " ".join([self.view, *(f"--{form}" for form in forms)])
        self.show_view(process, view, "-v" in flags)

    def part(self, process: Process) -> Json:
        """The part of the report that it is about, with the debugger's numbers of the threads."""
        report = process.report()
        identity = ("family", "product", "path", "base")
        found = {key: report[key] for key in ("schema", *self.of_process) if key in report}
        if self.of_runtimes:
            found["runtimes"] = [
                {key: runtime[key] for key in (*identity, *self.of_runtimes) if key in runtime} for runtime in report["runtimes"]
            ]
        found[f"{self.debugger.name}_threads"] = {str(thread.lwp): thread.id for thread in process.inferior.threads()}
        return found


class Status(View):
    """Say what all OpenMP threads, teams and tasks do, and why they hang if they do.
    Usage: openmp status [-v] [-json]

    A verdict comes first: DEADLOCK is proven by what was read at this stop. Then come
    the teams with their members.
      -v     with where values come from
      -json  the whole report (docs/report.schema.json)"""

    name = "status"
    view = "summary"

    def part(self, process: Process) -> Json:
        return process.report()


class Threads(View):
    """List all threads with their place in OpenMP and what they do.
    Usage: openmp threads [-v] [-json]

    Id is {debugger}'s number of the thread, * the selected one."""

    name = view = "threads"
    of_process = ("os_threads", "nested_runtimes")
    of_runtimes = ("threads",)


class Teams(View):
    """Show the tree of teams, with what their members do.
    Usage: openmp teams [-v] [-json]"""

    name = view = "teams"
    of_runtimes = ("teams",)


class Parallel(Teams):
    """Show the parallel regions: the same as `openmp teams`.
    Usage: openmp parallel [-v] [-json]"""

    name = "parallel"


class Tasks(View):
    """List tasks: executing, suspended, ready, blocked on dependences, detached, on a device.
    Usage: openmp tasks [-tree|-dot] [-v] [-json]
      -tree  each task below the one that generated it
      -dot   what depends on what, for Graphviz"""

    name = view = "tasks"
    of_runtimes = ("tasks",)
    forms = ("tree", "dot")


class Waits(View):
    """Say what waits for what: verdicts, every wait, locks with owner and waiters.
    Usage: openmp waits [-dot] [-v] [-json]
      -dot  the graph for Graphviz"""

    name = view = "waits"
    of_process = ("verdicts", "remarks")
    of_runtimes = ("locks",)
    forms = ("dot",)

    def part(self, process: Process) -> Json:
        found = super().part(process)
        for runtime, whole in zip(found["runtimes"], process.report()["runtimes"]):
            keys = ("lwp", "team", "thread_num", "wait")
            runtime["waits"] = [{key: thread.get(key) for key in keys} for thread in whole["threads"] if known(thread.get("wait"))]
        return found


class Loops(View):
    """Say how far worksharing loops and sections are.
    Usage: openmp loops [-v] [-json]"""

    name = view = "loops"
    of_runtimes = ("loops", "teams")


class Icvs(View):
    """Show the control variables in force, and where their values come from.
    Usage: openmp icvs [-v] [-json]"""

    name = view = "icvs"
    of_runtimes = ("icvs", "notes")

    def part(self, process: Process) -> Json:
        found = super().part(process)
        for runtime, whole in zip(found["runtimes"], process.report()["runtimes"]):
            keys = ("lwp", "icvs", "icv_sources", "placement")
            runtime["threads"] = [{key: thread.get(key) for key in keys} for thread in whole["threads"]]
        return found


class Stacks(View):
    """Show stacks as the source reads, threads that read the same in one row.
    Usage: openmp stacks [-all|-tree|-dot|-folded|-svg] [-v] [-json]

    Frames of the runtime are folded into what the thread waits for; a worker's stack
    continues in the thread that opened its region, a task's in what generated it.
      -all     one row for each thread
      -tree    all of them as one tree
      -dot     the tree for Graphviz
      -folded  the tree for flame graph tools
      -svg     the tree as a picture"""

    name = view = "stacks"
    of_process = ("stacks", "without_lines")
    forms = ("all", "tree", "dot", "folded", "svg")


class Doctor(View):
    """Say how each runtime was found and read, and what is missing.
    Usage: openmp doctor [-v] [-json]"""

    name = view = "doctor"
    of_process = ("complete", "issues")
    of_runtimes = ("build_id", "needed_by", "origins", "missing", "costs")

    def run(self, argument: str, from_tty: bool) -> None:
        failed = self.session.failures.text()
        if failed and "-json" not in self.split(argument)[0]:
            self.show(f"The plugin has failed before:\n{failed}")
        super().run(argument, from_tty)
        if "-json" in self.split(argument)[0]:
            return
        process = self.process()
        asked = ", ".join(f"{count} {what}" for what, count in sorted(process.state.asked.items()))
        version = ".".join(str(part) for part in process.library.version())
        name = self.debugger.name
        self.show(f"\n{name} {self.debugger.version}, libompd {version} from {process.library.path}\nAsked of {name} so far: {asked}")

    def part(self, process: Process) -> Json:
        found = super().part(process)
        found[self.debugger.name] = self.debugger.version
        found["library"] = str(process.library.path)
        found["asked"] = dict(process.state.asked)
        found["failures"] = self.session.failures.text()
        return found


class History(Command):
    """Show what threads did last, as far as the companion has recorded it.
    Usage: openmp history [-by-time] [-last N]

      -by-time  all threads together, in the order of time
      -last N   the last N events of each thread; 20 if not given

    `ompd-inspect run --record -- PROGRAM` starts a program with the companion."""

    name = "history"
    words = ("-by-time", "-last")

    def run(self, argument: str, from_tty: bool) -> None:
        words = self.debugger.words(argument)
        view = ["history"]
        while words:
            word = words.pop(0)
            if word == "-by-time":
                view.append("--by-time")
            elif word == "-last":
                number = words.pop(0) if words else ""
                if not (number.isascii() and number.isdecimal() and 0 < int(number) < 1 << 63):
                    raise CommandError(f"Behind -last comes a number, from 1 on. Usage: {self.usage()}")
                view += ["--last", number]
            else:
                raise CommandError(f"Unexpected: {word}. Usage: {self.usage()}")
        self.show_view(self.process(), " ".join(view))


class Init(Command):
    """Say which OpenMP runtimes the process has. Nothing has to be initialised.
    Usage: openmp init"""

    name = "init"

    def run(self, argument: str, from_tty: bool) -> None:
        for runtime in self.process().report()["runtimes"]:
            self.show(f"{runtime['product']}  {runtime['path']}")


class Why(Command):
    """Say why a thread does not continue: what it waits for, and the verdict if it hangs.
    Usage: openmp why [-json] [THREAD]

    THREAD is as for `openmp thread`; without it, the selected thread."""

    name = "why"
    options = ("-json",)

    def run(self, argument: str, from_tty: bool) -> None:
        flags, rest = self.split(argument)
        process = self.process()
        thread = find_thread(process, rest[0]) if rest else self.session.selected_thread()
        lwp = thread.lwp
        if "-json" in flags:
            report = process.report()
            verdicts = report["verdicts"]
            found = {
                "lwp": lwp,
                "threads": [t for r in report["runtimes"] for t in r["threads"] if t.get("lwp") == lwp],
                "verdicts": [v for v in verdicts if lwp in v["threads"] or lwp in v["held_up"]],
            }
            self.show_json(found)
        else:
            self.show_view(process, f"why {lwp}")


ALL = (Status, Threads, Teams, Parallel, Tasks, Waits, Loops, Icvs, Stacks, Doctor, History, Init, Why)
