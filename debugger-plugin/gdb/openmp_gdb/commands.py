"""The core's commands as gdb's, and the convenience functions."""

from __future__ import annotations

import gdb

from openmp_core import PREFIX, functions
from openmp_core.command import Command
from openmp_core.errors import EXPECTED, message
from openmp_core.session import Session


class Prefix(gdb.Command):
    """Say what an OpenMP program is doing: its threads, teams and tasks, and why it hangs.

    It works on any process or core file that gdb has, with libgomp, libomp or libiomp5 as
    they come: no preparation, no debug information of the runtime. Start with

      openmp status     what all threads do, and why they hang if they do
      openmp threads    every thread: team, number, task, what it waits for
      openmp why        why the selected thread does not continue"""

    def __init__(self) -> None:
        super().__init__(PREFIX, gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


class Adapted(gdb.Command):
    """A command of the core."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.__doc__ = command.help()
        super().__init__(f"{PREFIX} {command.name}", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            self.command.run(argument, from_tty)
        except (*EXPECTED, gdb.error) as failure:
            raise gdb.GdbError(message(failure)) from None
        except Exception as failure:
            raise gdb.GdbError(self.command.session.failures.note(failure)) from None

    def complete(self, text: str, word: str | None) -> list[str]:
        start = text.rsplit(" ", maxsplit=1)[-1]
        # gdb breaks words at dashes: it wants what comes behind.
        return [choice[len(start) - len(word or "") :] for choice in self.command.complete(text)]


class Function(gdb.Function):
    """One of the convenience functions about the selected thread."""

    def __init__(self, session: Session, name: str, text: str) -> None:
        self.session = session
        self.name = name
        self.__doc__ = f"{text}\nUsage: ${name}()\n\nOf the selected thread; -1 if it is not known, or is in no team."
        super().__init__(name)

    def invoke(self, *arguments: gdb.Value) -> int | str:
        if arguments:
            raise gdb.GdbError("No argument is wanted.")
        try:
            return functions.answer(self.session, self.name)
        except EXPECTED as failure:
            raise gdb.GdbError(str(failure)) from None


class TeamFunction(Function):
    """`$_omp_team()`, which also takes the number of a team."""

    def invoke(self, *arguments: gdb.Value) -> int | str:
        if not arguments:
            return super().invoke()
        if len(arguments) > 1:
            raise gdb.GdbError("One team is wanted.")
        number = arguments[0]
        try:
            text = number.string() if number.type.strip_typedefs().code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_PTR) else str(int(number))
            return functions.ids_of_team(self.session, text)
        except EXPECTED as failure:
            raise gdb.GdbError(str(failure)) from None


def add_functions(session: Session) -> None:
    """Adds the convenience functions."""
    Function(session, "_omp_thread_num", "The thread number in its team.")
    Function(session, "_omp_num_threads", "How many threads its team has.")
    Function(session, "_omp_level", "How many regions it is inside of.")
    Function(session, "_omp_task_id", "Where the runtime keeps its record of the task: the same as long as the task exists.")
    TeamFunction(
        session,
        "_omp_team",
        "Where the runtime keeps its record of the team: the same as long as the region lasts; 0\n"
        'outside of all regions. With the number that `openmp teams` shows, or members as in "2.0-3":\n'
        'gdb\'s numbers of these threads, as text:\n\n  set $ids = $_omp_team(2)\n  eval "thread apply %s bt", $ids',
    )
