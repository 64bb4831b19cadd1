"""Loads the plugin into gdb: `source .../openmp.py`."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if _here not in sys.path:
    sys.path.insert(0, _here)

import openmp_gdb  # noqa: E402 - it is found by the path above

openmp_gdb.register()
