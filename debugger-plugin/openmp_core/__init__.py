"""OpenMP for debuggers: what threads, teams and tasks do, what they wait for, and why they hang.

This package imports no debugger. An adapter implements `debugger.py` and makes a `Plugin`.
"""

from __future__ import annotations

from .plugin import Plugin
from .session import PREFIX

__all__ = ["PREFIX", "Plugin"]
