"""What gdb prints by itself, and whether its user can see colours."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gdb

#: gdb prints no stop to a terminal while this is on. Front ends that use MI get it.
QUIET = "suppress-cli-notifications"

#: Whether a stop is kept quiet now.
_quiet: list[bool] = []


@functools.cache
def can_be_quiet() -> bool:
    """True if gdb can keep a stop quiet at a terminal alone: since version 12."""
    try:
        return gdb.parameter(QUIET) is not None
    except RuntimeError:
        return False


def begin_quiet() -> None:
    """Has gdb print nothing of the stop that comes."""
    if can_be_quiet() and not _quiet and not gdb.parameter(QUIET):
        gdb.execute(f"set {QUIET} on")
        _quiet.append(True)


def end_quiet() -> None:
    """The stop was reported: has gdb print again."""
    if _quiet:
        _quiet.clear()
        gdb.execute(f"set {QUIET} off")


@contextmanager
def quiet() -> Iterator[None]:
    """Has gdb print no stop and no selection to a terminal meanwhile."""
    begin_quiet()
    try:
        yield
    finally:
        end_quiet()


class Kept:
    """What gdb has printed while it was kept back."""

    text = ""


@contextmanager
def kept_back() -> Iterator[Kept]:
    """Keeps back what gdb prints to a terminal meanwhile.

    gdb prints a signal that stops the process whatever is set, and past `to_string`. A front end that uses MI or DAP
    needs its records, and the text user interface its screen: nothing is kept back from these."""
    kept = Kept()
    if is_front_end() or "not active" not in gdb.execute("info win", to_string=True):
        yield kept
        return
    gdb.flush()
    terminal = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield kept
        finally:
            gdb.flush()
            os.dup2(terminal, 1)
            os.close(terminal)
            file.seek(0)
            kept.text = file.read().decode("utf-8", "replace")


@functools.cache
def protocol() -> str:
    """The protocol that this gdb was started for: `mi`, `mi2` and so on, or `dap`; empty at a terminal."""
    try:
        words = Path("/proc/self/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return "mi"
    found = re.search(r" --?i[a-z]*[= ](mi[0-9]?|dap) ", f" {' '.join(words)} ")
    return found[1] if found else ""


def is_front_end() -> bool:
    """True if a front end uses MI or DAP."""
    return protocol() != ""


def write_later(text: str) -> None:
    """Prints once gdb has handled the event at hand. Until then, gdb 16 drops what is printed under DAP."""

    def write() -> None:
        gdb.write(text)
        gdb.flush()

    gdb.post_event(write)


def has_colours() -> bool:
    """True if the commands come from a terminal, and gdb is to use colours.

    A front end that uses MI or DAP has no line editor, but would be sent the escape sequences."""
    return bool(gdb.parameter("style enabled")) and "is on." in gdb.execute("show editing", to_string=True)
