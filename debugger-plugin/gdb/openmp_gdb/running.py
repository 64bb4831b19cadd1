"""Letting an inferior run, and stopping it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import gdb

from openmp_core.debugger import Stopped

#: Seconds within which a process that is interrupted stops.
PATIENCE = 5.0


def go_on() -> bool:
    """Lets the process run until it stops again. False if it has ended."""
    try:
        quiet = gdb.parameter("suppress-cli-notifications") is not None
    except RuntimeError:
        quiet = False  # That is not in gdb 10 and 11: there the stop is printed.
    gdb.execute("with suppress-cli-notifications on -- continue" if quiet else "continue", to_string=True)
    return gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None


def run_for(inferior: gdb.Inferior, seconds: float) -> Stopped:
    """Lets the process run for some time, if nothing stops it before."""
    why: list[gdb.StopEvent] = []
    over = threading.Event()

    def complain() -> None:
        # gdbserver interrupts the process group that the process leads: nothing happens if it leads none.
        # gdb keeps back its own output meanwhile.
        if not over.wait(PATIENCE):
            os.write(2, b"The process was to stop for a moment, and does not. If gdbserver is attached to it, send it SIGINT.\n")

    def interrupt() -> None:
        if over.wait(seconds):
            return
        connection = getattr(inferior, "connection", None)
        if connection is not None and connection.type == "native":
            # gdb would do the same through its queue, but nothing may be left there when gdb ends.
            with suppress(ProcessLookupError):
                os.kill(inferior.pid, signal.SIGINT)
        else:
            gdb.post_event(lambda: None if over.is_set() else gdb.execute("interrupt"))
        complain()

    gdb.events.stop.connect(why.append)
    timer = threading.Thread(target=interrupt, daemon=True)
    # Signals are for gdb's own thread.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    timer.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    try:
        with stopped_by_sigint():
            alive = go_on()
    finally:
        over.set()
        timer.join()
        gdb.events.stop.disconnect(why.append)
    if not alive:
        return Stopped.ENDED
    ours = any(isinstance(event, gdb.SignalEvent) and event.stop_signal == "SIGINT" for event in why)
    return Stopped.TIME if ours else Stopped.OTHER


@contextmanager
def stopped_by_sigint() -> Iterator[None]:
    """Has SIGINT stop the process, and not get to it, whatever was said of it before."""
    row = gdb.execute("info signals SIGINT", to_string=True).splitlines()[-1].split()
    words = [("" if word == "Yes" else "no") + name for word, name in zip(row[1:4], ("stop", "print", "pass"))]
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"handle SIGINT {' '.join(words)}", to_string=True)
