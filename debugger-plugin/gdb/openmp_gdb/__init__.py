"""OpenMP inside gdb: what threads, teams and tasks do, what they wait for, and why they hang.

`register()` adds the commands below the prefix `openmp` (docs/gdb-plugin.md). `openmp_core` has
the commands; this package calls gdb.
"""

from __future__ import annotations

import functools
from contextlib import suppress

import gdb

from openmp_core import PREFIX, Plugin

from . import commands, settings
from .debugger import Debugger
from .events import Events
from .frames import Filter


@functools.cache
def register() -> Plugin:
    """Adds the commands, once."""
    debugger = Debugger()
    plugin = Plugin(debugger)
    commands.Prefix()
    for verb in ("set", "show"):
        settings.add_prefix(verb)
    settings.LibrarySetting(plugin.session.choice)
    settings.NamesSetting(plugin.names)
    Events(debugger, plugin)
    for command in plugin.commands:
        commands.Adapted(command)
    commands.add_functions(plugin.session)
    Filter(plugin.folding)
    # LLVM's plugin has commands of that name; where it is loaded as well, they stay its own.
    with suppress(gdb.error):
        gdb.execute(f"alias -a ompd = {PREFIX}")
    return plugin
