"""Which threads a text means."""

from __future__ import annotations

import unittest

from fake import World, runtime
from openmp_core.errors import CommandError, NotNow
from openmp_core.selection import chosen, find_thread, members_of, ranges


class Selection(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.process = self.world.session.process()

    def test_members_by_team_and_numbers(self) -> None:
        cases = {
            "0": {0: 101, 1: 102, 2: 103, 3: 104},
            "0.3": {3: 104},
            "0.0-1,3": {0: 101, 1: 102, 3: 104},
            "0:0.2": {2: 103},
        }
        for text, lwps in cases.items():
            with self.subTest(text):
                found = chosen(self.process, text)
                assert found is not None
                self.assertEqual((found.team, found.lwps), (0, lwps))

    def test_what_names_no_members(self) -> None:
        for text in ("", "x", "0.", "0.3-1", "0.1,", "0.-1", "1:", "-1", "0.1.2", "\u0661"):
            with self.subTest(text):
                self.assertIsNone(chosen(self.process, text))

    def test_a_thread_by_number_and_by_kernel_id(self) -> None:
        self.assertIs(find_thread(self.process, "0.3"), self.world.threads[3])
        self.assertIs(find_thread(self.process, "103"), self.world.threads[2])
        with self.assertRaisesRegex(CommandError, "^\u0661 is no thread: "):
            find_thread(self.process, "\u0661")
        for text in ("0", "0.0-1", "0.1-1", "0.4", "105"):
            with self.subTest(text), self.assertRaises(CommandError):
                find_thread(self.process, text)

    def test_of_several_runtimes_with_teams_one_must_be_named(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101, 102]), runtime([103]), runtime()]
        expected = r"^Several runtimes have teams: 0:3 or 1:3 is wanted \(`openmp status` lists them, from 0 on\).$"
        with self.assertRaisesRegex(NotNow, expected):
            find_thread(self.process, "3.0")
        self.assertIs(find_thread(self.process, "1:0.0"), self.world.threads[2])

    def test_a_runtime_without_teams_needs_no_name(self) -> None:
        self.world.library.report["runtimes"] = [runtime(), runtime([103])]
        self.assertIs(find_thread(self.process, "0.0"), self.world.threads[2])

    def test_before_there_are_teams_no_team_is_found(self) -> None:
        self.world.library.report["runtimes"] = [runtime(), runtime()]
        for text in ("0.0", "1:0.0", "2:0.0"):
            with self.subTest(text), self.assertRaisesRegex(NotNow, "^There is no team 0 now"):
                find_thread(self.process, text)

    def test_numbers_are_written_as_ranges(self) -> None:
        self.assertEqual(ranges([5, 0, 1, 2]), "0-2,5")
        self.assertEqual(ranges([3, 5, 6]), "3,5-6")
        self.assertEqual(ranges([]), "")

    def test_members_that_are_not_there_are_named(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101, None, 999, 104])]
        found = members_of(self.process, "0")
        self.assertEqual(found, [self.world.threads[0], self.world.threads[3]])
        self.assertEqual(self.world.debugger.output(), "Not found among the threads of the process: 1-2 of team 0.\n")
        members_of(self.process, "0:0.1")
        self.assertEqual(self.world.debugger.output(), "Not found among the threads of the process: 1 of team 0.\n")
        with self.assertRaisesRegex(CommandError, "Thread 2 of team 0 was not found"):
            find_thread(self.process, "0.2")


if __name__ == "__main__":
    unittest.main()
