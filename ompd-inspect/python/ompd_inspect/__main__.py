"""Runs the installed command: `python -m ompd_inspect`."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

NAME = "ompd-inspect"


def find_command() -> str | None:
    """Returns the path of the command that was installed with this module."""
    listed = [Path(str(file.locate())) for file in metadata.files(NAME) or [] if file.name == NAME]
    # `pip install --target` moves the command after it has written the list.
    beside = Path(__file__).resolve().parents[1] / "bin" / NAME
    return next((str(path) for path in [*listed, beside] if os.access(path, os.X_OK) and path.is_file()), None)


def main() -> None:
    """Replaces Python by the command."""
    command = find_command()
    if command is None:
        sys.exit(f"{NAME}: the command is missing from this installation; install the package again")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
