"""Where the plugin's texts go: to the result of a command, to the stream of a stop, or to the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable


class Output:
    """The place for texts, which changes with what LLDB has called."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger
        self._sinks: list[Callable[[str], object]] = []

    def write(self, text: str) -> None:
        """Prints."""
        if self._sinks:
            self._sinks[-1](text)
        else:
            # LLDB shows what its Python prints.
            print(text, end="", flush=True)

    def now(self, text: str) -> None:
        """Prints at once to where LLDB prints."""
        file = self._debugger.GetOutputFile()
        file.Write(text.encode())
        file.Flush()

    @contextmanager
    def to(self, sink: Callable[[str], object]) -> Iterator[None]:
        """Has texts go there meanwhile."""
        self._sinks.append(sink)
        try:
            yield
        finally:
            self._sinks.pop()

    def is_terminal(self) -> bool:
        """True if LLDB prints to a terminal."""
        try:
            return bool(self._debugger.GetOutputFile().GetFile().isatty())
        except (AttributeError, OSError, ValueError):
            return False
