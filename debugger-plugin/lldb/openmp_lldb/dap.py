"""What an editor shows that uses the Debug Adapter Protocol, by the program `lldb-dap`, which was `lldb-vscode` before LLDB 18.

That program asks LLDB for the names of threads and frames by formats which its user sets. `thread` and `frame` are for these formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lldb

from . import appended, editor
from .adapter import adapter_of
from .frames import shown_of

if TYPE_CHECKING:
    from .adapter import Adapter

#: Has LLDB ask about all frames whether they are less important; from version 20 on.
RECOGNIZER = f"frame recognizer add -l {__name__}.Hidden -s .* -n .* -x -f false"


def recognize(adapter: Adapter, target: Any) -> None:
    """Has an editor show frames of the runtime as less important. LLDB keeps that for each target."""
    number = adapter.debugger.targets.number(target)
    if editor.is_here() and number not in adapter.recognizing:
        adapter.recognizing.add(number)
        context, result = lldb.SBExecutionContext(target), lldb.SBCommandReturnObject()
        adapter.lldb.GetCommandInterpreter().HandleCommand(RECOGNIZER, context, result)


def thread(one: Any, _internal: Any) -> str:
    """The name of a thread: its place in OpenMP, if it has one."""
    target = one.GetProcess().GetTarget()
    adapter = adapter_of(target)
    name: str | None = None
    if adapter is not None:
        with adapter.turn.if_free() as is_free, adapter.debugger.selections.held(target, one):
            if is_free:
                try:
                    recognize(adapter, target)
                    appended.register(adapter, target)
                    name = adapter.plugin.names.name_of(int(one.GetThreadID()))
                except Exception as failure:
                    adapter.plugin.session.failures.note(failure)
    return name or one.GetName() or f"Thread {one.GetIndexID()}"


def frame(one: Any, _internal: Any) -> str:
    """The name of a frame: the construct, or the function with what it waits for."""
    shown = shown_of(one)
    name = shown.name or one.GetDisplayFunctionName() or f"{one.GetPC():#x}"
    return " ".join([name, *(text.strip() for text in shown.behind)])


class Hidden:
    """Tells LLDB which frames are less important."""

    def get_recognized_arguments(self, _frame: Any) -> list[Any]:
        """None, as before."""
        return []

    def should_hide(self, one: Any) -> bool:
        """True for a frame of the runtime that says nothing of what the thread does."""
        shown = shown_of(one)
        return shown.is_inside and not shown.behind
