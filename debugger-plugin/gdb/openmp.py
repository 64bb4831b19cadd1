"""Loads the plugin into gdb: `source .../openmp.py`."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
# Installed, both packages lie beside this file; in a checkout the core lies one folder above.
_folders = [_here] if os.path.isdir(os.path.join(_here, "openmp_core")) else [_here, os.path.dirname(_here)]
sys.path[:0] = [folder for folder in _folders if folder not in sys.path]

import openmp_gdb  # noqa: E402 - it is found by the path above

openmp_gdb.register()
