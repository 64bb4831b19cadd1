"""Letting an inferior run, and stopping it."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import gdb

from openmp_core.debugger import Stopped
from openmp_core.errors import DebuggerError

from . import output

#: Seconds within which a process that is interrupted stops.
PATIENCE = 5.0


def go_on() -> bool:
    """Lets all threads run until one stops. False if the process has ended."""
    if gdb.parameter("scheduler-locking") == "on" and not gdb.parameter("non-stop"):
        raise DebuggerError("Only the selected thread would continue: `set scheduler-locking off` first.")
    gdb.execute(command())
    return is_alive()


def command() -> str:
    """The command that lets all threads run."""
    return "continue -a" if gdb.parameter("non-stop") else "continue"


@contextmanager
def only_selected() -> Iterator[None]:
    """Has only the selected thread continue for a while."""
    before = str(gdb.parameter("scheduler-locking"))
    gdb.execute("set scheduler-locking on", to_string=True)
    try:
        yield
    finally:
        lock(before)


def lock(mode: str) -> None:
    """Sets gdb's parameter `scheduler-locking`, which gdb refuses without a process: then as soon as there is one."""
    try:
        gdb.execute(f"set scheduler-locking {mode}", to_string=True)
    except gdb.error:

        def later(_: object) -> None:
            gdb.events.new_thread.disconnect(later)
            with suppress(gdb.error):
                gdb.execute(f"set scheduler-locking {mode}", to_string=True)

        gdb.events.new_thread.connect(later)


def is_alive() -> bool:
    """True if the selected process is still there."""
    return gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None


def run_for(inferior: gdb.Inferior, seconds: float) -> Stopped:
    """Lets the process run for some time, if nothing stops it before."""
    if gdb.parameter("non-stop"):
        raise DebuggerError("That takes all-stop mode (`set non-stop off`, before the process is there).")
    is_local = interrupted_here(inferior)
    why: list[gdb.StopEvent] = []
    over, sent = threading.Event(), threading.Event()

    def complain() -> None:
        # gdb keeps back its own output meanwhile.
        if not over.wait(PATIENCE):
            os.write(2, b"The process was to stop for a moment, and does not. Send it SIGINT.\n")

    def interrupt() -> None:
        if over.wait(seconds):
            return
        sent.set()
        if is_local:
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
        with stopped_by_sigint(), output.kept_back() as kept:
            gdb.execute(command())
    finally:
        over.set()
        timer.join()
        gdb.events.stop.disconnect(why.append)
    # Without that, the user has pressed Ctrl-C.
    if sent.is_set() and is_alive() and any(isinstance(event, gdb.SignalEvent) and event.stop_signal == "SIGINT" for event in why):
        return Stopped.TIME
    gdb.write(kept.text)
    return Stopped.OTHER if is_alive() else Stopped.ENDED


def interrupted_here(inferior: gdb.Inferior) -> bool:
    """True if a signal of this process stops the inferior, False if gdbserver can do it.

    gdbserver interrupts the process group that the process leads. Raises `DebuggerError` if it leads none."""
    connection = getattr(inferior, "connection", None)
    if connection is not None and connection.type == "native":
        return True
    # With the same threads, it is the same process: gdbserver runs on this machine.
    if tasks_here(inferior.pid) == {thread.ptid[1] for thread in inferior.threads()}:
        return True
    if process_groups().get(inferior.pid, inferior.pid) != inferior.pid:
        raise DebuggerError(
            f"gdbserver cannot stop process {inferior.pid} for a moment: it interrupts process groups, and the process leads none. "
            "Start the program by `setsid`."
        )
    return False


def tasks_here(pid: int) -> set[int]:
    """The threads of the process that has this number on this machine."""
    try:
        return {int(name) for name in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return set()


#: The group, the name of its leader, which may have blanks, the process and its command line.
PROCESS_GROUP = re.compile(r"(?P<group>\d+)\s+\S.*?\s+(?P<pid>\d+)\s+\S")


def process_groups() -> dict[int, int]:
    """The process group of each process of the target, as far as gdbserver knows them."""
    found: dict[int, int] = {}
    with suppress(gdb.error):
        # Columns are as wide as their values, and not as their headings.
        for row in gdb.execute("info os procgroups", to_string=True).splitlines():
            match = PROCESS_GROUP.match(row)
            if match:
                found[int(match["pid"])] = int(match["group"])
    return found


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
