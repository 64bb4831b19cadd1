"""Letting a process run, and stopping it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import lldb

from openmp_core.debugger import Stopped
from openmp_core.errors import DebuggerError

from . import editor
from .breakpoints import has_other_reason, hit_now, stop_of
from .inferior import is_alive

if TYPE_CHECKING:
    from .debugger import Debugger


#: A thread with such a reason has not stopped the process.
NO_REASONS = (lldb.eStopReasonNone, lldb.eStopReasonInvalid)
#: States of a process that has ended.
ENDED = (lldb.eStateExited, lldb.eStateDetached, lldb.eStateInvalid)
#: Seconds after which a process that still runs is interrupted again.
AGAIN = 2.0
#: More bytes than the C library's `struct sigaction` has.
SIGACTION = 512


@contextmanager
def waiting(debugger: Any, waits: bool) -> Iterator[None]:
    """Has LLDB wait until the process stops, or not."""
    before = debugger.GetAsync()
    debugger.SetAsync(not waits)
    try:
        yield
    finally:
        debugger.SetAsync(before)


@contextmanager
def interruptible(process: Any) -> Iterator[None]:
    """Has Ctrl-C stop the process meanwhile.

    LLDB takes it for the command, which waits for the process and does not notice. So the signal is Python's for that
    time: it tells the other thread at once, whatever the thread of commands does."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    libc = ctypes.CDLL(None)
    # LLDB has set its handler without Python, which cannot set it again.
    before = ctypes.create_string_buffer(SIGACTION)
    libc.sigaction(signal.SIGINT, None, before)
    try:
        signal.signal(signal.SIGINT, lambda *_: None)
        told = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:
        # Commands come from another thread than that of the terminal: a front end has its own way to stop a process.
        os.close(reader)
        os.close(writer)
        yield
        return

    def watch() -> None:
        while got := os.read(reader, 1):
            if got[0] == signal.SIGINT:
                process.SendAsyncInterrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told)
        libc.sigaction(signal.SIGINT, before, None)
        os.close(writer)
        watcher.join()
        os.close(reader)


def go_on(debugger: Debugger) -> bool:
    """Lets all threads run until one stops. False if the process has ended, or if others have stopped for other reasons too."""
    process = debugger.selections.target().GetProcess()
    let_run(debugger, process)
    if not is_alive(process):
        tell(debugger, process)
        return False
    ours = hit_now(debugger, process)
    if not ours:
        tell(debugger, process)
        return True
    thread = process.GetThreadByID(ours[0].hits[0])
    if thread.IsValid():
        debugger.selections.select(thread, 0)
    if has_other_reason(process):
        tell(debugger, process)
        return False
    return True


def let_run(debugger: Debugger, process: Any) -> None:
    """Lets a process run until it stops."""
    debugger.ran += 1
    if editor.is_here() and not editor.can_show_anew():
        error = run_beside(debugger, process)
    else:
        with waiting(debugger.lldb, True), debugger.turn.given_back(), interruptible(process):
            error = process.Continue()
        editor.show_anew(debugger.lldb)
    if error.Fail():
        raise DebuggerError(error.GetCString() or "The process does not continue.")


def run_beside(debugger: Debugger, process: Any) -> Any:
    """Lets a process run while another thread of LLDB's follows it, and reports it to an editor."""
    before = stop_of(process)
    debugger.stayed_at = None
    with waiting(debugger.lldb, False), debugger.turn.given_back():
        error = process.Continue()
        while error.Success() and not stands(debugger, process, before):
            debugger.stayed.wait(editor.INTERVAL)
            debugger.stayed.clear()
    return error


def stands(debugger: Debugger, process: Any, before: tuple[int, int]) -> bool:
    """True if a process has stopped since the stop `before`, and stays so, or has ended."""
    if debugger.stayed_at not in (None, before):
        return True
    # LLDB calls no hook if it has interrupted the process, nor if that has ended.
    state = process.GetState()
    if state != lldb.eStateStopped or stop_of(process) == before:
        return state in ENDED
    reasons = [thread.GetStopReason() for thread in process]
    # Without a reason, LLDB is about to let the process run again.
    return any(reason not in NO_REASONS for reason in reasons) and all(is_interrupted(thread) for thread in process)


def tell(debugger: Debugger, process: Any) -> None:
    """Prints why a process has stopped or ended."""
    if is_alive(process):
        debugger.execute("process status", False)
    else:
        what = process.GetExitDescription()
        text = f"Process {process.GetProcessID()} exited with status = {process.GetExitStatus()}"
        debugger.write(f"{text} {what}\n" if what else f"{text}\n")


def run_for(debugger: Debugger, process: Any, seconds: float) -> Stopped:
    """Lets a process run for some time, if nothing stops it before."""
    over, sent = threading.Event(), threading.Event()

    def interrupt() -> None:
        wait = seconds
        # An interrupt is lost that comes before LLDB lets the process run.
        while not over.wait(wait):
            sent.set()
            process.SendAsyncInterrupt()
            wait = AGAIN

    timer = threading.Thread(target=interrupt, daemon=True)
    timer.start()
    try:
        let_run(debugger, process)
    finally:
        over.set()
        timer.join()
    if not is_alive(process):
        tell(debugger, process)
        return Stopped.ENDED
    if sent.is_set() and all(is_interrupted(thread) for thread in process):
        return Stopped.TIME
    tell(debugger, process)
    return Stopped.OTHER


def is_interrupted(thread: Any) -> bool:
    """True if nothing but the interrupt has stopped a thread: LLDB does it by SIGSTOP, which the thread does not get."""
    reason = thread.GetStopReason()
    if reason == lldb.eStopReasonSignal:
        signals = thread.GetProcess().GetUnixSignals()
        return bool(thread.GetStopReasonDataAtIndex(0) == signals.GetSignalNumberFromName("SIGSTOP"))
    return reason in (*NO_REASONS, getattr(lldb, "eStopReasonInterrupt", None))
