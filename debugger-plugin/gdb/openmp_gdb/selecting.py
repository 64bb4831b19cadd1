"""gdb's errors as the core's, and what is selected in gdb for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gdb

from openmp_core.errors import DebuggerError, NoSuchName


@contextmanager
def errors() -> Iterator[None]:
    """Has gdb's errors raised as the core's. For methods, it is a decorator."""
    try:
        yield
    except RuntimeError as failure:
        text = str(failure)
        # For a thread or inferior that is gone, gdb raises no error of its own.
        if not isinstance(failure, gdb.error) and not text.endswith("no longer exists."):
            raise
        raise (NoSuchName(text) if text.startswith("No symbol") else DebuggerError(text)) from failure


@contextmanager
def kept_selection() -> Iterator[None]:
    """Selects afterwards the thread and frame that were selected before."""
    before = gdb.selected_thread()
    frame: gdb.Frame | None = None
    try:
        if before is not None and before.is_stopped():
            frame = gdb.selected_frame()
    except gdb.error:
        pass  # A thread without registers has no frame.
    try:
        yield
    finally:
        if before is not None and before.is_valid():
            before.switch()
            if frame is not None and frame.is_valid():
                frame.select()


def select(thread: gdb.InferiorThread) -> None:
    """Selects a thread. If it is selected, its frame stays as it is."""
    before = gdb.selected_thread()
    # To switch to it would select its innermost frame.
    if before is None or before.ptid != thread.ptid:
        thread.switch()


@contextmanager
def language_c() -> Iterator[None]:
    """Has gdb understand C: otherwise expressions and type names are in the selected frame's language."""
    before = gdb.parameter("language")
    if before == "c":
        yield
        return
    gdb.execute("set language c", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set language {before}", to_string=True)
