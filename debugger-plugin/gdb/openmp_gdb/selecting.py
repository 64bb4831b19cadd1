"""gdb's errors as the core's, and what is selected in gdb for a while."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, TypeVar, cast

import gdb

from openmp_core.errors import DebuggerError, NoSuchName

Method = TypeVar("Method", bound=Callable[..., Any])


class Errors:
    """What `errors` returns. No generator: methods of threads are called thousands of times for one command."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        if isinstance(failure, RuntimeError):
            translate(failure)

    def __call__(self, function: Method) -> Method:
        @functools.wraps(function)
        def translated(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except RuntimeError as failure:
                translate(failure)
                raise

        return cast("Method", translated)


def errors() -> Errors:
    """Has gdb's errors raised as the core's. For methods, it is a decorator."""
    return Errors()


def translate(failure: RuntimeError) -> None:
    """Raises the core's error for one of gdb's."""
    text = str(failure)
    # For a thread or inferior that is gone, gdb raises no error of its own.
    if isinstance(failure, gdb.error) or text.endswith("no longer exists."):
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
