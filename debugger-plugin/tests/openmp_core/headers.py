"""The headers of libompd.so, as far as the plugin uses them."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "libompd/abi/include"
#: Both headers, without their comments.
TEXT = "".join(re.sub(r"/\*.*?\*/|//[^\n]*", "", (FOLDER / name).read_text(), flags=re.DOTALL) for name in ("omp-tools.h", "ompd-ext.h"))
#: What is in the braces of each enumeration and structure, by name.
_TYPES = {match[2]: match[1] for match in re.finditer(r"typedef (?:struct|enum)[^{;]*\{([^}]*)\}\s*(\w+);", TEXT)}
#: The functions of the library.
FUNCTIONS = frozenset(re.findall(r"^ompd_rc_t (ompdx?_\w+)\(", TEXT, re.MULTILINE))


def constants(enumeration: str) -> dict[str, int]:
    """The constants of an enumeration."""
    return {name: int(value, 0) for name, value in re.findall(r"(\w+) = (\w+)", _TYPES[enumeration])}


def fields(structure: str) -> list[tuple[str, str]]:
    """The fields of a structure in order, each with its type."""
    found = re.findall(r"(?:const )?(\w+ \*?)(\w+)(?:\[(\w+)\])?;", _TYPES[structure])
    return [(name, kind.strip() + (f"[{length}]" if length else "")) for kind, name, length in found]
