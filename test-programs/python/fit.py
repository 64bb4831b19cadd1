"""Regions of two libgomps: that of scikit-learn and that of faiss. Writes what they have computed, and which libgomps the process has.

With an argument it waits for the end of its input then.
"""

import hashlib
import json
import sys

import faiss
import numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier

SAMPLES = 2000


def digest(array):
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def libgomps():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1].rsplit("/", 1)[-1] for line in maps}
    return sorted(file for file in files if file.startswith("libgomp") and "ompt" not in file)


def main():
    points = numpy.random.default_rng(7).normal(size=(SAMPLES, 12))
    kinds = (points[:, 0] * points[:, 1] + points[:, 2] > 0).astype(int)
    boosted = HistGradientBoostingClassifier(max_iter=3, random_state=1).fit(points, kinds)
    clusters = KMeans(5, n_init=1, random_state=3).fit(points)
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points.astype("float32"))
    found = index.search(points[:200].astype("float32"), 5)[1]
    line = {
        "boosted": digest(boosted.predict(points)),
        "clusters": digest(clusters.labels_),
        "found": digest(found),
        "libgomps": libgomps(),
    }
    print(json.dumps(line), flush=True)
    if len(sys.argv) > 1:
        sys.stdin.read()


main()
