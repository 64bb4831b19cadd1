"""The core is for any debugger: it imports none."""

from __future__ import annotations

import ast
import subprocess
import sys
import unittest
from pathlib import Path

import openmp_core

CORE = Path(openmp_core.__file__).parent
#: What only an adapter may import.
DEBUGGERS = {"gdb", "lldb", "openmp_gdb", "openmp_lldb"}
#: Refuses these modules, wherever they are, and imports every module of the core.
EACH = """
import importlib, pkgutil, sys
for name in sys.argv[2:]:
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
import openmp_core
for module in pkgutil.iter_modules(openmp_core.__path__, "openmp_core."):
    importlib.import_module(module.name)
    print(module.name)
"""


def imported(source: str) -> set[str]:
    """The modules that a file imports, by the first part of their names."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            found.add("__import__")
    return found


class Imports(unittest.TestCase):
    def test_no_module_imports_a_debugger(self) -> None:
        files = sorted(CORE.glob("**/*.py"))
        self.assertGreater(len(files), 15)
        for file in files:
            with self.subTest(file.name):
                names = imported(file.read_text())
                self.assertFalse(names & (DEBUGGERS | {"__import__", "importlib"}), names)

    def test_the_check_sees_each_way_to_import(self) -> None:
        for line in ("import gdb", "import os, gdb.types", "from gdb import Value", "def f():\n    import gdb", "from lldb.x import y"):
            self.assertTrue(imported(line) & DEBUGGERS, line)
        self.assertFalse(imported("from . import gdb") & DEBUGGERS)
        self.assertIn("__import__", imported("__import__('gdb')"))

    def test_every_module_is_imported_where_no_debugger_is(self) -> None:
        arguments = [sys.executable, "-c", EACH, str(CORE.parent), *sorted(DEBUGGERS)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.split()), len(list(CORE.glob("*.py"))) - 1)


if __name__ == "__main__":
    unittest.main()
