"""A process that hangs between Python's interpreter lock and a nest lock of OpenMP.

A thread sets the lock and waits for a byte, without the interpreter lock. The main thread keeps the interpreter lock, sends the byte, and
sets the lock. Now each has what the other wants. The argument is the library of the OpenMP runtime.
"""

import ctypes
import json
import os
import sys
import threading

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
# Seconds for which a thread that wants the interpreter lock lets another one have it.
PATIENCE = 1000
# Larger than any lock.
LOCK = 64


def reads(task):
    """True if a thread is in read(), which has one number on x86-64 and another on aarch64."""
    with open(f"/proc/self/task/{task}/syscall", encoding="ascii") as call:
        return call.read().split()[0] in ("0", "63")


def work(runtime, lock, set_lock, go_on):
    runtime.omp_set_nest_lock(lock)
    os.write(set_lock, b"x")
    os.read(go_on, 1)
    # Not reached: the main thread has the interpreter lock.
    os._exit(1)


def main():
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    sys.setswitchinterval(PATIENCE)
    runtime = ctypes.CDLL(sys.argv[1])
    lock = ctypes.create_string_buffer(LOCK)
    runtime.omp_init_nest_lock(lock)
    is_set, set_lock = os.pipe()
    go_on, let_go_on = os.pipe()
    thread = threading.Thread(target=work, args=(runtime, lock, set_lock, go_on), daemon=True)
    thread.start()
    os.read(is_set, 1)
    while not reads(thread.native_id):
        os.sched_yield()
    line = {"pid": os.getpid(), "holder": threading.get_native_id(), "owner": thread.native_id}
    line = (json.dumps(line) + "\n").encode()
    # Functions called by PyDLL keep the interpreter lock.
    holding, runtime = ctypes.PyDLL(None), ctypes.PyDLL(sys.argv[1])
    holding.write(let_go_on, b"x", 1)
    holding.write(1, line, len(line))
    runtime.omp_set_nest_lock(lock)


main()
