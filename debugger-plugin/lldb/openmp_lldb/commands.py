"""The core's commands as LLDB's: by gdb's names, and by LLDB's way to name commands, object and verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, ClassVar

import lldb

from openmp_core import PREFIX
from openmp_core.command import Command
from openmp_core.errors import EXPECTED, CommandError, message

from . import appended
from .adapter import Adapter
from .inferior import is_alive

ABOUT = "Say what an OpenMP program is doing: its threads, teams and tasks, and why it hangs."

#: Objects with their verbs, and the core's commands these stand for.
OBJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "team": ("Teams of OpenMP threads.", {"list": "teams", "finish": "finish", "until": "until"}),
    "task": ("Tasks of OpenMP.", {"list": "tasks", "frames": "taskframes"}),
    "wait": ("What waits for what.", {"list": "waits"}),
    "loop": ("Worksharing loops.", {"list": "loops"}),
    "icv": ("Control variables.", {"list": "icvs"}),
    "stack": ("Stacks as the source reads.", {"list": "stacks"}),
    "breakpoint": (
        "Stops where regions, tasks and threads begin and end.",
        {
            "set": "break",
            "list": "break",
            "delete": "delete",
            "disable": "disable",
            "enable": "enable",
            "condition": "condition",
            "commands": "commands",
            "write": "save",
            "read": "load",
        },
    ),
}
#: The verbs of `openmp thread`, which also takes what gdb's command of that name does.
VERBS = {"list": "threads", "select": "thread", "info": "why", "backtrace": "bt", "step": "step", "until": "until", "print": "print"}


class Adapted:
    """A command of the core. LLDB makes one for each command."""

    #: The core's command.
    name: str
    #: Words behind it that stand for other commands of the core.
    verbs: ClassVar[dict[str, str]] = {}

    def __init__(self, debugger: Any, _internal: Any) -> None:
        self.adapter = Adapter.make(debugger)

    def __call__(self, _debugger: Any, argument: str, context: Any, result: Any) -> None:
        run(self.adapter, context, result, lambda: self._run(argument))

    def _run(self, argument: str) -> None:
        verb, _, rest = argument.strip().partition(" ")
        name, argument = (self.verbs[verb], rest) if verb in self.verbs else (self.name, argument)
        if name in ("break", "load") and argument.strip() and not self.adapter.lldb.GetSelectedTarget().IsValid():
            raise CommandError("There is no target to stop in: `target create` one.")
        command_of(self.adapter, name).run(argument, True)

    def get_repeat_command(self, _command: str) -> str:
        """An empty line repeats nothing: it would let a process run again. LLDB asks from 17 on."""
        return ""

    def get_short_help(self) -> str:
        return command_of(self.adapter, self.name).help().partition("\n")[0]

    def get_long_help(self) -> str:
        text = command_of(self.adapter, self.name).help().partition("\n")[2]
        verbs = "".join(f"\n  {PREFIX} {self.name} {verb:10} `{PREFIX} {name}`" for verb, name in self.verbs.items())
        return text + (f"\n\nBy LLDB's names:{verbs}" if verbs else "")


class Settings:
    """The commands `openmp settings`: LLDB's own settings cannot be added to."""

    def __init__(self, debugger: Any, _internal: Any) -> None:
        self.adapter = Adapter.make(debugger)

    def __call__(self, _debugger: Any, argument: str, context: Any, result: Any) -> None:
        run(self.adapter, context, result, lambda: self._run(argument.split(None, 2)))

    def _run(self, words: Sequence[str]) -> None:
        choice = self.adapter.plugin.session.choice
        debugger = self.adapter.debugger
        if words[:2] == ["set", "library"]:
            choice.path = words[2].strip() if len(words) > 2 else ""
            debugger.write(f"{refusal}\n" if (refusal := choice.refusal("LLDB")) else "")
        elif list(words) in ([], ["show"], ["show", "library"]):
            debugger.write(choice.shown(choice.path) + "\n")
        else:
            raise CommandError(f"Usage: {PREFIX} settings show | set library PATH")

    def get_short_help(self) -> str:
        return "Show or set the path of libompd.so."

    def get_long_help(self) -> str:
        return (
            f"    Usage: {PREFIX} settings show | set library PATH\n\n"
            "    Without PATH, libompd.so is taken from beside the plugin. The path takes effect before the first\n"
            "    command that needs the library."
        )


def run(adapter: Adapter, context: Any, result: Any, action: Callable[[], None]) -> None:
    """Runs a command for LLDB: its output and its errors become the result's."""
    debugger = adapter.debugger
    texts: list[str] = []
    error = ""
    process = debugger.selections.target().GetProcess()
    was_there, ran = is_alive(process), debugger.ran
    # First the turn: another thread of LLDB's, which prints a stop, may have set where texts go.
    with adapter.turn.taken(), debugger.output.to(texts.append):
        try:
            with debugger.selections.of(context):
                # The user may have changed memory or registers, of which LLDB does not tell.
                debugger.targets.changes += 1
                adapter.events.look()
                action()
                adapter.events.watch()
                if adapter.plugin.folding.enabled and adapter.plugin.folding.continued:
                    appended.register(adapter, debugger.selections.target())
        except EXPECTED as failure:
            error = message(failure)
        except Exception as failure:
            error = adapter.plugin.session.failures.note(failure)
    # LLDB ends a process in another thread: what was read then is not of one moment.
    if was_there and not is_alive(process) and debugger.ran == ran:
        texts, error = [], "The process has ended."
    text = "".join(texts).rstrip("\n")
    if text:
        result.AppendMessage(text)
    if error:
        result.SetError(error)


def command_of(adapter: Adapter, name: str) -> Command:
    """A command of the core by its name."""
    return next(command for command in adapter.plugin.commands if command.name == name)


def add(adapter: Adapter) -> None:
    """Adds the commands."""
    interpreter = adapter.lldb.GetCommandInterpreter()

    def handle(command: str) -> None:
        result = lldb.SBCommandReturnObject()
        interpreter.HandleCommand(command, result)
        if not result.Succeeded():
            adapter.debugger.write(f"{command}: {result.GetError()}")

    def add_class(words: str, name: str, verbs: dict[str, str], base: type = Adapted) -> None:
        made = "".join(part.capitalize() for part in words.split())
        globals()[made] = type(made, (base,), {"name": name, "verbs": verbs, "__doc__": words})
        handle(f"command script add -s synchronous -c {__name__}.{made} {PREFIX} {words}")

    if interpreter.CommandExists(PREFIX):
        return
    handle(f"command container add {PREFIX} -h '{ABOUT}'")
    for command in adapter.plugin.commands:
        add_class(command.name, command.name, VERBS if command.name == "thread" else {})
    for noun, (about, verbs) in OBJECTS.items():
        handle(f'command container add {PREFIX} {noun} -h "{about}"')
        for verb, name in verbs.items():
            add_class(f"{noun} {verb}", name, {})
    handle(f"command script add -s synchronous -c {__name__}.Settings {PREFIX} settings")
    # LLVM's plugin for gdb has commands of that name.
    if not interpreter.AliasExists("ompd") and not interpreter.CommandExists("ompd"):
        handle(f"command alias ompd {PREFIX}")
