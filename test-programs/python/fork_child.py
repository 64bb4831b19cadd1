"""A Python process with two OpenMP runtimes, and a forked child of it that hangs in one of them.

faiss and scikit-learn come from PyPI, each with a libgomp of its own. This process runs a parallel region on each and
forks. A child has only the thread that forked, while the pools of both libgomps in its memory still count the threads
of the parent: the next region waits for them for ever.

Arguments: the package the child uses again, "faiss" or "sklearn"; and "truth" to have the child say, in the records of
programs/expect.h, what its hang is to be called, and nothing else be said.

One line of JSON comes from the parent when the child exists, one from the child right before the call that hangs. The
parent waits in read() for the end of its standard input and then ends the child, and itself.
"""

import ctypes
import json
import os
import signal
import sys
import threading

# Read when the runtimes are loaded, by the imports below. Without a number scikit-learn uses no more threads than there
# are cores.
os.environ.update(OMP_NUM_THREADS="3", OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1")

import faiss
import numpy
from sklearn.cluster import KMeans

ROWS = 64
PR_SET_PDEATHSIG = 1
PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1


def use_faiss(data):
    index = faiss.IndexFlatL2(data.shape[1])
    index.add(data)
    # Few enough queries to be compared one by one, without the matrix library.
    index.search(data[:8], 2)


def use_sklearn(data):
    # Nothing that starts other threads: in the child they would be given the memory of the threads the pool counts,
    # which then crashes instead of hanging.
    KMeans(n_clusters=2, init=data[:2], n_init=1, max_iter=1).fit(data)


USES = {"faiss": use_faiss, "sklearn": use_sklearn}


def libgomps():
    """The mapped libgomps by the package that brought them."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps if "libgomp" in line}
    owner = {"faiss_cpu.libs": "faiss", "scikit_learn.libs": "sklearn"}
    return {owner.get(os.path.basename(os.path.dirname(path)), path): path for path in paths}


def ask(path):
    """What a runtime says of the calling thread."""
    library = ctypes.CDLL(path)
    names = ("thread_num", "num_threads", "level", "active_level", "max_threads")
    return {name: getattr(library, "omp_get_" + name)() for name in names}


def asleep(task):
    try:
        with open(f"/proc/self/task/{task}/stat", encoding="utf-8", errors="replace") as stat:
            # The name, in brackets, may hold anything.
            return stat.read().rpartition(") ")[2].startswith("S")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has just ended


def await_idle():
    """Returns when all other threads sleep, and so are where the next region expects them."""
    me = str(threading.get_native_id())
    while not all(asleep(task) for task in os.listdir("/proc/self/task") if task != me):
        os.sched_yield()


def say(facts):
    os.write(1, (json.dumps(facts) + "\n").encode())


def say_truth(role):
    """What programs/expect.h has a program say that is about to hang."""
    pid = os.getpid()
    say({"program": {"name": "fork_child", "pid": pid, "openmp": 0}})
    say({"thread": {"role": role, "lwp": pid, "pthread": hex(threading.get_ident()), "wait": "barrier"}})
    names = {"also": [], "threads": [role], "missing": [], "objects": [], "tasks": []}
    say({"expect": {"verdict": "deadlock", "situation": "pool_lost_in_fork", **names}})
    say({"ready": True, "coordinator": pid})


def main():
    again, truth = sys.argv[1], sys.argv[2:] == ["truth"]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    data = numpy.random.default_rng(1).random((ROWS, 4), dtype=numpy.float32)
    for use in USES.values():
        use(data)
    await_idle()
    tasks = len(os.listdir("/proc/self/task"))
    paths = libgomps()
    parent = os.getpid()

    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the parent was gone before
        libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
        if truth:
            say_truth("child")
        else:
            say({"child": os.getpid(), "runtimes": {name: ask(path) for name, path in paths.items()}})
        USES[again](data)
        say({"done": True})
        os._exit(0)
    if not truth:
        say({"parent": parent, "child": child, "threads": tasks, "paths": paths})
    while os.read(0, 1):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


main()
