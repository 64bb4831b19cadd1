"""Two threads of a healthy process use the same libgomp, of scikit-learn's wheel, each with a team of its own, again and
again; the main thread uses faiss, which brings another libgomp. Says so in the records of programs/expect.h."""

import ctypes
import json
import os
import signal
import threading

os.environ.update(OMP_NUM_THREADS="3", OPENBLAS_NUM_THREADS="2")

import faiss
import numpy
from sklearn.cluster import KMeans

ROWS = 256
PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
# It ends by itself when nobody ends it.
SECONDS = 600
TOLD_ROUNDS = 5


def say(facts):
    os.write(1, (json.dumps(facts) + "\n").encode())


def cluster(data, begun):
    while True:
        KMeans(n_clusters=4, init=data[:4], n_init=1, max_iter=5).fit(data)
        # The matrix library has threads of its own, which are no concern of OpenMP.
        numpy.dot(data, data.T)
        begun.set()


def main():
    signal.alarm(SECONDS)
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    data = numpy.random.default_rng(1).random((ROWS, 8), dtype=numpy.float32)
    index = faiss.IndexFlatL2(data.shape[1])
    index.add(data)
    begun = [threading.Event() for _ in range(2)]
    for event in begun:
        threading.Thread(target=cluster, args=(data, event), daemon=True).start()
    for event in begun:
        event.wait()
    pid = os.getpid()
    say({"program": {"name": "two_pools", "pid": pid, "openmp": 0}})
    nothing = {key: [] for key in ("also", "threads", "missing", "objects", "tasks")}
    say({"expect": {"verdict": "none", **nothing}})
    say({"ready": True, "coordinator": pid})
    done = 1
    while True:
        index.search(data[:8], 2)
        done += 1
        if done <= TOLD_ROUNDS:
            say({"round": done})


main()
