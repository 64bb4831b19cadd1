"""A healthy process whose regions are in code that Numba compiles while the process runs, on Numba's layer for libgomp. Says
so in the records of programs/expect.h."""

import ctypes
import json
import os
import signal

os.environ.update(NUMBA_THREADING_LAYER="omp", NUMBA_NUM_THREADS="3", OPENBLAS_NUM_THREADS="1")

import numpy
from numba import njit, prange, threading_layer

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
# It ends by itself when nobody ends it.
SECONDS = 600


def say(facts):
    os.write(1, (json.dumps(facts) + "\n").encode())


@njit(parallel=True)
def total(values, steps):
    result = 0.0
    for i in prange(values.size):
        for step in range(steps):
            result += numpy.sin(values[i] + step)
    return result


def main():
    signal.alarm(SECONDS)
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    values = numpy.arange(300.0)
    total(values, 1)
    assert threading_layer() == "omp"
    pid = os.getpid()
    say({"program": {"name": "jit_loop", "pid": pid, "openmp": 0}})
    nothing = {key: [] for key in ("also", "threads", "missing", "objects", "tasks")}
    say({"expect": {"verdict": "none", **nothing}})
    say({"ready": True, "coordinator": pid})
    while True:
        total(values, 100_000)


main()
