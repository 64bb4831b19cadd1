"""What LLDB calls at each stop."""

from __future__ import annotations

from typing import Any

from .adapter import adapter_of
from .breakpoints import stop_of


class StopHook:
    """The hook of a target. LLDB makes it, and calls it once for each thread that has a reason to stop."""

    def __init__(self, _target: Any, _extra: Any, _internal: Any) -> None:
        pass

    def handle_stop(self, context: Any, stream: Any) -> bool:
        """Returns whether the process stays stopped."""
        adapter = adapter_of(context.GetTarget())
        stays = True
        if adapter is not None:
            with adapter.turn.taken(), adapter.debugger.output.to(stream.Print), adapter.guarded():
                stays = adapter.events.stopped(context)
            if stays:
                adapter.debugger.stayed_at = stop_of(context.GetProcess())
                adapter.debugger.stayed.set()
        return stays
