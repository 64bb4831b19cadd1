"""What begins or ends at a stop, in words."""

from __future__ import annotations

from contextlib import suppress
from ctypes import byref
from typing import Callable

from . import ompd
from .debugger import Debugger, Frame
from .errors import DebuggerError, OmpdError
from .functions import Query
from .modules import is_system
from .process import Process
from .session import Session

#: What begins or ends, in the words that stand before what else is known.
WORDS = {
    "parallel-begin": "A parallel region begins",
    "parallel-end": "A parallel region ends",
    "task-begin": "A task begins",
    "task-end": "A task ends",
    "thread-begin": "A thread begins",
    "thread-end": "A thread ends",
    "barrier-begin": "The thread comes to a barrier",
    "lock-acquire": "The thread comes to a lock",
    "critical-acquire": "The thread comes to a critical construct",
    "taskwait-begin": "The thread comes to a taskwait construct",
    "worksharing-begin": "The thread comes to a worksharing loop or sections construct",
    "single-begin": "The thread comes to a single construct",
}

#: Events that are about the region, and about the task.
OF_REGION = ("parallel-begin", "parallel-end")
OF_TASK = ("task-begin", "task-end")


def description(session: Session, process: Process, event: str, addresses: list[int]) -> str:
    """The event that the selected thread has stopped at, and all that is known of it.

    `addresses` are those of the stop's breakpoints."""
    thread = session.selected_thread()
    lwp = thread.lwp
    process.state.ran()
    lines = [f"{WORDS[event]} (Thread {thread.id}, LWP {lwp})."]
    place = source_place(session.debugger, addresses)
    if place is not None:
        lines.append(f"at: {place}")
    if event in OF_REGION:
        lines += region(process, lwp)
    if event in OF_TASK or event in OF_REGION:
        lines += task(process, lwp, "it is" if event in OF_TASK else "met by")
    if event not in OF_REGION and event not in OF_TASK:
        lines += thread_lines(process, lwp)
    return "\n  ".join(lines)


def program_frame(debugger: Debugger, addresses: list[int]) -> Frame | None:
    """The innermost frame of the selected thread in code with source, outside of the libraries with these addresses.

    A runtime and the C library may have source too."""
    runtimes = {debugger.module_at(address) for address in addresses} - {None}
    frame: Frame | None = debugger.newest_frame()
    for _ in range(32):
        if frame is None:
            return None
        source = frame.source()
        module = debugger.module_at(frame.pc)
        if source is not None and source.line and module not in runtimes and not is_system(module):
            return frame
        frame = frame.older()
    return None


def select_program_frame(debugger: Debugger, addresses: list[int]) -> bool:
    """Selects that frame. False if there is none, or if the debugger refuses."""
    with suppress(DebuggerError):
        frame = program_frame(debugger, addresses)
        if frame is not None:
            debugger.select_frame(frame)
            return True
    return False


def source_place(debugger: Debugger, addresses: list[int]) -> str | None:
    """The place of that frame."""
    frame = program_frame(debugger, addresses)
    source = frame.source() if frame is not None else None
    return f"{frame.name or '??'} ({source.file}:{source.line})" if frame is not None and source is not None else None


def asked(ask: Callable[[], object]) -> str:
    """An answer in words, or that it is not known."""
    try:
        return str(ask())
    except OmpdError:
        return "not known"


def code_at(debugger: Debugger, address: int) -> str:
    """A function by its address, with its place in the source."""
    name = debugger.symbol_at(address) or f"{address:#x}"
    source = debugger.source_at(address)
    return f"{name} ({source.file}:{source.line})" if source is not None else name


def region_function(process: Process, lwp: int) -> int:
    """The function that the compiler made of the innermost region's body. Raises `OmpdError` if it is unknown."""
    address = ompd.Address()
    with process.current(lwp, "parallel") as handle:
        process.library.call("ompdx_get_parallel_function", handle, byref(address))
    return int(address.address)


def region(process: Process, lwp: int) -> list[str]:
    """The innermost region of a thread."""
    query = Query(process, lwp)
    return [f"threads: {asked(lambda: query.icv('team-size-var'))}", region_line(process, lwp)]


def region_line(process: Process, lwp: int) -> str:
    """The function of a thread's innermost region."""
    return f"function: {asked(lambda: code_at(process.debugger, region_function(process, lwp)))}"


def task_function(process: Process, lwp: int) -> int:
    """The function of the task that a thread executes. Raises `OmpdError` if it is not known."""
    address = ompd.Address()
    with process.current(lwp, "task") as handle:
        process.library.call("ompd_get_task_function", handle, byref(address))
    return int(address.address)


def named_task(process: Process, lwp: int) -> str:
    """The task that a thread executes, by its function."""
    try:
        return f"the task of {code_at(process.debugger, task_function(process, lwp))}"
    except OmpdError:
        outside = asked(lambda: Query(process, lwp).icv("levels-var")) == "0"
        return "the initial task" if outside else "a task whose function is not known"


def task(process: Process, lwp: int, relation: str) -> list[str]:
    """The task that a thread executes, and its frames."""
    library = process.library
    lines = []
    try:
        with process.current(lwp, "task") as handle:
            lines.append(f"{relation}: {named_task(process, lwp)}")
            enter, leave = ompd.FrameInfo(), ompd.FrameInfo()
            library.call("ompd_get_task_frame", handle, byref(leave), byref(enter))
            places = [("called the runtime", enter), ("was called", leave)]
            text = [f"{what} at {f.frame_address.address:#x}" for what, f in places if f.frame_address.address]
            lines.append(f"its frames: {', '.join(text) or 'none'}")
    except OmpdError:
        lines.append("its frames: not known" if lines else f"{relation}: not known")
    return lines


def thread_lines(process: Process, lwp: int) -> list[str]:
    """Where a thread is in OpenMP."""
    query = Query(process, lwp)
    try:
        return [f"thread {query.icv('thread-num-var')} of {query.icv('team-size-var')}, level {query.icv('levels-var')}"]
    except OmpdError:
        return []
