"""Where a step into a region or task ends: the first line of its body."""

from __future__ import annotations

from .debugger import Debugger


def body_of(debugger: Debugger, function: int) -> int:
    """The function with the source of a construct's body.

    clang has the runtime call a function that only calls the body's function."""
    outer = debugger.function_at(function)
    if outer is None:
        return function
    targets = debugger.call_targets(outer.start, outer.end)
    target = targets[0] if len(targets) == 1 else None
    if target is None:
        return function
    called = debugger.function_at(target)
    if called is None or called.start != target or called.file != outer.file:
        return function
    lines = {line for _, line in debugger.line_entries(outer.start, outer.end, outer.file) if line}
    # It has no line but the construct's, and what it calls begins there or at the block behind it.
    return target if lines == {outer.line} and called.line in (outer.line, outer.line + 1) else function


def behind_prologue(debugger: Debugger, function: int) -> int:
    """The first address behind a function's prologue, by the line table."""
    source = debugger.source_at(function)
    found = debugger.function_at(function)
    if source is None or found is None:
        return function
    entries = debugger.line_entries(found.start, found.end, source.file)
    return min((address for address, line in entries if line and address > function), default=function)


def begin_of_body(debugger: Debugger, function: int) -> int:
    """Where the body of a construct begins that the runtime calls a function for.

    Unoptimised code of gcc loads shared variables behind the prologue, at the line of the construct."""
    body = body_of(debugger, function)
    behind = behind_prologue(debugger, body)
    found = debugger.function_at(body)
    lines = [debugger.source_at(address) for address in (body, behind)]
    if found is None or lines[0] is None or lines[0] != lines[1]:
        return behind
    entries = debugger.line_entries(behind, found.end, lines[0].file)
    end = min((address for address, line in entries if line and line != lines[0].line), default=found.end)
    # A loop of the construct may have no iteration for this thread: what is behind a jump may not be executed.
    return debugger.straight_to(behind, end)
