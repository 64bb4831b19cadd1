"""Threads by team and number: which ones a text means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .command import show
from .debugger import Thread
from .errors import CommandError
from .process import Process

MEMBERS = re.compile(r"(?:(?P<runtime>[0-9]+):)?(?P<team>[0-9]+)(?:\.(?P<numbers>[0-9,-]*))?", re.ASCII)
RANGE = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?", re.ASCII)


class Members(NamedTuple):
    """A team, and threads in it by their numbers, each with its kernel id if that is known."""

    team: int
    lwps: dict[int, int | None]


def chosen(process: Process, text: str) -> Members | None:
    """The members of a team that a text names: `2`, `2.3`, `2.0-3,6`.

    `RUNTIME:` stands in front where several runtimes have teams. Returns `None` for other texts, and
    raises `CommandError` if the team has no such members."""
    named = MEMBERS.fullmatch(text)
    if named is None:
        return None
    runtime, team, numbers = named["runtime"], int(named["team"]), named["numbers"]
    ranges = [RANGE.fullmatch(part) for part in numbers.split(",")] if numbers is not None else []
    bounds = [(int(part["first"]), int(part["last"] or part["first"])) for part in ranges if part is not None]
    if len(bounds) < len(ranges) or any(first > last for first, last in bounds):
        return None
    lwps = process.team(int(runtime) if runtime else None, team)["members"]
    if any(last >= len(lwps) for _, last in bounds):
        raise CommandError(f"Team {team} has {len(lwps)} threads: 0 to {len(lwps) - 1}.")
    if numbers is None:
        bounds = [(0, len(lwps) - 1)]
    return Members(team, {number: lwps[number] for first, last in bounds for number in range(first, last + 1)})


def find_thread(process: Process, text: str) -> Thread:
    """The thread that a text names: `TEAM.NUMBER`, perhaps behind `RUNTIME:`, or a kernel thread id."""
    if text.isascii() and text.isdecimal():
        found = process.state.thread(int(text))
        if found is None:
            raise CommandError(f"There is no thread with the kernel id {text} (`openmp threads` lists them).")
        return found
    members = chosen(process, text)
    if members is None or len(members.lwps) != 1 or not text.rpartition(".")[2].isdecimal():
        raise CommandError(f"{text} is no thread: a team and a number in it (2.3), or the kernel's id of a thread, is wanted.")
    [(number, lwp)] = members.lwps.items()
    thread = process.state.thread(lwp) if lwp is not None else None
    if thread is None:
        raise CommandError(f"Thread {number} of team {members.team} was not found among the threads of the process.")
    return thread


def ranges(numbers: Iterable[int]) -> str:
    """Thread numbers as users write them: `0-2,5`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def members_of(process: Process, text: str) -> list[Thread]:
    """The threads of a team, or some of them; those that the process does not have are named."""
    threads = numbered(process, text)
    missing = [number for number, thread in threads.items() if thread is None]
    if missing:
        team = text.partition(".")[0].rpartition(":")[2]
        show(process.debugger, f"Not found among the threads of the process: {ranges(missing)} of team {team}.")
    return [thread for thread in threads.values() if thread is not None]


def numbered(process: Process, text: str) -> dict[int, Thread | None]:
    """The threads of a team, or some of them, by number; `None` for those that the process does not have."""
    members = chosen(process, text)
    if members is None:
        raise CommandError(f"{text} is no team, nor members of one: 2, 2.3 or 2.0-3,6 is wanted.")
    return {number: process.state.thread(lwp) if lwp is not None else None for number, lwp in members.lwps.items()}
