"""libompd.so, found beside the plugin and nowhere else, and what is asked of it."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from . import ompd
from .callbacks import Callbacks
from .errors import NoLibrary, OmpdError

NAME = "libompd.so"


def candidates(chosen: str | None, adapter: Path) -> list[Path]:
    """Where libompd.so may be, seen from the adapter's folder. The process has no say in it."""
    if chosen:
        return [Path(chosen).expanduser()]
    found = [adapter / NAME, adapter.parent / NAME]
    # Below a prefix: PREFIX/share/ompd/gdb/openmp_gdb and PREFIX/lib.
    if adapter.parent.parts[-3:-1] == ("share", "ompd"):
        found.append(adapter.parents[3] / "lib" / NAME)
    # In a checkout: debugger-plugin/gdb/openmp_gdb and target.
    root = adapter.parents[2] if len(adapter.parents) > 2 else adapter
    if (root / "Cargo.toml").is_file():
        target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        found += [target / "release" / NAME, target / "debug" / NAME]
    return found


class Library:
    """The library, loaded and initialised."""

    def __init__(self, path: Path, callbacks: Callbacks) -> None:
        self.path = path
        self.callbacks = callbacks
        try:
            self._functions = ctypes.CDLL(str(path))
            self.call("ompd_initialize", c_uint64(ompd.API_VERSION), byref(callbacks.table))
        except (OSError, AttributeError, OmpdError) as failure:
            raise NoLibrary(f"{path} cannot be used: {failure}") from failure

    @staticmethod
    def load(chosen: str | None, adapter: Path, how_to_choose: str, callbacks: Callbacks) -> Library:
        """Loads it from where it is."""
        paths = candidates(chosen, adapter)
        for path in paths:
            if path.is_file():
                return Library(path, callbacks)
        tried = "\n  ".join(str(path) for path in paths)
        raise NoLibrary(
            f"{NAME} is not beside the plugin. Tried:\n  {tried}\n"
            f"Build it (`cargo build --release --package ompd`), or say where it is: `{how_to_choose}`."
        )

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the interface.

        Raises `OmpdError` if it gives no answer, and what went wrong in a callback, if it was that.
        """
        code = int(getattr(self._functions, name)(*arguments))
        failure, self.callbacks.failure = self.callbacks.failure, None
        if failure is not None:
            # What was read is not what is there.
            self.callbacks.forget()
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if code != ompd.OK:
            raise OmpdError(name, code, self.callbacks.debugger) from failure

    def version(self) -> tuple[int, ...]:
        """The version of the interface that it speaks: year and month of the specification."""
        number = c_uint64()
        self.call("ompd_get_api_version", byref(number))
        return divmod(number.value, 100)

    def text(self, name: str, *arguments: Any) -> str:
        """Calls a function that hands out a string as its last argument."""
        out = c_void_p()
        self.call(name, *arguments, byref(out))
        return self.take(out)

    def take(self, text: c_void_p) -> str:
        """A string that was handed out, whose memory is not needed any more."""
        address = text.value or 0
        found = ctypes.string_at(address) if address else b""
        self.callbacks.take(address)
        return found.decode("utf-8", "replace")
