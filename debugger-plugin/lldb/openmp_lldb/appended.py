"""Frames of the thread in which a stack continues, behind the thread's own: LLDB 22 and later ask a frame provider for frames.

LLDB 22.1 holds locks while it asks. A call of LLDB then blocks, or ends LLDB. So a provider hands out only what was found before
(docs/internals/debugger-plugin.md).
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import lldb

if TYPE_CHECKING:
    from .adapter import Adapter

#: So many threads at once have providers that are found.
MOST = 4096

#: The providers that LLDB has made, the latest last.
_made: deque[weakref.ref[Provider]] = deque(maxlen=MOST)


class Provider:
    """The frames of one thread at one stop. LLDB makes it. Only `identity` and `append` may call LLDB."""

    def __init__(self, frames: Any, _arguments: Any) -> None:
        #: The thread's own frames.
        self.frames = frames
        self._identity: tuple[int, int] | None = None
        #: How many of these there are, and where those behind them execute.
        self._own: int | None = None
        self._behind: Sequence[int] = ()
        #: The outermost frame that LLDB has asked for.
        self._asked = 0
        _made.append(weakref.ref(self))

    @staticmethod
    def applies_to_thread(_thread: Any) -> bool:
        """True: what threads do is not known yet."""
        return True

    @staticmethod
    def get_description() -> str:
        """What `target frame-provider list` prints."""
        return "OpenMP: stacks continue in the thread that opened the region"

    @staticmethod
    def get_priority() -> None:
        """The lowest one."""

    def get_frame_at_index(self, index: int) -> Any:
        """The number of the thread's own frame, or a frame of another thread; `None` behind the last."""
        self._asked = max(self._asked, index)
        # Nothing is at a number of the own frames that is too high.
        if self._own is None or index < self._own:
            return index
        number = index - self._own
        return {"idx": index, "pc": self._behind[number]} if number < len(self._behind) else None

    def identity(self) -> tuple[int, int]:
        """Identifies the thread."""
        if self._identity is None:
            self._identity = identity_of(self.frames.GetThread())
        return self._identity

    def append(self, addresses: Sequence[int]) -> int:
        """Has frames behind the thread's own. Returns how many there are: LLDB asks for each once."""
        if addresses and self._own is None and self._asked < (own := len(self.frames)):
            self._behind = tuple(addresses)
            self._own = own
        return len(self._behind)

    def has_appended(self, index: int) -> bool:
        """True for the number of a frame that is not the thread's own."""
        return self._own is not None and index >= self._own


def identity_of(thread: Any) -> tuple[int, int]:
    """Identifies a thread among those of all processes and cores."""
    return int(thread.GetProcess().GetUniqueID()), int(thread.GetThreadID())


def provider_of(thread: Any) -> Provider | None:
    """The provider of a thread at this stop, if it has one."""
    if not _made:
        return None
    wanted = identity_of(thread)
    for reference in reversed(list(_made)):
        provider = reference()
        if provider is not None and provider.frames.IsValid() and provider.identity() == wanted:
            return provider
    return None


def register(adapter: Adapter, target: Any) -> None:
    """Has LLDB ask for frames of a target, if it can."""
    number = adapter.debugger.targets.number(target)
    if number in adapter.appending or not target.IsValid() or not hasattr(target, "RegisterScriptedFrameProvider"):
        return
    adapter.appending.add(number)
    target.RegisterScriptedFrameProvider(f"{__name__}.Provider", lldb.SBStructuredData(), lldb.SBError())
