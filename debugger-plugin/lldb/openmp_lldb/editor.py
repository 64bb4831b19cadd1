"""Whether an editor uses this LLDB, and what it has to be told."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import lldb

#: What runs LLDB for editors.
PROGRAM = re.compile(r"lldb-(dap|vscode)(-[0-9]+)?")
#: Seconds between two looks at a process that runs.
INTERVAL = 0.05


@functools.cache
def is_here() -> bool:
    """True if an editor uses this LLDB."""
    try:
        words = Path("/proc/self/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return False
    # A dynamic linker may run it.
    return any(PROGRAM.fullmatch(word.rpartition("/")[2]) for word in words)


def can_show_anew() -> bool:
    """True if an editor can be told to ask for everything anew: from version 20 on."""
    found = re.search(r"version ([0-9]+)", lldb.SBDebugger.GetVersionString())
    return found is not None and int(found[1]) >= 20


def show_anew(debugger: Any) -> None:
    """Has an editor ask for everything anew, if it can. LLDB reports nothing of a process that has run within a command."""
    if is_here():
        command = 'lldb-dap send-event invalidated \'{"areas": ["all"]}\''
        debugger.GetCommandInterpreter().HandleCommand(command, lldb.SBCommandReturnObject())
