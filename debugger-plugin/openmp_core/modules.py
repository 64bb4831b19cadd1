"""Files with code that are not the user's program."""

from __future__ import annotations

import re

#: The C library, whose functions begin threads, and the dynamic linker.
_SYSTEM = re.compile(r"(?:.*/)?(?:libc|libpthread|ld-linux[^/]*|ld64)[.-][^/]*\Z")


def is_system(module: str | None) -> bool:
    """True for the C library and the dynamic linker."""
    return module is not None and _SYSTEM.match(module) is not None
