"""What can go wrong, as exceptions, and the text that users see of each."""

from __future__ import annotations


class CommandError(Exception):
    """A command is refused, for a wrong argument or a missing thing. The text is for users."""


class NotNow(CommandError):
    """What is asked for is unknown now. The text says why, and what to do."""


class NoLibrary(Exception):
    """libompd.so is not there, or cannot be used."""


class OmpdError(Exception):
    """A call of the library that gave no answer."""

    def __init__(self, function: str, code: int, debugger: str = "the debugger") -> None:
        self.code = code
        text = _TEXTS.get(code, f"error {code}").replace("{debugger}", debugger)
        super().__init__(f"{function}: {text}")


class DebuggerError(Exception):
    """The debugger cannot do or tell what it was asked. The text is the debugger's own."""


class NoSuchName(DebuggerError):
    """An expression has a name that is unknown where it is evaluated."""


#: Return codes of the library, in words (`ompd_rc_t`).
_TEXTS = {
    1: "not known, or not there",
    2: "it is gone",
    3: "wrong argument",
    4: "failed",
    5: "not supported",
    6: "the runtime would have to keep track of states",
    7: "no OpenMP runtime that this library knows",
    10: "no memory",
    11: "only a part of it is known",
    12: "{debugger} did not answer",
    13: "wrong kind of thing",
}

#: What a command or a function may raise when it has no answer. Everything else is a bug.
EXPECTED = (CommandError, NoLibrary, OmpdError, DebuggerError)


def message(failure: Exception) -> str:
    """A failure as users see it: a sentence, no traceback."""
    return f"{failure}." if isinstance(failure, OmpdError) else str(failure)
