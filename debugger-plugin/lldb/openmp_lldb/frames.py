"""LLDB's own backtraces: frames of the runtime are left out, constructs are named, and a link leads to the thread that opened the
region.

The plugin sets LLDB's setting `frame-format` to a function of its own. It prints a frame as the setting said before, or not at all.
LLDB 22 and later have a better way for the frames of the other thread (`appended`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import lldb

from openmp_core import frames as core

from .adapter import adapter_of
from .appended import provider_of
from .debugger import Frame
from .inferior import file_of, real_name

if TYPE_CHECKING:
    from .adapter import Adapter

SETTING = "frame-format"
FORMAT = f"${{script.frame:{__name__}.line}}"
#: Deeper stacks are shown as they are.
DEEPEST = 4096


class Shown(NamedTuple):
    """How a frame is shown."""

    #: It stands for itself, and for the frames that are left out beside it.
    is_shown: bool
    #: What is known of it.
    note: str = ""
    #: What stands for the name of its function, with what is known.
    name: str = ""
    #: Lines behind it.
    behind: Sequence[str] = ()
    #: It is the runtime's, and called by the program, or calls it.
    is_inside: bool = False


AS_IT_IS = Shown(True)
LEFT_OUT = Shown(False)


class Backtraces:
    """How the frames of threads are shown at this stop."""

    def __init__(self, adapter: Adapter, before: str) -> None:
        self._adapter = adapter
        #: The setting as it was.
        self.before = before
        self._stop = -1
        self._threads: dict[int, list[Shown]] = {}

    def shown(self, frame: Any) -> Shown:
        """How a frame is shown."""
        folding = self._adapter.plugin.folding
        thread = frame.GetThread()
        lwp, index = int(thread.GetThreadID()), int(frame.GetFrameID())
        if not folding.enabled:
            return LEFT_OUT if is_appended(thread, index) else AS_IT_IS
        target = thread.GetProcess().GetTarget()
        stop = hash((self._adapter.debugger.targets.inferior(target).stop_number(), folding.continued))
        if stop != self._stop:
            self._stop = stop
            self._threads.clear()
        if lwp not in self._threads:
            # While that is found out, frames are shown as they are.
            self._threads[lwp] = []
            self._threads[lwp] = self._of(target, thread)
        rows = self._threads[lwp]
        return rows[index] if index < len(rows) else AS_IT_IS

    def _of(self, target: Any, thread: Any) -> list[Shown]:
        debugger = self._adapter.debugger
        provider = provider_of(thread)
        own = provider.frames if provider is not None else thread
        count = len(own) if provider is not None else thread.GetNumFrames()
        frames = list(own) if count <= DEEPEST else []
        links: list[core.Elsewhere[Any]] = []
        with debugger.selections.held(target, thread):
            rows = self._adapter.plugin.folding.rows(frames, lambda frame: Frame(frame, debugger.session))
            found = [AS_IT_IS for _ in frames]
            for row in rows or ():
                if isinstance(row, core.Elsewhere):
                    links.append(row)
                else:
                    self._add(found, row)
            places = [self._place(row) for row in takewhile(lambda row: row.address, links)]
            appended = provider.append(places) if provider is not None and frames else 0
        for row in links[appended:]:
            last = int(row.last.GetFrameID())
            place = f" at {row.file.rpartition('/')[2]}:{row.line}" if row.file else ""
            found[last] = found[last]._replace(behind=[*found[last].behind, f"  {row.label}{place}"])
        # After another setting there may be more of them than links.
        shown = [Shown(True, row.label, row.label) for row in links[:appended]]
        return [*found, *shown, *[LEFT_OUT] * (appended - len(shown))]

    def _place(self, row: core.Elsewhere[Any]) -> int:
        """The address of a frame at which LLDB finds its line: it does not go back into the call for frames that are appended."""
        address = row.address or 0
        source = self._adapter.debugger.source_at(address)
        return address if source is not None and source.line == row.line else address - 1

    @staticmethod
    def _add(found: list[Shown], row: core.Row[Any]) -> None:
        if isinstance(row, core.Folded):
            numbers = [int(frame.GetFrameID()) for frame in row.frames]
            # The innermost frame is where the thread is, the outermost where it began.
            stands = numbers[0] if numbers[0] == 0 else numbers[-1]
            for number, frame in zip(numbers, row.frames):
                own = real_name(frame.GetFunctionName())
                called = None if own else row.called
                notes = ", ".join(note for note in (called, row.note) if note and number == stands)
                name = row.title(own) if number == stands else ""
                found[number] = Shown(number == stands, f"[{notes}]" if notes else "", name, is_inside=number > 0)
        elif isinstance(row, core.Body):
            found[int(row.frame.GetFrameID())] = Shown(True, f"[{row.label}]", row.label)


#: By the number of the debugger.
_backtraces: dict[int, Backtraces] = {}


def begin(adapter: Adapter) -> None:
    """Has LLDB print frames by `line`."""
    name = adapter.lldb.GetInstanceName()
    values = lldb.SBDebugger.GetInternalVariableValue(SETTING, name)
    before = str(values.GetStringAtIndex(0)) if values.GetSize() else ""
    # Newer versions quote it.
    if before[:1] == before[-1:] == '"':
        before = before[1:-1]
    if before and FORMAT not in before:
        _backtraces[adapter.lldb.GetID()] = Backtraces(adapter, before)
        lldb.SBDebugger.SetInternalVariable(SETTING, FORMAT, name)


def line(frame: Any, _internal: Any) -> str:
    """What LLDB prints for a frame; empty for one that is left out."""
    target = frame.GetThread().GetProcess().GetTarget()
    adapter = adapter_of(target)
    backtraces = _backtraces.get(target.GetDebugger().GetID())
    own = plain(frame, backtraces.before if backtraces is not None else "")
    if adapter is None or backtraces is None:
        return own
    shown = shown_of(frame)
    selected = frame.GetThread().GetSelectedFrame()
    if not shown.is_shown and selected.GetFrameID() != frame.GetFrameID():
        return ""
    note = f" {printable(shown.note)}" if shown.note else ""
    return own.rstrip("\n") + note + "\n" + lines(shown.behind)


def shown_of(frame: Any) -> Shown:
    """How a frame is shown; as it is if that cannot be found out now."""
    target = frame.GetThread().GetProcess().GetTarget()
    adapter = adapter_of(target)
    backtraces = _backtraces.get(target.GetDebugger().GetID())
    if adapter is None or backtraces is None:
        return AS_IT_IS
    # Another thread of LLDB's may be in the middle of a command.
    with adapter.turn.if_free() as is_free:
        if is_free:
            try:
                return backtraces.shown(frame)
            except Exception as failure:
                # To print it here would be in the middle of a backtrace; `openmp doctor` shows it.
                adapter.plugin.session.failures.note(failure)
    return AS_IT_IS


def is_appended(thread: Any, index: int) -> bool:
    """True for a frame that another thread has."""
    provider = provider_of(thread)
    return provider is not None and provider.has_appended(index)


def lines(texts: Sequence[str]) -> str:
    """Texts as lines of a backtrace."""
    return "".join(f"    {printable(text)}\n" for text in texts)


def printable(text: str) -> str:
    """A text of the process without characters that would move the cursor."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def plain(frame: Any, setting: str) -> str:
    """A frame as the setting said before."""
    if hasattr(lldb, "SBFormat") and setting:
        error, stream = lldb.SBError(), lldb.SBStream()
        if frame.GetDescriptionWithFormat(lldb.SBFormat(setting, error), stream).Success() and error.Success():
            return str(stream.GetData() or "")
    # Older versions have no way to format a frame by another setting: this is their own one.
    name = frame.GetDisplayFunctionName() or ""
    offset = int(frame.GetPC()) - int(frame.GetSymbol().GetStartAddress().GetLoadAddress(frame.GetThread().GetProcess().GetTarget()))
    if not frame.GetFunction().IsValid() and frame.GetSymbol().IsValid() and offset > 0:
        name += f" + {offset}"
    elif frame.GetFunction().IsValid() and not name.endswith(")"):
        name += f"({', '.join(argument(value) for value in frame.GetVariables(True, False, False, True))})"
    module = (file_of(frame.GetModule().GetFileSpec()) or "").rpartition("/")[2]
    entry = frame.GetLineEntry()
    place = f" at {entry.GetFileSpec().GetFilename()}:{entry.GetLine()}" if entry.IsValid() else ""
    return f"frame #{frame.GetFrameID()}: {frame.GetPC():#018x} {module}`{name}{place}\n"


def argument(value: Any) -> str:
    """An argument of a function as LLDB prints it."""
    found = value.GetValue() or value.GetSummary()
    return f"{value.GetName()}={found if found is not None else '<unavailable>'}"
