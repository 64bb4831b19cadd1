"""Memory that a core file leaves out because a file of the program has it: code and constants."""

from __future__ import annotations

from typing import Any

import lldb

#: The section by which a file is known to be the one that was loaded.
BUILD_ID = ".note.gnu.build-id"


class Files:
    """The files of a target. A file whose build-id is not that in memory is not read."""

    def __init__(self, target: Any) -> None:
        self._target = target
        #: By the address of a file's build-id: whether memory has the same.
        self._trusted: dict[int, bool] = {}

    def read(self, address: int, size: int) -> bytes | None:
        """Bytes that the process cannot have changed; `None` if no file is known to have them."""
        place = self._target.ResolveLoadAddress(address)
        section = place.GetSection()
        if not section.IsValid() or self._is_writable(section) or not self._is_trusted(place.GetModule()):
            return None
        if place.GetOffset() + size > section.GetByteSize():
            return None
        error = lldb.SBError()
        data = section.GetSectionData(place.GetOffset(), size)
        found = data.ReadRawData(error, 0, size) if data.IsValid() else None
        return bytes(found) if found is not None and error.Success() and len(found) == size else None

    @staticmethod
    def _is_writable(section: Any) -> bool:
        # What is relocated lies in a segment that was writable.
        while section.IsValid():
            if section.GetPermissions() & lldb.ePermissionsWritable:
                return True
            section = section.GetParent()
        return False

    def _is_trusted(self, module: Any) -> bool:
        note = module.FindSection(BUILD_ID)
        if not note.IsValid():
            return False
        at = int(note.GetLoadAddress(self._target))
        if at not in self._trusted:
            error = lldb.SBError()
            size = int(note.GetByteSize())
            data = note.GetSectionData()
            own = data.ReadRawData(error, 0, size) if data.IsValid() else None
            there = self._target.GetProcess().ReadMemory(at, size, error)
            self._trusted[at] = error.Success() and own is not None and bytes(own) == bytes(there or b"")
        return self._trusted[at]
