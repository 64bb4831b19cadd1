"""One thread of LLDB's at a time uses the plugin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds after which a thread that waits for its turn goes on without.
PATIENCE = 10.0


class Turn:
    """A lock that one thread may take several times, and gives back while the process runs.

    LLDB prints stops in another thread than it runs commands in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Waits for the turn."""
        if self._owner == threading.get_ident():
            yield
            return
        is_taken = self._lock.acquire(timeout=PATIENCE)
        with self._owned(is_taken):
            yield

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Takes the turn without waiting. Returns whether that was possible."""
        if self._owner == threading.get_ident():
            yield True
            return
        is_taken = self._lock.acquire(blocking=False)
        with self._owned(is_taken):
            yield is_taken

    @contextmanager
    def _owned(self, is_taken: bool) -> Iterator[None]:
        if not is_taken:
            yield
            return
        self._owner = threading.get_ident()
        try:
            yield
        finally:
            self._owner = None
            self._lock.release()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Gives the turn back for a while."""
        if self._owner != threading.get_ident():
            yield
            return
        self._owner = None
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
            self._owner = threading.get_ident()
