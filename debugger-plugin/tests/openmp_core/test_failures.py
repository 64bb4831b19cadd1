"""Failures that nobody expects."""

from __future__ import annotations

import unittest

from openmp_core.failures import KEPT, Failures


def raised(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as failure:
        return failure


class FailuresKept(unittest.TestCase):
    def setUp(self) -> None:
        self.failures = Failures()

    def test_users_get_one_line(self) -> None:
        line = self.failures.note(raised("first\nsecond"))
        self.assertEqual(line, "The plugin has failed: ValueError: first (`openmp doctor` has the rest)")
        self.assertIn("test_failures.py", self.failures.text())

    def test_the_newest_are_kept_each_once(self) -> None:
        self.assertEqual(self.failures.text(), "")
        for number in (0, 1, 1, *range(2, KEPT + 1)):
            self.failures.note(raised(f"failure {number}"))
        found = [f"failure {number}" in self.failures.text() for number in range(KEPT + 1)]
        self.assertEqual(found, [False] + [True] * KEPT)
        self.assertEqual(self.failures.text().count("failure 1"), 1)
        self.assertEqual(KEPT, 3, "more would fill the terminal")

    def test_failures_are_kept_with_their_tracebacks_and_apart(self) -> None:
        for text in ("first", "second"):
            self.failures.note(ValueError(text))
        self.assertEqual(self.failures.text(), "ValueError: first\n\nValueError: second\n")

    def test_a_call_of_the_debugger_ends_without_an_error(self) -> None:
        written: list[str] = []
        with self.failures.guarded(written.append):
            raise KeyError(3)
        with self.failures.guarded(written.append):
            pass
        self.assertEqual(written, ["The plugin has failed: KeyError: 3 (`openmp doctor` has the rest)\n"])
