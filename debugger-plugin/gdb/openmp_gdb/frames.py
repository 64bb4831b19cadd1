"""Shows the rows of backtraces by gdb's frame decorators.

A frame filter does it, so that `bt` and front ends by MI and DAP show the same. `bt` prints folded
frames indented, and `bt -hide` leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator

import gdb
from gdb.FrameDecorator import FrameDecorator

from openmp_core import frames as core
from openmp_core.session import PREFIX

from .debugger import Frame


class Hidden(FrameDecorator):
    """A frame of the runtime. gdb prints it indented, or not at all."""

    def __init__(self, frame: FrameDecorator) -> None:
        super().__init__(frame)
        self._frame = frame

    def name(self) -> str | None:
        """Its name, if gdb has one. Without one, decorators of gdb 10 to 15 return the address, and of gdb 16 `???`."""
        own = self._frame.function()
        special = isinstance(own, str) and own.startswith("<")
        return own if special else self.inferior_frame().name()

    def function(self) -> str:
        return self.name() or core.UNKNOWN


class Folded(Hidden):
    """The outermost of some frames of the runtime, which stands for all of them."""

    def __init__(self, row: core.Folded[FrameDecorator]) -> None:
        super().__init__(row.frames[-1])
        self._row = row

    # The stubs do not know that what is elided are decorators.
    def elided(self) -> Iterator[FrameDecorator] | None:  # type: ignore[override]
        hidden = [Hidden(frame) for frame in self._row.frames[:-1]]
        return iter(hidden) if hidden else None

    def function(self) -> str:
        return self._row.title(self.name())


class Body(FrameDecorator):
    """The body of a construct."""

    def __init__(self, row: core.Body[FrameDecorator]) -> None:
        super().__init__(row.frame)
        self._row = row

    def function(self) -> str:
        return self._row.label


class Elsewhere(FrameDecorator):
    """A frame of another thread, in which this stack continues."""

    def __init__(self, row: core.Elsewhere[FrameDecorator]) -> None:
        super().__init__(row.last)
        self._row = row

    def function(self) -> str:
        return self._row.label

    def address(self) -> int | None:
        address = self._row.address
        # Front ends want one.
        return super().address() if address is None else address

    def filename(self) -> str | None:
        return self._row.file

    def line(self) -> int | None:
        return self._row.line

    def frame_args(self) -> None:
        return None

    def frame_locals(self) -> None:
        return None


class Filter:
    """The frame filter. It changes nothing where there is no OpenMP."""

    def __init__(self, folding: core.Folding) -> None:
        self._folding = folding
        self.name = PREFIX
        self.priority = 100
        gdb.frame_filters[self.name] = self  # type: ignore[assignment]

    @property
    def enabled(self) -> bool:
        """What gdb asks, and sets by `disable frame-filter`."""
        return self._folding.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._folding.enabled = enabled

    def filter(self, frames: Iterator[FrameDecorator]) -> Iterator[FrameDecorator]:
        """What gdb calls."""
        rows = self._folding.rows(frames, lambda frame: Frame(frame.inferior_frame()))
        return frames if rows is None else map(decorated, rows)


def decorated(row: core.Row[FrameDecorator]) -> FrameDecorator:
    """A row as gdb prints it."""
    if isinstance(row, core.Folded):
        return Folded(row)
    if isinstance(row, core.Body):
        return Body(row)
    return Elsewhere(row) if isinstance(row, core.Elsewhere) else row.frame
