"""What the commands have in common: options, help, completion, output."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from .debugger import Debugger
from .errors import CommandError, NotNow
from .process import Process
from .session import PREFIX, Session


class Command:
    """A command below the prefix.

    The docstring of a subclass is its help, and the line with `Usage:` the usage. In it, `{debugger}`
    stands for the debugger's name, and `{frames}`, `{locals}` and `{level}` for its examples."""

    #: Its name behind the prefix.
    name: str
    #: Options and words that may be given, for completion.
    words: Sequence[str] = ()
    #: Options that `split` takes; others are refused.
    options: Sequence[str] = ()

    def __init__(self, session: Session) -> None:
        self.session = session
        self.debugger = session.debugger

    def run(self, argument: str, from_tty: bool) -> None:
        """Does what the command is for. Raises what is in `errors.EXPECTED`."""
        raise NotImplementedError

    def complete(self, text: str) -> list[str]:
        """What the last word of an argument, which is perhaps empty, may become."""
        *given, start = text.split(" ")
        all_words = [*self.words, *self.options]
        return [choice for choice in all_words if choice.startswith(start) and choice not in given]

    def split(self, argument: str) -> tuple[set[str], list[str]]:
        """The options and the other words of a command line."""
        words = self.debugger.words(argument)
        flags = {word for word in words if word.startswith("-") and word in self.options}
        rest = [word for word in words if word not in flags]
        unknown = [word for word in rest if word.startswith("-")]
        if unknown:
            raise CommandError(f"Unknown option {unknown[0]}. Usage: {self.usage()}")
        return flags, rest

    @classmethod
    def usage(cls) -> str:
        """The line of the help that says how it is used."""
        lines = (cls.__doc__ or "").splitlines()
        found = [line.strip() for line in lines if line.strip().startswith("Usage:")]
        return found[0].removeprefix("Usage: ") if found else f"{PREFIX} {cls.name}"

    def help(self) -> str:
        """The help."""
        # Only Python 3.13 and later remove the indentation of docstrings by themselves.
        text = inspect.cleandoc(self.__doc__ or "")
        examples = self.debugger.examples
        names = {"debugger": self.debugger.name, "frames": examples.frames, "locals": examples.locals, "level": examples.level}
        for name, word in names.items():
            text = text.replace(f"{{{name}}}", word)
        return text

    def process(self) -> Process:
        """The selected inferior."""
        return self.session.process()

    def standing(self) -> int:
        """The kernel id of the selected thread. Raises `NotNow` if it runs."""
        thread = self.session.selected_thread()
        if thread.is_running():
            raise NotNow(f"Thread {thread.id} is running: stop it first (`{self.debugger.how_to_stop}`).")
        return thread.lwp

    def show(self, text: str) -> None:
        """Prints."""
        show(self.debugger, text)

    def show_json(self, value: Any) -> None:
        """Prints JSON."""
        self.show(json.dumps(value, indent=2))

    def show_view(self, process: Process, view: str, verbose: bool = False) -> None:
        """Prints one view of a process."""
        self.show(self.view_text(process, view, verbose))

    def view_text(self, process: Process, view: str, verbose: bool = False) -> str:
        """One view of a process, as the terminal wants it."""
        return process.text(view, self.debugger.width(), verbose, self.debugger.has_colours())


def show(debugger: Debugger, text: str) -> None:
    """Prints a text that ends with a line."""
    debugger.write(text if text.endswith("\n") else text + "\n")
