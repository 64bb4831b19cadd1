"""Expressions in C of variables, numbers and operators, for debuggers whose own expressions may run code in the process.

The debugger reads the variables. Functions are those of `functions.py`, with a dollar sign before their names.
"""

from __future__ import annotations

import operator
import re
from typing import Any, Callable, Generic, NamedTuple, TypeVar, Union

from .errors import DebuggerError

Number = Union[int, float]
#: What the debugger has for a variable.
V = TypeVar("V")

TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+)"
    r"|(?P<function>\$[A-Za-z_]\w*)"
    r"|(?P<name>(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"
    r"|(?P<sign><<|>>|<=|>=|==|!=|&&|\|\||->|[-+*/%&|^~!<>()\[\].]))"
)


def divided(left: Number, right: Number) -> Number:
    """Division of C: towards zero for integers."""
    if isinstance(left, int) and isinstance(right, int):
        found = abs(left) // abs(right)
        return found if (left < 0) == (right < 0) else -found
    return left / right


def remainder(left: Number, right: Number) -> Number:
    """The remainder that belongs to `divided`, of integers only. Raises `TypeError` for other operands."""
    if not (isinstance(left, int) and isinstance(right, int)):
        raise TypeError("% takes integers")
    return left - right * divided(left, right)


def integer(text: str) -> int:
    """The value of a literal of C: hexadecimal, octal or decimal. Raises `ValueError`."""
    base = 16 if text[:2] in ("0x", "0X") else 8 if text.startswith("0") else 10
    return int(text, base)


#: Operators between two operands by how strongly they bind, weakest first.
BINARY: list[dict[str, Callable[[Any, Any], Any]]] = [
    {"||": lambda left, right: left or right},
    {"&&": lambda left, right: left and right},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": divided, "%": remainder},
]
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "!": operator.not_}
#: A shift by more has no meaning, and would take all memory.
WIDEST = 63


class Path(NamedTuple):
    """A variable, or a part of one, as the user has written it: `grid->rows[3].size`, `*next`."""

    text: str


class Scope(Generic[V]):
    """Where expressions are evaluated."""

    def variable(self, path: str) -> V:
        """A variable or a part of one. Raises `NoSuchName` or `DebuggerError`."""
        raise NotImplementedError

    def number(self, variable: V) -> Number:
        """Its value. Raises `DebuggerError` if that is no number."""
        raise NotImplementedError

    def function(self, name: str) -> int:
        """What a function of OpenMP returns for the thread."""
        raise NotImplementedError


class Expression(Generic[V]):
    """An expression of the user's, evaluated in a scope."""

    def __init__(self, text: str, scope: Scope[V]) -> None:
        self.text = text
        self.scope = scope
        self._tokens = self._split(text)
        self._next = 0
        #: The operand that is read has no effect: its value is 0, and nothing is asked of the scope.
        self._is_skipped = False

    def value(self) -> V | Number:
        """The variable itself if the expression is one, and else a number."""
        found = self._binary(0)
        if self._next < len(self._tokens):
            raise self._wrong()
        return self.scope.variable(found.text) if isinstance(found, Path) else found

    def is_true(self) -> bool:
        """True if its value is not 0."""
        found = self._binary(0)
        if self._next < len(self._tokens):
            raise self._wrong()
        return bool(self._number(found))

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise self._wrong()
            tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return tokens

    def _wrong(self) -> DebuggerError:
        return DebuggerError(f"{self.text}: variables with their members and elements, numbers and operators are understood, not casts")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "")

    def _take(self, sign: str) -> bool:
        """Whether the next token is this sign, which is taken then."""
        if self._peek() != ("sign", sign):
            return False
        self._next += 1
        return True

    def _number(self, operand: Path | Number) -> Number:
        if self._is_skipped:
            return 0
        if isinstance(operand, Path):
            return self.scope.number(self.scope.variable(operand.text))
        return operand

    def _binary(self, level: int) -> Path | Number:
        if level == len(BINARY):
            return self._unary()
        left: Path | Number = self._binary(level + 1)
        while True:
            kind, sign = self._peek()
            if kind != "sign" or sign not in BINARY[level]:
                return left
            self._next += 1
            first = self._number(left)
            left = self._combined(sign, BINARY[level][sign], first, self._right(sign, first, level + 1))

    def _right(self, sign: str, left: Number, level: int) -> Number:
        """The right operand. It is skipped if the left one decides: `p && p->next` reads nothing at a null pointer."""
        before = self._is_skipped
        self._is_skipped = before or (sign == "||" and bool(left)) or (sign == "&&" and not left)
        found = self._number(self._binary(level))
        self._is_skipped = before
        return found

    def _combined(self, sign: str, operation: Callable[[Any, Any], Any], left: Number, right: Number) -> Number:
        if self._is_skipped:
            return 0
        if sign in ("||", "&&"):
            return int(bool(operation(left, right)))
        if sign in ("<<", ">>") and not 0 <= right <= WIDEST:
            raise DebuggerError(f"{self.text}: a shift by {right}")
        try:
            found = operation(left, right)
        except (ZeroDivisionError, TypeError, OverflowError) as failure:
            raise DebuggerError(f"{self.text}: {failure}") from failure
        return int(found) if isinstance(found, bool) else found

    def _unary(self) -> Path | Number:
        kind, sign = self._peek()
        if kind == "sign" and sign in UNARY:
            self._next += 1
            operand = self._number(self._unary())
            try:
                return int(found) if isinstance(found := UNARY[sign](operand), bool) else found
            except TypeError as failure:
                raise DebuggerError(f"{self.text}: {failure}") from failure
        if kind == "sign" and sign in ("*", "&"):
            self._next += 1
            place = self._unary()
            if not isinstance(place, Path):
                raise self._wrong()
            return Path(sign + place.text)
        return self._primary()

    def _primary(self) -> Path | Number:
        kind, text = self._peek()
        self._next += 1
        if kind == "number":
            try:
                return float(text) if "." in text else integer(text)
            except ValueError:
                raise self._wrong() from None
        if kind == "function":
            if not (self._take("(") and self._take(")")):
                raise self._wrong()
            return 0 if self._is_skipped else self.scope.function(text[1:])
        if kind == "name":
            return self._path(text)
        if (kind, text) == ("sign", "("):
            found = self._binary(0)
            if not self._take(")"):
                raise self._wrong()
            return found
        raise self._wrong()

    def _path(self, text: str) -> Path:
        while True:
            if self._take("["):
                index = self._number(self._binary(0))
                if not self._take("]") or not isinstance(index, int):
                    raise self._wrong()
                text += f"[{index}]"
                continue
            sign = next((sign for sign in (".", "->") if self._take(sign)), None)
            if sign is None:
                return Path(text)
            kind, member = self._peek()
            if kind != "name":
                raise self._wrong()
            self._next += 1
            text += sign + member
