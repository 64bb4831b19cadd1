"""Puts the core of the plugin into sdist and wheel, and libompd.so into the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CORE = "openmp_core"


class PluginHook(BuildHookInterface[Any]):
    """The library is `OMPD_LIBRARY`, or the release build of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        core = find_core(Path(self.root))
        if self.target_name == "wheel" or core.parent != Path(self.root):
            for file in sorted(core.glob("*.py")):
                build_data["force_include"][str(file)] = f"{CORE}/{file.name}"
        if self.target_name == "wheel":
            self.add_library(build_data)

    def add_library(self, build_data: dict[str, Any]) -> None:
        """Puts the library into the wheel, which is for one platform then."""
        built = Path(self.root).parents[1] / "target/release/libompd.so"
        library = Path(os.environ.get("OMPD_LIBRARY", built))
        if not library.is_file():
            message = f"{library} is missing: build it (cargo build --release --package ompd), or set OMPD_LIBRARY"
            raise FileNotFoundError(message)
        strip = shutil.which("strip")
        if strip is not None:
            small = Path(self.directory) / "libompd.so"
            small.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([strip, "-o", str(small), str(library)], check=True)
            library = small
        build_data["force_include"][str(library)] = "openmp_gdb/libompd.so"
        # The plugin itself is for any Python.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False


def find_core(root: Path) -> Path:
    """The folder of the core: of an sdist it is in `root`, of the checkout beside it."""
    folders = [root / CORE, root.parent / CORE]
    for folder in folders:
        if (folder / "plugin.py").is_file():
            return folder
    message = (
        f"{CORE} is missing: neither {folders[0]} nor {folders[1]} has plugin.py. "
        "Build in the checkout (pip before 21.3 copies this folder alone), or from an sdist."
    )
    raise FileNotFoundError(message)
