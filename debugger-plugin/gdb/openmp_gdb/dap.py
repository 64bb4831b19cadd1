"""What gdb reports to an editor that uses the Debug Adapter Protocol.

gdb sends its events by functions in `gdb.dap`. The plugin adds to them what gdb does not know. Where gdb has no such functions,
nothing is changed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Callable, Optional

import gdb

from .breakpoints import Breakpoint, by_number

#: Modules of gdb that send events, and their functions that do.
MODULES = ("gdb.dap.events", "gdb.dap.breakpoint")
SENDERS = ("send_event", "send_event_maybe_later")

#: Says what begins or ends at a stop at these breakpoints; `None` if a command has let the process run there.
Reason = Callable[[Sequence[Breakpoint]], Optional[str]]


@functools.cache
def complete_events(reason: Reason) -> None:
    """Has events of gdb completed from now on. That is needed once gdb serves an editor."""
    for module in MODULES:
        for name in SENDERS:
            send = getattr(sys.modules.get(module), name, None)
            if callable(send):
                setattr(sys.modules[module], name, completing(send, reason))


def completing(send: Callable[..., Any], reason: Reason) -> Callable[..., Any]:
    """A function that sends events, completed."""

    @functools.wraps(send)
    def sent(event: str, body: dict[str, Any] | None = None) -> Any:
        is_wanted = True
        # Whatever fails here, the editor has to know of the event.
        with suppress(Exception):
            is_wanted = complete(event, body or {}, reason)
        return send(event, body) if is_wanted else None

    return sent


def complete(event: str, body: dict[str, Any], reason: Reason) -> bool:
    """Completes an event. False if it is none for editors: they would list breakpoints of the plugin."""
    if event == "breakpoint":
        # gdb's number of a breakpoint that it does not list is negative.
        return bool(body["breakpoint"]["id"] > 0)
    if event == "stopped":
        numbers = body.get("hitBreakpointIds", [])
        ours = [by_number[number] for number in numbers if number in by_number]
        others = [number for number in numbers if number not in by_number]
        if ours:
            body["hitBreakpointIds"] = others
            what = reason(ours)
            if what is not None:
                body["description"] = what
            elif not others:
                body["reason"] = "step"
    return True


def show_selected() -> None:
    """Has an editor show the selected thread. It does so when a process stops."""
    send = getattr(sys.modules.get("gdb.dap.events"), "send_event", None)
    thread = gdb.selected_thread()
    if callable(send) and thread is not None:
        with suppress(Exception):
            send("stopped", {"reason": "openmp thread", "threadId": thread.global_num, "allThreadsStopped": True})
