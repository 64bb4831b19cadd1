"""Variables of a frame, read without LLDB's expressions: these allocate memory in the process, by code that runs there."""

from __future__ import annotations

from typing import Any

import lldb

from openmp_core import functions
from openmp_core.errors import DebuggerError, NoSuchName
from openmp_core.expressions import Number, Scope
from openmp_core.session import Session


class Variables(Scope[Any]):
    """The variables that a frame sees."""

    def __init__(self, frame: Any, session: Session) -> None:
        self._frame = frame
        self._session = session

    def variable(self, path: str) -> Any:
        value = self._frame.GetValueForVariablePath(path, lldb.eNoDynamicValues)
        if not value.IsValid():
            raise NoSuchName(f'No variable "{path}" in this frame.')
        # Before it is read, a value has no error.
        value.GetValue()
        return self._checked(value, path)

    def _checked(self, value: Any, path: str) -> Any:
        if value.GetType().IsReferenceType():
            # clang makes references of shared variables.
            value = value.Dereference()
            value.GetValue()
        error = value.GetError()
        if error.Fail():
            raise DebuggerError(f"{path}: {error.GetCString() or 'it cannot be read'}")
        return value

    def number(self, variable: Any) -> Number:
        kind = variable.GetType().GetCanonicalType()
        text = variable.GetValue()
        if kind.GetBasicType() in (lldb.eBasicTypeFloat, lldb.eBasicTypeDouble, lldb.eBasicTypeLongDouble):
            return float(text)
        if text is None or kind.IsArrayType():
            raise DebuggerError(f"{variable.GetName()} is no number")
        error = lldb.SBError()
        is_signed = bool(kind.GetTypeFlags() & lldb.eTypeIsSigned)
        number = variable.GetValueAsSigned(error, 0) if is_signed else variable.GetValueAsUnsigned(error, 0)
        if error.Fail():
            raise DebuggerError(f"{variable.GetName()}: {error.GetCString()}")
        return int(number)

    def function(self, name: str) -> int:
        if name not in functions.QUESTIONS:
            raise NoSuchName(f'No function "{name}".')
        return functions.answer(self._session, name)


def text_of(value: Any) -> str:
    """A variable as LLDB prints it, without type and name."""
    parts = [value.GetValue(), value.GetSummary()]
    if any(parts):
        return " ".join(part for part in parts if part)
    stream = lldb.SBStream()
    value.GetDescription(stream)
    # `(int[2]) name = ([0] = 1, [1] = 2)`
    return str(stream.GetData() or "").partition(" = ")[2].strip()
