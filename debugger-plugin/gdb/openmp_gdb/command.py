"""What the commands have in common: options, help, completion, errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gdb

from . import ompd
from .library import NoLibrary
from .process import NotNow, Process
from .session import PREFIX, Session, explained


class Command(gdb.Command):
    """A command below the prefix. The docstring of a subclass is its help; its second line is the usage."""

    #: Its name behind the prefix.
    name: str
    #: Options and words that may be given, for completion.
    words: Sequence[str] = ()
    #: Options that are answered by `self.flags`; others are refused.
    options: Sequence[str] = ()

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__(f"{PREFIX} {self.name}", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            self.run(argument, from_tty)
        except (NoLibrary, NotNow, ompd.OmpdError, gdb.error) as failure:
            raise explained(failure) from None

    def run(self, argument: str, from_tty: bool) -> None:
        """Does what the command is for."""
        raise NotImplementedError

    def complete(self, text: str, word: str) -> list[str]:
        before = text[: len(text) - len(word)] if word else text
        given = before.split()
        start = text.rsplit(" ", maxsplit=1)[-1]
        all_words = [*self.words, *self.options]
        found = [choice for choice in all_words if choice.startswith(start) and choice not in given]
        # gdb breaks words at dashes: it wants what comes behind.
        return [choice[len(start) - len(word) :] for choice in found]

    def split(self, argument: str) -> tuple[set[str], list[str]]:
        """The options and the other words of a command line."""
        words = gdb.string_to_argv(argument)
        flags = {word for word in words if word.startswith("-") and word in self.options}
        rest = [word for word in words if word not in flags]
        unknown = [word for word in rest if word.startswith("-")]
        if unknown:
            raise gdb.GdbError(f"Unknown option {unknown[0]}. Usage: {self.usage()}")
        return flags, rest

    @classmethod
    def usage(cls) -> str:
        """The line of the help that says how it is used."""
        lines = (cls.__doc__ or "").splitlines()
        found = [line.strip() for line in lines if line.strip().startswith("Usage:")]
        return found[0].removeprefix("Usage: ") if found else f"{PREFIX} {cls.name}"

    def process(self) -> Process:
        """The selected inferior."""
        return self.session.process()


def width() -> int:
    """Columns of gdb's terminal, 0 if there is no limit."""
    columns = gdb.parameter("width")
    return int(columns) if isinstance(columns, int) else 0


def has_colours() -> bool:
    """True if gdb shows colours."""
    # gdb leaves out what it writes to something else than a terminal.
    return bool(gdb.parameter("style enabled"))


def show(text: str) -> None:
    """Prints, through gdb's pager."""
    gdb.write(text if text.endswith("\n") else text + "\n")


def show_json(value: Any) -> None:
    """Prints JSON."""
    show(json.dumps(value, indent=2))


def selected_thread() -> gdb.InferiorThread:
    """The thread that is selected."""
    thread = gdb.selected_thread()
    if thread is None:
        raise NotNow("No thread is selected: `run` the program, `attach` to one, or open a core file.")
    return thread
