"""A process whose main thread holds Python's interpreter lock in C code, while other threads want it.

One line of JSON says which threads these are. Then the main thread reads its standard input without releasing the lock, and ends with
it. Runs on CPython 3.8 and later, with what its smallest packages have.
"""

import ctypes
import json
import os
import sys
import threading

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
WAITERS = 3
# Seconds for which a thread that wants the lock lets another one have it. The holder would else be asked for it between two calls.
PATIENCE = 1000


def wait(pipe):
    os.read(pipe, 1)
    # Not reached while the main thread holds the lock.
    os._exit(0)


def reads(task):
    """True if a thread is in read(), which has one number on x86-64 and another on aarch64."""
    with open(f"/proc/self/task/{task}/syscall", encoding="ascii") as call:
        return call.read().split()[0] in ("0", "63")


def main():
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    sys.setswitchinterval(PATIENCE)
    inward, outward = os.pipe()
    threads = [threading.Thread(target=wait, args=(inward,), daemon=True) for _ in range(WAITERS)]
    for thread in threads:
        thread.start()
    while not all(reads(thread.native_id) for thread in threads):
        os.sched_yield()
    line = {"pid": os.getpid(), "holder": threading.get_native_id(), "waiters": [thread.native_id for thread in threads]}
    line = (json.dumps(line) + "\n").encode()
    # Functions called by PyDLL keep the lock.
    holding = ctypes.PyDLL(None)
    holding.write(outward, b"x" * WAITERS, WAITERS)
    holding.write(1, line, len(line))
    holding.read(0, ctypes.create_string_buffer(1), 1)
    holding._exit(0)


main()
