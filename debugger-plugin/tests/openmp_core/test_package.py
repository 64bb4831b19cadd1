"""What the build hook puts into sdist and wheel: the core is never missing."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

GDB = Path(__file__).resolve().parents[2] / "gdb"
#: The module with the class of hooks, which only builds have.
INTERFACE = "hatchling.builders.hooks.plugin.interface"


class Hook:
    """Stands for hatchling's class."""

    def __class_getitem__(cls, _config: object) -> type[Hook]:
        return cls

    def __init__(self, root: Path, target: str) -> None:
        self.root = str(root)
        self.target_name = target
        self.directory = str(root / "dist")


def hook(root: Path, target: str) -> Any:
    """The hook of the package, for a build below `root`."""
    interface = types.ModuleType(INTERFACE)
    interface.BuildHookInterface = Hook  # type: ignore[attr-defined]
    names = INTERFACE.split(".")
    modules = {".".join(names[:n]): types.ModuleType(names[n - 1]) for n in range(1, len(names))}
    spec = importlib.util.spec_from_file_location("hatch_build", GDB / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {**modules, INTERFACE: interface}):
        spec.loader.exec_module(module)
    return module.PluginHook(root, target)


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name) / "gdb"
        self.root.mkdir()
        library = Path(directory.name) / "libompd.so"
        library.touch()
        for patch in (mock.patch.dict(os.environ, {"OMPD_LIBRARY": str(library)}), mock.patch("shutil.which", return_value=None)):
            patch.start()
            self.addCleanup(patch.stop)

    def add_core(self, folder: Path) -> None:
        (folder / "openmp_core").mkdir()
        for name in ("plugin.py", "views.py"):
            (folder / "openmp_core" / name).touch()

    def included(self, target: str) -> dict[str, str]:
        """What is put in besides the files of the folder, by its name in the package."""
        build: dict[str, Any] = {"force_include": {}}
        hook(self.root, target).initialize("standard", build)
        return {name: file for file, name in build["force_include"].items()}

    def test_in_a_checkout_the_core_is_one_folder_above(self) -> None:
        self.add_core(self.root.parent)
        core = {f"openmp_core/{name}": str(self.root.parent / "openmp_core" / name) for name in ("plugin.py", "views.py")}
        self.assertEqual(self.included("sdist"), core)
        found = self.included("wheel")
        self.assertTrue(core.items() <= found.items(), found)
        self.assertEqual(set(found) - set(core), {"openmp_gdb/libompd.so"})

    def test_in_an_sdist_the_core_is_inside(self) -> None:
        self.add_core(self.root)
        self.assertEqual(self.included("wheel")["openmp_core/plugin.py"], str(self.root / "openmp_core/plugin.py"))
        # The files of the folder are in the sdist by themselves.
        self.assertEqual(self.included("sdist"), {})

    def test_without_the_core_nothing_is_built(self) -> None:
        (self.root.parent / "openmp_core").mkdir()
        for target in ("sdist", "wheel"):
            with self.subTest(target), self.assertRaisesRegex(FileNotFoundError, "^openmp_core is missing: neither .*/gdb/openmp_core nor"):
                self.included(target)


if __name__ == "__main__":
    unittest.main()
