"""A process whose threads are in Python functions of many kinds, and each blocked in a system call.

One line of JSON has the stacks of all threads as Python itself tells them. Then the main thread reads its standard input, and ends
with it. Runs on CPython 3.8 and later, with what its smallest packages have.
"""

import ctypes
import functools
import json
import os
import sys
import threading

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1


def stack(frame):
    """Frames as [name, file, line], the innermost first."""
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


class Block:
    def __init__(self, pipe):
        self.pipe = pipe

    def enter(self):
        # The line of a call over several lines is that of its beginning.
        return os.read(
            self.pipe,
            1,
        )

    def __enter__(self):
        self.enter()

    def __exit__(self, *_):
        pass


def wait_in_context(pipe):
    with Block(pipe):
        pass


def numbers(pipe):
    yield 1
    yield os.read(pipe, 1)


def wait_in_generator(pipe):
    for _ in numbers(pipe):
        pass


def wait_in_callback(pipe):
    return sorted([2, 1], key=lambda _: functools.reduce(lambda *_: os.read(pipe, 1), [1, 2]))


def wait_in_comprehension(pipe):
    return [os.read(pipe, 1) for _ in range(1)]


class Größe:
    def __init__(self, pipe):
        os.read(pipe, 1)


def wait_in_constructor(pipe):
    return Größe(pipe)


def wait_in_recursion(pipe, depth=100):
    if depth:
        return wait_in_recursion(pipe, depth - 1)
    return os.read(pipe, 1)


def wait_in_compiled_text(pipe):
    exec("\n\n\nos.read(pipe, 1)", {"os": os, "pipe": pipe})


def wait_far_down(pipe):
    value = 0
    # Tables of lines have another form for long functions.
    exec("def long():\n" + "    value = 0\n" * 300 + "    os.read(pipe, 1)\n", globals())
    globals()["pipe"] = pipe
    long()
    return value


def wait_in_c(pipe):
    """C code calls Python, which calls C code."""
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: len(os.read(pipe, 1)))
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(), 2, 4, compare)


WAITS = [
    wait_in_context,
    wait_in_generator,
    wait_in_callback,
    wait_in_comprehension,
    wait_in_constructor,
    wait_in_recursion,
    wait_in_compiled_text,
    wait_far_down,
    wait_in_c,
]


def reads(task):
    """True if a thread is in read(), which has one number on x86-64 and another on aarch64."""
    with open(f"/proc/self/task/{task}/syscall", encoding="ascii") as call:
        return call.read().split()[0] in ("0", "63")


def main():
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    pipe, keep = os.pipe()
    threads = [threading.Thread(target=wait, args=(pipe,), daemon=True) for wait in WAITS]
    for thread in threads:
        thread.start()
    while not all(reads(thread.native_id) for thread in threads):
        os.sched_yield()
    current = sys._current_frames()
    told = {thread.native_id: stack(current[thread.ident]) for thread in threads}
    own, version = threading.get_native_id(), list(sys.version_info[:3])
    del current
    # One line, so that it is the line of both calls.
    print(json.dumps({"pid": os.getpid(), "version": version, "threads": {**told, own: stack(sys._getframe())}}), flush=True), os.read(0, 1)
    os._exit(0)


main()
