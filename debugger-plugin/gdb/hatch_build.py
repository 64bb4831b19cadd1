"""Puts the core of the plugin and libompd.so into the wheel."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface[Any]):
    """The core is that of the checkout. The library is `OMPD_LIBRARY`, or the release build of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        for file in sorted((Path(self.root).parent / "openmp_core").glob("*.py")):
            build_data["force_include"][str(file)] = f"openmp_core/{file.name}"
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
