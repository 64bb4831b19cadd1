"""Prints what is mapped in the process, and a sum of the bytes of each part: a line of JSON."""

import json
import zlib

import gdb


def sums(pid):
    """All parts that can be read, the kernel's own aside."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            if "[v" in line or line.split()[1].startswith("-"):
                continue
            at, end = (int(part, 16) for part in line.split()[0].split("-"))
            value = 0
            while at < end:
                memory.seek(at)
                part = memory.read(min(end - at, 1 << 20))
                value = zlib.crc32(part, value)
                at += len(part)
            found.append([line.rstrip(), value])
    return found


print("sums " + json.dumps(sums(gdb.selected_inferior().pid)), flush=True)
