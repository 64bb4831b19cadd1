"""OpenMP inside LLDB: what threads, teams and tasks do, what they wait for, and why they hang.

`command script import .../openmp_lldb` adds the commands below `openmp` (docs/lldb-plugin.md). `openmp_core` has the
commands; this package calls LLDB.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Installed, the core lies beside this package; in a checkout it lies one folder above.
_folders = [_parent] if os.path.isdir(os.path.join(_parent, "openmp_core")) else [os.path.dirname(_parent)]
sys.path[:0] = [folder for folder in _folders if folder not in sys.path]

from . import commands, dap, frames, hooks  # noqa: E402 - they find the core by the path above
from .adapter import Adapter, adapter_of  # noqa: E402

__all__ = ["Adapter", "adapter_of", "dap", "hooks"]


def __lldb_init_module(debugger: Any, _internal: Any) -> None:
    """What LLDB calls once it has imported the package."""
    adapter = Adapter.make(debugger)
    commands.add(adapter)
    adapter.events.begin()
    frames.begin(adapter)
