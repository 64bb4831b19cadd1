"""Prints which errors of gdb's reach the core of the plugin as they are, not as `DebuggerError`. gdb has no process."""

import inspect
from contextlib import AbstractContextManager
from unittest import mock

import gdb

from openmp_core import debugger as core
from openmp_core.errors import DebuggerError
from openmp_gdb import debugger as adapter


class Refusing:
    """Stands for an object of gdb's, or for the module: each use raises an error of gdb's."""

    def __getattr__(self, name):
        if self is MODULE and (name == "error" or name.isupper()):
            return getattr(gdb, name)
        raise gdb.error("Remote connection closed")

    def __setattr__(self, name, value):
        raise gdb.error("Remote connection closed")


MODULE = Refusing()
ARGUMENTS = {
    "thread": adapter.Thread(Refusing()),
    "threads": [adapter.Thread(Refusing())],
    "names": {"x86-64": ["rip"], "aarch64": ["pc"]},
    "inferior": adapter.Inferior(Refusing(), adapter.Stops()),
    "address": 0,
    "start": 0,
    "end": 4,
    "size": 8,
    "seconds": 0.01,
    "from_tty": False,
    "frame": adapter.Frame(Refusing()),
    "reached": None,
}


def ask(target, name):
    """Uses a method or property."""
    if isinstance(inspect.getattr_static(type(target), name), property):
        return getattr(target, name)
    method = getattr(target, name)
    answer = method(*(ARGUMENTS.get(parameter, "text") for parameter in inspect.signature(method).parameters))
    if isinstance(answer, AbstractContextManager):
        with answer:
            pass
    return answer


def check(interface, target):
    """Every method of one class. Returns how many refused."""
    refused = 0
    for name in sorted(interface.__abstractmethods__):
        try:
            ask(target, name)
        except DebuggerError:
            refused += 1
        except Exception as failure:
            print(f"leaked {interface.__name__}.{name}: {type(failure).__name__}: {failure}")
    return refused


with mock.patch.object(adapter, "gdb", MODULE):
    for interface, target in (
        (core.Thread, adapter.Thread(Refusing())),
        (core.Frame, adapter.Frame(Refusing())),
        (core.Value, adapter.Value(Refusing())),
        (core.Inferior, adapter.Inferior(Refusing(), adapter.Stops())),
        (core.Debugger, adapter.Debugger()),
    ):
        print(f"{interface.__name__}: {check(interface, target)} refused", flush=True)
