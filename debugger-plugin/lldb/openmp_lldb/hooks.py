"""What LLDB calls at each stop."""

from __future__ import annotations

from typing import Any

from . import editor
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
            # Up to LLDB 19, an editor gets what is in the stream with the next output, if ever.
            is_late = editor.is_here() and not editor.can_show_anew()
            sink = adapter.debugger.output.now if is_late else stream.Print
            with adapter.turn.taken(), adapter.debugger.output.to(sink), adapter.guarded():
                stays = adapter.events.stopped(context)
            if stays:
                adapter.debugger.stayed_at = stop_of(context.GetProcess())
                adapter.debugger.stayed.set()
        return stays
