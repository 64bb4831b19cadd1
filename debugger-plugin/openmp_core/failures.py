"""Failures that nobody expects: one line for users, the rest for `openmp doctor`.

A bug of the plugin must not end a debug session, nor fill the terminal with a traceback.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

#: So many are kept, the newest ones.
KEPT = 3


class Failures:
    """The newest failures of this session."""

    def __init__(self) -> None:
        self._traces: list[str] = []

    def note(self, failure: BaseException) -> str:
        """Keeps a failure. Returns the line for users."""
        trace = "".join(traceback.format_exception(type(failure), failure, failure.__traceback__))
        if trace not in self._traces:
            self._traces = [*self._traces, trace][-KEPT:]
        first = str(failure).partition("\n")[0]
        return f"The plugin has failed: {type(failure).__name__}: {first} (`openmp doctor` has the rest)"

    def text(self) -> str:
        """All that is kept; empty if nothing has failed."""
        return "\n".join(self._traces)

    @contextmanager
    def guarded(self, write: Callable[[str], None]) -> Iterator[None]:
        """Reports a failure instead of raising it: for calls of the debugger's."""
        try:
            yield
        except Exception as failure:
            write(self.note(failure) + "\n")
