"""Expressions that are evaluated without the debugger's own."""

from __future__ import annotations

import unittest

from openmp_core.errors import DebuggerError, NoSuchName
from openmp_core.expressions import Expression, Number, Scope

VARIABLES: dict[str, Number | str] = {
    "x": 7,
    "half": 0.5,
    "grid->rows[3].size": 40,
    "grid->rows[1].size": 40,
    "*next": 9,
    "&x": 0x1000,
    "a::b": 3,
    "text": "no number",
}


#: The functions that were called.
ASKED: list[str] = []


class Variables(Scope[str]):
    """Variables by their paths."""

    def variable(self, path: str) -> str:
        if path not in VARIABLES:
            raise NoSuchName(path)
        return path

    def number(self, variable: str) -> Number:
        found = VARIABLES[variable]
        if isinstance(found, str):
            raise DebuggerError(f"{variable} is no number")
        return found

    def function(self, name: str) -> int:
        ASKED.append(name)
        return {"_omp_level": 2}[name]


def value(text: str) -> Number | str:
    return Expression(text, Variables()).value()


class Expressions(unittest.TestCase):
    def test_variables_are_given_to_the_debugger_as_they_are_written(self) -> None:
        for path in ("x", "grid->rows[3].size", "*next", "&x", "a::b", "text"):
            self.assertEqual(value(path), path)
        self.assertEqual(value(" grid -> rows[ x - 4 ] . size"), "grid->rows[3].size")

    def test_numbers_follow_the_rules_of_c(self) -> None:
        cases: dict[str, Number | str] = {
            "x + 1": 8,
            "1 + 2 * 3": 7,
            "(1 + 2) * 3": 9,
            "-x / 2": -3,
            "-x % 4": -3,
            "x / 2.0": 3.5,
            "half * 4": 2.0,
            "0x10 | 1": 17,
            "x & 3 == 3": 1,
            "1 << 4 >> 2": 4,
            "!x": 0,
            "!(x > 8)": 1,
            "~0": -1,
            "x > 3 && half < 1": 1,
            "0 || x == 8": 0,
            "$_omp_level() == 2": 1,
            "*next - 1": 8,
            "3 - 2 - 1": 0,
            "7 / -2": -3,
            "-7 / -2": 3,
            "0 / -2": 0,
            "7 % -4": 3,
            "7 % 2": 1,
            "7.0 / 2": 3.5,
            "7 / 2.0": 3.5,
            "6 ^ 3": 5,
            "6 ^ 3 & 1": 7,
            "1 | 2 ^ 3": 1,
            "x != 7": 0,
            "x != 8": 1,
            "x <= 7": 1,
            "x <= 6": 0,
            "x >= 7": 1,
            "x >= 8": 0,
            "x < 7": 0,
            "1 < 2 == 1": 1,
            "+x": 7,
            "- - 2": 2,
            "2 || 0": 1,
            "0 || 0": 0,
            "2 && 3": 1,
            "2 && 0": 0,
            "1 || 0 && 0": 1,
            "1 << 63": 1 << 63,
            "8 >> 0": 8,
            "8 >> 63": 0,
            "0XfF": 255,
            "1.5e1": 15.0,
            "(0 || 2) * 3": 3,
            "grid->rows[0 || 3].size + 1": 41,
            "grid->rows[1 + 2].size": "grid->rows[3].size",
        }
        for text, expected in cases.items():
            found = value(text)
            self.assertEqual((type(found), found), (type(expected), expected), text)

    def test_literals_are_hexadecimal_octal_or_decimal(self) -> None:
        for text, expected in {"0x1F": 31, "0XfF": 255, "010": 8, "0": 0, "00": 0, "10": 10, "1.5e1": 15.0, "2.": 2.0}.items():
            with self.subTest(text):
                self.assertEqual(value(text), expected)
        for text in ("09", "018 + 1"):
            with self.subTest(text), self.assertRaisesRegex(DebuggerError, "numbers and operators are understood"):
                value(text)

    def test_an_operand_behind_one_that_decides_is_not_evaluated(self) -> None:
        cases = {
            "0 && nowhere->count > 3": 0,
            "x == 8 && text + 1": 0,
            "x || 1 / 0": 1,
            "1 || -nowhere[lost] << 64": 1,
            "0 && (1 || nowhere)": 0,
            "0 && $_omp_level() || x": 1,
            "1 && x || nowhere": 1,
            "0 || x && 2": 1,
        }
        ASKED.clear()
        for text, expected in cases.items():
            with self.subTest(text):
                self.assertEqual(value(text), expected)
        self.assertEqual(ASKED, [])
        for text in ("1 && nowhere", "0 || nowhere", "0 && 1 || nowhere", "0 && (x", "1 || x ++"):
            with self.subTest(text), self.assertRaises(DebuggerError):
                value(text)

    def test_what_is_not_understood_is_refused(self) -> None:
        for text in (
            "",
            "x +",
            "1 2",
            "x 1",
            "a[1",
            "a[x.",
            "&3",
            "grid->3",
            "1 ! 2",
            "$_omp_level",
            "$_omp_level(",
            "(x",
            "(int)x",
            "f()",
            "x = 3",
            "x++",
            "grid->",
            "a[half]",
            '"text"',
            "*3",
            "$x",
            "x ? 1 : 2",
        ):
            expected = f"{text}: variables with their members and elements, numbers and operators are understood, not casts"
            with self.subTest(text), self.assertRaises(DebuggerError) as raised:
                value(text)
            self.assertEqual(str(raised.exception), expected)
            with self.subTest(text), self.assertRaises(DebuggerError):
                Expression(text, Variables()).is_true()

    def test_what_has_no_value_is_said(self) -> None:
        cases = {
            "1 / 0": "1 / 0: .*by zero",
            "x % 0": "x % 0: .*by zero",
            "1 << 64": "1 << 64: a shift by 64",
            "1 >> 64": "1 >> 64: a shift by 64",
            "1 << -1": "1 << -1: a shift by -1",
            "half | 1": r"half \| 1: unsupported operand type.*",
            "~half": "~half: bad operand type.*",
            "text + 1": "text is no number",
            "nowhere + 1": "nowhere",
        }
        for text, expected in cases.items():
            with self.subTest(text), self.assertRaisesRegex(DebuggerError, f"^{expected}$"):
                value(text)

    def test_a_remainder_of_a_fraction_is_refused(self) -> None:
        for text in ("7.5 % 2", "7 % 2.0", "x % half"):
            with self.subTest(text), self.assertRaisesRegex(DebuggerError, f"^{text}: % takes integers$"):
                value(text)

    def test_conditions_are_true_unless_zero(self) -> None:
        found = [Expression(text, Variables()).is_true() for text in ("x", "x - 7", "half", "x == 7")]
        self.assertEqual(found, [True, False, True, True])
