"""Where stops have breakpoints, which hits count, what is said of them, and where a step ends."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from fake import Breakpoint, Debugger, Frame, Inferior, Thread, World, fact, point, refusing, runtime, stack
from openmp_core.debugger import Function, Source, Stopped
from openmp_core.errors import CommandError, DebuggerError, NotNow, OmpdError
from openmp_core.stepping import begin_of_body, behind_prologue, body_of

PARALLEL_BEGIN, PARALLEL_END, TASK_BEGIN, BARRIER, LOCK = 1, 2, 3, 7, 8


class Places(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.library = self.world.library
        self.library.points = [
            point(PARALLEL_BEGIN, 0x9010),
            point(PARALLEL_BEGIN, 0x9000),
            point(PARALLEL_BEGIN, 0x8000, own=True),
            point(TASK_BEGIN, 0x8100, own=True),
            point(TASK_BEGIN, 0, place="not found in the code"),
            point(PARALLEL_END, 0, place="not found in the code"),
        ]

    def addresses(self) -> list[int]:
        return [made.address for made in self.world.debugger.active()]

    def test_the_places_that_were_found_are_armed_and_not_ompds_own(self) -> None:
        self.assertEqual(self.world.run("break parallel-begin"), "Stop 1  parallel-begin  (2 places; 0 hits)\n")
        self.assertEqual(self.addresses(), [0x9000, 0x9010])

    def test_ompds_own_places_are_better_than_none_and_gaps_are_told(self) -> None:
        text = self.world.run("break task-begin")
        self.assertEqual(text, "Stop 1  task-begin  (1 place; 0 hits)\n  not met: libfake: not found in the code\n")
        self.assertEqual(self.addresses(), [0x8100])

    def test_without_any_place_there_is_no_stop(self) -> None:
        with self.assertRaisesRegex(CommandError, "no place to stop at for parallel-end:\n  libfake: not found in the code"):
            self.world.run("break parallel-end")
        self.assertEqual(self.world.run("break"), "There are no stops (`openmp break EVENT` makes one).\n")

    def test_before_a_runtime_is_loaded_a_stop_waits(self) -> None:
        self.library.codes["ompd_process_initialize"] = 7
        self.assertEqual(self.world.run("break parallel-begin"), "Stop 1  parallel-begin  (waits for a runtime to be loaded; 0 hits)\n")
        del self.library.codes["ompd_process_initialize"]
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [0x9000, 0x9010])

    def test_a_program_with_its_runtime_built_in_is_asked_at_stops(self) -> None:
        self.world.inferior.modules = 1
        self.library.codes["ompd_process_initialize"] = 7
        self.world.run("break parallel-begin")
        del self.library.codes["ompd_process_initialize"]
        self.world.inferior.stops += 1
        self.world.plugin.stopped([])
        self.assertEqual(self.addresses(), [0x9000, 0x9010])

    def test_another_program_has_other_places(self) -> None:
        self.world.run("break parallel-begin")
        self.world.plugin.replaced(self.world.inferior)
        self.assertEqual(self.addresses(), [])
        self.library.points = [point(PARALLEL_BEGIN, 0x5000)]
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [0x5000])

    def test_children_of_the_same_program_have_the_stop_and_others_not(self) -> None:
        self.world.run("break parallel-begin")
        for number, path in ((2, "/bin/program"), (3, "/bin/other")):
            inferior = Inferior(number, 100 * number)
            inferior.path = path
            inferior.all_threads = [Thread(number, 100 * number)]
            self.world.debugger.inferiors.append(inferior)
            self.world.debugger.selected_number = number - 1
            self.world.plugin.files_loaded(inferior)
        self.assertEqual(self.addresses(), [0x9000, 0x9010] * 2)
        self.world.plugin.replaced(self.world.debugger.inferiors[1])
        self.assertEqual(self.addresses(), [0x9000, 0x9010])

    def test_files_of_an_inferior_that_is_not_selected_are_for_later(self) -> None:
        self.world.run("break parallel-begin")
        made = len(self.world.debugger.breakpoints)
        self.world.plugin.files_loaded(Inferior(2, 200))
        self.assertEqual(len(self.world.debugger.breakpoints), made)

    def test_a_second_runtime_that_is_loaded_later_has_places_too(self) -> None:
        self.world.run("break parallel-begin")
        self.library.points.append(point(PARALLEL_BEGIN, 0x7000))
        # At a stop the places that are there are enough.
        self.world.plugin.stopped([])
        self.assertEqual(self.addresses(), [0x9000, 0x9010])
        made = len(self.world.debugger.breakpoints)
        self.assertEqual(made, 2)
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [0x7000, 0x9000, 0x9010])
        [new, *_] = self.world.debugger.active()
        self.assertTrue(new.hit())
        self.world.plugin.stopped([new])
        self.assertIn("A parallel region begins", self.world.debugger.output())

    def test_all_gaps_are_told_each_once(self) -> None:
        self.library.points = [point(LOCK, 0, place=place) for place in ("nested", "hint", "nested")]
        # That OMPD's own symbol is missing is no gap: it is only the second choice.
        self.library.points.append(point(LOCK, 0, own=True, place="own"))
        expected = "^There is no place to stop at for lock-acquire:\n  libfake: hint\n  libfake: nested$"
        with self.assertRaisesRegex(CommandError, expected):
            self.world.run("break lock-acquire")
        with self.assertRaisesRegex(CommandError, "^There is no place to stop at for single-begin:\n  no runtime tells of it$"):
            self.world.run("break single-begin")

    def test_places_at_one_address_have_one_breakpoint(self) -> None:
        self.library.points = [point(LOCK, 0x9000), point(LOCK, 0x9000)]
        self.assertIn("(1 place; 0 hits)", self.world.run("break lock-acquire"))

    def test_where_the_debugger_refuses_one_breakpoint_there_is_no_stop(self) -> None:
        made: list[Breakpoint] = []

        def refuse(debugger: Debugger, address: int, reached: Any) -> Breakpoint:
            if made:
                raise DebuggerError("Cannot access memory")
            made.append(Breakpoint(address, reached))
            return made[0]

        with mock.patch.object(Debugger, "break_at", refuse), self.assertRaisesRegex(DebuggerError, "^Cannot access memory$"):
            self.world.run("break parallel-begin")
        self.assertFalse(made[0].is_valid())
        self.assertIn("There are no stops", self.world.run("break"))

    def test_a_stop_that_cannot_have_all_its_breakpoints_has_none(self) -> None:
        self.library.codes["ompd_process_initialize"] = 7
        self.world.run("break parallel-begin")
        del self.library.codes["ompd_process_initialize"]
        first = self.world.debugger.break_at(0x9000, lambda: True)
        with mock.patch.object(Debugger, "break_at", side_effect=[first, DebuggerError("Cannot access memory")]):
            self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [])
        self.assertIn("waits for a runtime", self.world.run("break"))

    def test_breakpoints_that_went_with_their_process_are_forgotten(self) -> None:
        self.world.run("break parallel-begin")
        for made in self.world.debugger.active():
            made.delete()
        for text in ("disable 1", "enable 1", "commands 1 bt"):
            self.world.run(text)
        self.assertEqual(self.world.plugin.stops.all[0].addresses(), [])
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [0x9000, 0x9010])
        self.assertIn("(2 places; 0 hits)", self.world.run("break"))

    def test_a_program_without_a_path_has_no_others_of_its_kind(self) -> None:
        self.world.inferior.path = None
        self.world.run("break parallel-begin")
        child = Inferior(2, 200)
        child.path = None
        child.all_threads = [Thread(1, 201)]
        self.world.debugger.inferiors.append(child)
        self.world.debugger.selected_number = 1
        self.world.plugin.files_loaded(child)
        self.assertEqual(self.addresses(), [0x9000, 0x9010])
        self.world.debugger.selected_number = 0
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [0x9000, 0x9010])

    def test_without_stops_or_without_a_process_the_library_is_not_asked(self) -> None:
        # To ask would load the library.
        with mock.patch.object(type(self.world.session), "process", side_effect=AssertionError("it was asked about")):
            self.world.plugin.files_loaded(self.world.inferior)
            self.world.plugin.stopped([])
        self.assertEqual(self.library.calls, [])
        self.library.codes["ompd_process_initialize"] = 7
        self.world.run("break parallel-begin")
        before = len(self.library.calls)
        self.world.inferior.end()
        with mock.patch.object(type(self.world.session), "process", side_effect=AssertionError("it was asked about")):
            self.world.plugin.stopped([])
        self.assertEqual(len(self.library.calls), before)

    def test_delete_takes_all_or_some_away(self) -> None:
        for _ in range(3):
            self.world.run("break parallel-begin")
        self.world.run("delete 2")
        self.assertEqual([line[:1] for line in self.world.run("break").splitlines()], ["1", "3"])
        self.world.run("delete")
        self.assertEqual(self.addresses(), [])

    def test_a_stop_that_is_named_twice_is_refused_and_stays(self) -> None:
        self.world.run("break parallel-begin")
        with self.assertRaisesRegex(CommandError, "^Stop 1 is named more than once: nothing was changed.$"):
            self.world.run("delete 1 1")
        for _ in range(2):
            self.world.run("break parallel-begin")
        with self.assertRaisesRegex(CommandError, "^Stop 1, 3 is named more than once"):
            self.world.run("delete 3 1-3 1")
        self.world.run("delete 2 3")
        self.assertEqual(self.addresses(), [0x9000, 0x9010])


class Changes(unittest.TestCase):
    """Stops are listed, disabled, enabled, made temporary, changed, saved and loaded."""

    def setUp(self) -> None:
        self.world = World()
        self.world.library.points = [point(PARALLEL_BEGIN, 0x9000), point(TASK_BEGIN, 0x9100)]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name, "stops of mine")

    def addresses(self) -> list[int]:
        return [made.address for made in self.world.debugger.active()]

    def test_a_disabled_stop_has_no_hits_until_it_is_enabled(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("break task-begin")
        first = self.world.debugger.active()[0]
        self.world.run("disable 1")
        self.assertEqual(self.addresses(), [0x9100])
        self.assertFalse(first.hit())
        self.assertIn("1  parallel-begin  (disabled; 1 place; 0 hits)\n", self.world.run("break"))
        self.world.run("enable")
        self.assertTrue(first.hit())
        self.assertIn("1  parallel-begin  (1 place; 1 hit)\n", self.world.run("break"))

    def test_a_stop_is_disabled_where_a_runtime_is_loaded_later(self) -> None:
        self.assertEqual(self.world.run("break -disabled parallel-begin"), "Stop 1  parallel-begin  (disabled; 1 place; 0 hits)\n")
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertEqual(self.addresses(), [])
        self.world.run("enable 1")
        self.assertEqual(self.addresses(), [0x9000])

    def test_a_temporary_stop_ends_with_its_first_hit(self) -> None:
        self.assertEqual(self.world.run("break -temporary task-begin"), "Stop 1  task-begin  (temporary; 1 place; 0 hits)\n")
        made = self.world.debugger.active()[0]
        self.assertEqual([made.hit(), made.hit()], [True, False])
        self.world.plugin.stopped([made])
        self.assertIn("A task begins", self.world.debugger.output())
        self.assertIn("There are no stops", self.world.run("break"))
        # The debugger is still at the breakpoint, which it has to report.
        self.assertEqual((self.addresses(), made.is_valid()), ([], True))
        self.world.plugin.stopped([])
        self.assertFalse(made.is_valid())
        self.assertEqual(self.world.run("break task-begin"), "Stop 2  task-begin  (1 place; 0 hits)\n")

    def test_a_temporary_stop_that_did_not_count_stays(self) -> None:
        self.world.run("break -temporary task-begin if never")
        self.assertFalse(self.world.debugger.active()[0].hit())
        self.world.plugin.stopped([])
        self.assertIn("1  task-begin if never  (temporary; 1 place; 0 hits)", self.world.run("break"))

    def test_a_thread_that_does_not_count_does_not_hide_one_that_does(self) -> None:
        self.world.run("break parallel-begin if here")
        made = self.world.debugger.active()[0]
        self.world.debugger.true.add("here")
        self.assertTrue(made.hit())
        self.world.debugger.true.clear()
        self.assertFalse(made.hit())
        self.world.plugin.stopped([made])
        self.assertIn("A parallel region begins", self.world.debugger.output())

    def test_conditions_change(self) -> None:
        self.world.run("break parallel-begin if never")
        made = self.world.debugger.active()[0]
        self.assertEqual(self.world.run("condition 1"), "Stop 1  parallel-begin  (1 place; 0 hits)\n")
        self.assertTrue(made.hit())
        self.assertEqual(self.world.run("condition 1 a == b"), "Stop 1  parallel-begin if a == b  (1 place; 1 hit)\n")
        self.assertFalse(made.hit())
        for text in ("condition", "condition 2", "condition a == b"):
            with self.subTest(text), self.assertRaises(CommandError):
                self.world.run(text)

    def test_a_condition_is_of_one_stop(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("break task-begin")
        usage = "Usage: openmp condition NUMBER [CONDITION]"
        for text, why in (("condition", f"The number of a stop is wanted. {usage}"), ("condition 1-2 x", f"One stop is wanted. {usage}")):
            with self.subTest(text), self.assertRaises(CommandError) as raised:
                self.world.run(text)
            self.assertEqual(str(raised.exception), why)

    def test_commands_last_are_for_the_stop_that_was_made_last(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("break task-begin")
        self.assertEqual(self.world.run("commands last bt"), "Stop 2  task-begin  (1 place; 0 hits)\n     bt\n")

    def test_each_way_to_say_continue_is_continue(self) -> None:
        for command in ("c", "cont", "continue", " process  continue "):
            self.world.run("break parallel-begin")
            self.assertTrue(self.world.run(f"commands last {command}").endswith("\n     continue\n"), command)
        with self.assertRaisesRegex(CommandError, "^Behind continue, stop 4 executes nothing: `openmp commands 4` removes its commands.$"):
            self.world.run("commands 4 bt")
        # What only begins so is another command.
        self.world.run("break parallel-begin")
        self.assertTrue(self.world.run("commands last continue 3").endswith("\n     continue 3\n"))

    def test_where_the_process_continues_the_frame_is_not_shown(self) -> None:
        frame = Frame(0x1100, "sweep")
        frame.line = Source("hang.c", 24)
        self.world.threads[0].frames = [frame]
        self.world.library.icvs = {1: 1, 2: 4, 3: 2}
        self.world.run("break parallel-begin")
        [made] = self.world.debugger.active()
        for expected in (True, False):
            if not expected:
                self.world.run("commands 1 continue")
            made.hit()
            self.world.debugger.output()
            self.assertEqual(self.world.plugin.stopped([made]), expected)
            self.assertEqual("the frame" in self.world.debugger.output(), expected)

    def test_a_command_is_executed_as_if_it_was_not_typed(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("commands 1 bt")
        [made] = self.world.debugger.active()
        made.hit()
        with mock.patch.object(Debugger, "execute") as executed:
            self.world.plugin.stopped([made])
        executed.assert_called_once_with("bt", False)

    def test_the_process_stays_where_a_command_of_the_plugin_has_run_to(self) -> None:
        """Although a stop of the user at the same place continues."""
        self.world.run("break parallel-begin")
        self.world.run("commands 1 continue")
        self.world.plugin.stops.add(self.world.session.process(), ("parallel-begin",), lwp=101)
        both = self.world.debugger.active()
        for made in both:
            self.assertTrue(made.hit())
        self.assertTrue(self.world.plugin.stopped(both))
        self.assertIn("A parallel region begins", self.world.debugger.output())
        self.world.plugin.stopped_too(both[1])
        self.assertEqual(self.world.debugger.output(), "", "it is for the command to show")

    def test_what_a_command_of_the_plugin_runs_to_is_for_it_to_show(self) -> None:
        self.world.plugin.stops.add(self.world.session.process(), ("parallel-begin",), lwp=101)
        [made] = self.world.debugger.active()
        self.assertTrue(made.hit())
        self.assertTrue(self.world.plugin.stopped([made]))
        self.assertEqual(self.world.debugger.output(), "")

    def test_a_hit_that_the_debugger_reports_later_is_shown_then(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("break task-begin")
        first, second = self.world.debugger.active()
        self.assertEqual([second.hit(), first.hit()], [True, True])
        self.world.debugger.output()
        for made, shown in ((second, "A task begins"), (first, "A parallel region begins")):
            self.world.plugin.stopped([made])
            self.assertEqual(
                [line for line in self.world.debugger.output().splitlines() if "begins" in line], [f"{shown}. Details unknown: No stack."]
            )

    def test_a_stop_that_continues_and_one_that_does_not_keep_the_process(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("break parallel-begin")
        self.world.run("commands 1 continue")
        both = self.world.debugger.active()
        for made in both:
            made.hit()
        self.assertTrue(self.world.plugin.stopped(both))

    def test_a_stop_made_after_a_temporary_one_was_hit_takes_its_breakpoint_away(self) -> None:
        self.world.run("break -temporary task-begin")
        [made] = self.world.debugger.active()
        made.hit()
        self.world.plugin.stopped([made])
        self.assertTrue(made.is_valid())
        self.world.run("break parallel-begin")
        self.assertFalse(made.is_valid())

    def test_commands_are_executed_at_each_hit_until_one_fails(self) -> None:
        self.world.run("break parallel-begin")
        for command in ("bt 3", "print x", "info locals"):
            self.world.run(f"commands 1 {command}")
        self.assertIn("0 hits)\n     bt 3\n     print x\n     info locals\n", self.world.run("break"))
        self.world.debugger.refused["print x"] = DebuggerError('No symbol "x" in current context.')
        made = self.world.debugger.active()[0]
        self.assertTrue(made.hit())
        self.world.debugger.output()
        self.world.plugin.stopped([made])
        self.assertIn('Stop 1, print x: No symbol "x" in current context.\n', self.world.debugger.output())
        self.assertEqual(self.world.debugger.executed, ["bt 3", "print x"])
        self.assertIn("1 hit)\n", self.world.run("commands 1"))

    def test_a_process_continues_where_the_last_command_says_so(self) -> None:
        self.world.run("break -temporary parallel-begin")
        self.world.run("commands last bt 3")
        self.world.run("commands last process  continue")
        with self.assertRaisesRegex(CommandError, "^Behind continue, stop 1 executes nothing"):
            self.world.run("commands 1 bt 4")
        made = self.world.debugger.active()[0]
        self.assertTrue(made.hit())
        self.assertFalse(self.world.plugin.stopped([made]))
        self.assertIn("A parallel region begins", self.world.debugger.output())
        self.assertEqual(self.world.debugger.executed, ["bt 3"])
        # It was temporary.
        self.assertIn("There are no stops", self.world.run("break"))
        self.assertTrue(self.world.plugin.stopped([]))
        for text in ("commands", "commands 1", "commands last bt"):
            with self.subTest(text), self.assertRaises(CommandError):
                self.world.run(text)

    def test_a_command_that_fails_in_one_of_several_threads_keeps_the_process(self) -> None:
        self.world.run("break parallel-begin")
        self.world.run("commands 1 bt 3")
        self.world.run("commands 1 continue")
        [made] = self.world.debugger.active()
        self.assertTrue(made.hit())
        self.world.debugger.refused["bt 3"] = DebuggerError("No stack.")
        self.world.plugin.stopped_too(made)
        self.world.debugger.refused.clear()
        self.assertTrue(self.world.plugin.stopped([made]))
        self.assertTrue(made.hit())
        self.assertFalse(self.world.plugin.stopped([made]))

    def test_a_debugger_may_have_stops_reported(self) -> None:
        with mock.patch.object(Breakpoint, "is_native", True):
            self.world.run("break parallel-begin")
            self.world.run("commands 1 bt 3")
            self.world.run("commands 1 continue")
            # Where a runtime is loaded later, its places have them too.
            self.world.plugin.files_loaded(self.world.inferior)
            [made] = self.world.debugger.active()
            self.assertTrue(made.hit() and made.continues)
            self.world.debugger.output()
            self.world.plugin.stopped([made])
            self.assertEqual((self.world.debugger.output(), self.world.debugger.executed), ("", []))
            assert made.report is not None
            self.assertIsNone(made.report())
            self.assertEqual(self.world.debugger.executed, ["bt 3"])
            self.world.debugger.refused["bt 3"] = DebuggerError("No stack.")
            self.assertEqual(made.report(), "Stop 1, bt 3: No stack.")
            self.world.run("commands 1")
            self.assertIsNone(made.report)
            self.assertFalse(made.continues)
            # Without commands there is nothing for the debugger to report.
            self.assertTrue(made.hit())
            self.world.plugin.stopped([made])
            self.assertIn("A parallel region begins", self.world.debugger.output())

    def test_ranges_name_the_stops_that_are_there(self) -> None:
        for _ in range(5):
            self.world.run("break parallel-begin")
        self.world.run("delete 2")
        self.world.run("disable 1-3 5")
        lines = self.world.run("break").splitlines()
        self.assertEqual([("disabled" in line, line[0]) for line in lines], [(True, "1"), (True, "3"), (False, "4"), (True, "5")])
        for text, why in (
            ("delete 2", "There is no stop 2 "),
            ("enable 1-3 3", "Stop 3 is named more than once"),
            ("enable x", "no stop x"),
        ):
            with self.subTest(text), self.assertRaisesRegex(CommandError, why):
                self.world.run(text)

    def test_stops_are_saved_and_loaded_with_new_numbers(self) -> None:
        self.world.run("break parallel-begin if $_omp_level() == 1")
        self.world.run("commands 1 bt 3")
        self.world.run("commands 1 c")
        self.world.run("break -temporary -disabled task-begin")
        self.assertEqual(self.world.run(f"save '{self.file}'"), f"2 stops saved in {self.file}.\n")
        self.assertEqual(
            self.file.read_text().splitlines()[1:],
            [
                "openmp break parallel-begin if $_omp_level() == 1",
                "openmp commands last bt 3",
                "openmp commands last continue",
                "openmp break -temporary -disabled task-begin",
            ],
        )
        self.world.run("delete 2")
        self.assertEqual(self.world.run(f"save '{self.file}.2'"), f"1 stop saved in {self.file}.2.\n")
        self.world.run("delete")
        text = self.world.run(f"load '{self.file}'")
        self.assertEqual(
            text,
            "Stop 3  parallel-begin if $_omp_level() == 1  (1 place; 0 hits)\n     bt 3\n     continue\n"
            "Stop 4  task-begin  (temporary; disabled; 1 place; 0 hits)\n",
        )

    def test_of_a_file_with_anything_else_nothing_is_loaded(self) -> None:
        for line in (
            "shell true",
            "openmp commands 1 shell true",
            "openmp break",
            "openmp break nothing",
            "openmp break -hidden task-begin",
            "openmp breakparallel-begin",
        ):
            self.file.write_text(f"# stops\n\nopenmp break parallel-begin\n{line}\n")
            with self.subTest(line), self.assertRaisesRegex(CommandError, "stops of mine:4: (.|\n)*Nothing was loaded"):
                self.world.run(f"load '{self.file}'")
        self.assertIn("There are no stops", self.world.run("break"))

    def test_a_stop_without_a_place_is_reported_and_the_others_are_loaded(self) -> None:
        self.file.write_text("openmp break barrier-begin\nopenmp break task-begin\nopenmp break lock-acquire\n")
        with self.assertRaises(CommandError) as raised:
            self.world.run(f"load '{self.file}'")
        lines = [line for line in str(raised.exception).splitlines() if "no place" in line]
        self.assertEqual(
            lines, [f"{self.file}:{n}: There is no place to stop at for {name}:" for n, name in ((1, "barrier-begin"), (3, "lock-acquire"))]
        )
        self.assertIn("2  task-begin", self.world.run("break"))

    def test_a_line_of_a_file_is_a_stop_or_a_command_of_the_stop_above(self) -> None:
        wanted = "`openmp break EVENT` is wanted. Nothing was loaded."
        cases = {
            "openmp commands last bt\n": f"1: {wanted}",
            "openmp break task-begin\nopenmp commands last\n": f"2: {wanted}",
            "shell true\n": f"1: {wanted}",
            "shell openmp break task-begin\n": f"1: {wanted}",
            "openmp break task-begin\nopenmp commands last bt\nopenmp commands last c\nopenmp commands last bt\n": (
                "4: Behind continue, nothing is executed. Nothing was loaded."
            ),
        }
        for text, expected in cases.items():
            self.file.write_text(text)
            with self.subTest(text), self.assertRaises(CommandError) as raised:
                self.world.run(f"load '{self.file}'")
            self.assertEqual(str(raised.exception), f"{self.file}:{expected}")
        self.file.write_text("openmp break task-end if\n")
        with self.assertRaisesRegex(CommandError, "mine:1: Behind the event comes `if` (.|\n)*\nNothing was loaded.$"):
            self.world.run(f"load '{self.file}'")
        self.file.write_bytes(b"# caf\xe9\n\n  openmp break task-begin  \n openmp commands last  bt 3\n")
        self.assertEqual(self.world.run(f"load '{self.file}'"), "Stop 1  task-begin  (1 place; 0 hits)\n     bt 3\n")

    def test_files_that_cannot_be_used_are_reported(self) -> None:
        for text in ("save", "save a b", "load", "save /tmp/x"):
            with self.subTest(text), self.assertRaises(CommandError):
                self.world.run(text)
        self.world.run("break task-begin")
        with self.assertRaisesRegex(CommandError, "^The stops were not saved in /nowhere/at/all: No such file or directory.$"):
            self.world.run("save /nowhere/at/all")
        with self.assertRaisesRegex(CommandError, "^The stops were not loaded from /nowhere/at/all: No such file or directory.$"):
            self.world.run("load /nowhere/at/all")


class Events(unittest.TestCase):
    """What is printed at a stop."""

    def setUp(self) -> None:
        self.world = World()
        self.library = self.world.library
        self.debugger = self.world.debugger
        self.library.icvs = {1: 1, 2: 4, 3: 2}
        program = Frame(0x1100, "sweep")
        program.line = Source("hang.c", 24)
        self.program = program
        self.world.threads[0].frames = [program]
        self.debugger.select_thread(self.world.threads[0])

    def printed(self, event: int, name: str) -> str:
        """What a stop at an event prints."""
        self.library.points = [point(event, 0x9000)]
        self.world.run("delete")
        self.world.run(f"break {name}")
        [made] = self.debugger.active()
        self.assertTrue(made.hit())
        self.debugger.output()
        self.world.plugin.stopped([made])
        return self.debugger.output()

    def functions_at(self, address: int) -> None:
        """The functions of all regions and tasks are there."""

        def find(_handle: object, out: Any) -> None:
            out._obj.address = address

        for name in ("ompdx_get_parallel_function", "ompd_get_task_function"):
            self.library.answers[name] = find

    def test_each_event_of_the_library_has_a_name_and_a_sentence(self) -> None:
        # The numbers are those of `ompdx_event_t`.
        cases = {
            1: ("parallel-begin", "A parallel region begins"),
            2: ("parallel-end", "A parallel region ends"),
            3: ("task-begin", "A task begins"),
            4: ("task-end", "A task ends"),
            5: ("thread-begin", "A thread begins"),
            6: ("thread-end", "A thread ends"),
            7: ("barrier-begin", "The thread comes to a barrier"),
            8: ("lock-acquire", "The thread comes to a lock"),
            9: ("critical-acquire", "The thread comes to a critical construct"),
            10: ("taskwait-begin", "The thread comes to a taskwait construct"),
            11: ("worksharing-begin", "The thread comes to a worksharing loop or sections construct"),
            12: ("single-begin", "The thread comes to a single construct"),
        }
        for event, (name, sentence) in cases.items():
            with self.subTest(name):
                first, second, *rest = self.printed(event, name).splitlines()
                self.assertEqual((first, second), (f"{sentence} (Thread 1, LWP 101).", "  at: sweep (hang.c:24)"))
                self.assertEqual(rest == ["  thread 1 of 4, level 2", "the frame"], not name.startswith(("parallel", "task-")))

    def test_a_region_has_its_threads_its_function_and_the_task_that_met_it(self) -> None:
        self.functions_at(0x1010)
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        self.debugger.lines = [(0x1000, 10, "a.c")]
        for event, name in ((1, "parallel-begin"), (2, "parallel-end")):
            self.assertEqual(
                self.printed(event, name).splitlines()[2:],
                [
                    "  threads: 4",
                    "  function: function_1000 (a.c:10)",
                    "  met by: the task of function_1000 (a.c:10)",
                    "  its frames: none",
                    "the frame",
                ],
            )

    def test_a_task_has_its_function_and_its_frames(self) -> None:
        self.functions_at(0x1010)
        self.library.answers["ompd_get_task_frame"] = Taskframes.frames
        for event, name in ((3, "task-begin"), (4, "task-end")):
            frames = "called the runtime at 0x7ffc00001000, was called at 0x7ffc00001230"
            self.assertEqual(self.printed(event, name).splitlines()[2:-1], ["  it is: the task of 0x1010", f"  its frames: {frames}"])

    def test_what_the_runtime_does_not_know_is_not_known(self) -> None:
        for name in ("ompdx_get_parallel_function", "ompd_get_task_function", "ompd_get_task_frame"):
            self.library.codes[name] = 1
        task = "met by: a task whose function is not known"
        expected = ["  threads: 4", "  function: not known", f"  {task}", "  its frames: not known"]
        self.assertEqual(self.printed(1, "parallel-begin").splitlines()[2:-1], expected)
        # At nesting level 0 only the initial task is executed.
        self.library.icvs[3] = 0
        self.assertIn("  met by: the initial task\n", self.printed(1, "parallel-begin"))
        self.library.codes["ompd_get_icv_from_scope"] = 1
        expected[0] = "  threads: not known"
        self.assertEqual(self.printed(1, "parallel-begin").splitlines()[2:-1], expected)
        self.library.codes["ompd_get_curr_task_handle"] = 1
        self.assertEqual(self.printed(1, "parallel-begin").splitlines()[4:-1], ["  met by: not known"])
        self.assertEqual(self.printed(7, "barrier-begin").splitlines()[2:], ["the frame"])

    def test_all_handles_are_given_back(self) -> None:
        self.printed(1, "parallel-begin")
        self.library.codes["ompd_get_task_frame"] = 1
        self.printed(1, "parallel-begin")
        for kind, get in (("thread", "ompd_get_thread_handle"), ("task", "ompd_get_curr_task_handle")):
            self.assertGreater(self.library.asked(get), 0)
            self.assertEqual(self.library.asked(get), self.library.asked(f"ompd_rel_{kind}_handle"))
        self.assertEqual(self.library.asked("ompd_get_curr_parallel_handle"), self.library.asked("ompd_rel_parallel_handle"))

    def test_the_place_is_in_the_program_and_not_in_a_library_of_openmp_or_c(self) -> None:
        runtime, libc, without_line, program = Frame(0x9000, "GOMP_barrier"), Frame(0xA000, "qsort"), Frame(0x1000), Frame(0x1100)
        for frame in (runtime, libc, program):
            frame.line = Source("file.c", 5)
        without_line.line = Source("file.c", 0)
        self.debugger.libraries = {range(0x9000, 0xA000): "/lib/libgomp.so.1", range(0xA000, 0xB000): "/lib64/libc.so.6"}
        self.world.threads[0].frames = stack(runtime, libc, without_line, program)
        self.assertEqual(self.printed(7, "barrier-begin").splitlines()[1], "  at: ?? (file.c:5)")
        self.assertIs(self.debugger.frame, program)
        # A library of the user's has a place like the program.
        self.debugger.libraries[range(0x1100, 0x1200)] = "/opt/libcommon.so"
        self.debugger.select_thread(self.world.threads[0])
        self.printed(7, "barrier-begin")
        self.assertIs(self.debugger.frame, program)

    def test_without_source_there_is_no_place_and_the_frame_stays(self) -> None:
        deep = stack(*(Frame(0x9000 + n) for n in range(32)), self.program)
        for frames in ([Frame(0x9000)], deep):
            self.world.threads[0].frames = frames
            self.debugger.select_thread(self.world.threads[0])
            self.assertEqual(self.printed(7, "barrier-begin").splitlines()[1:], ["  thread 1 of 4, level 2"])
            self.assertIs(self.debugger.frame, frames[0])
        self.world.threads[0].frames = stack(*deep[1:])
        self.assertIn("at: sweep (hang.c:24)", self.printed(7, "barrier-begin"))

    def test_a_statically_linked_runtime_has_its_frames_in_the_program(self) -> None:
        runtime = Frame(0x9000, "GOMP_barrier")
        runtime.line = Source("bar.c", 5)
        self.world.threads[0].frames = stack(runtime, self.program)
        self.assertIn("at: GOMP_barrier (bar.c:5)", self.printed(7, "barrier-begin"))

    def test_what_was_read_while_the_threads_came_there_is_read_anew(self) -> None:
        self.library.points = [point(BARRIER, 0x9000)]
        self.world.run("break barrier-begin")
        [made] = self.debugger.active()
        made.hit()
        state = self.world.session.process().state
        before = state.stop
        self.world.plugin.stopped([made])
        self.assertGreater(state.stop, before)

    def test_a_stop_is_named_for_editors(self) -> None:
        stops = self.world.plugin.stops
        self.library.points = [point(BARRIER, 0x9000), point(LOCK, 0x9100), point(TASK_BEGIN, 0x9200)]
        for name in ("barrier-begin", "lock-acquire"):
            self.world.run(f"break {name}")
        stops.add(self.world.session.process(), ("task-begin",), lwp=101)
        barrier, lock, step = self.debugger.active()
        self.assertIsNone(stops.reason([barrier, lock, step]), "none was hit")
        for made in (lock, step):
            self.assertTrue(made.hit())
        self.assertEqual(stops.reason(iter([barrier, lock])), "The thread comes to a lock")
        self.assertEqual(stops.reason([step, lock]), "The thread comes to a lock")
        self.assertIsNone(stops.reason([barrier]))
        self.assertIsNone(stops.reason([step]), "what a command runs to")


class Hits(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.library = self.world.library
        self.library.points = [point(PARALLEL_BEGIN, 0x9000, condition="rdi is not 0")]
        self.library.icvs = {1: 1, 2: 4, 3: 2}

    def hit(self) -> bool:
        return self.world.debugger.active()[-1].hit()

    def test_what_does_not_count_does_not_stop(self) -> None:
        self.world.run("break parallel-begin")
        self.library.counts = 0
        self.assertFalse(self.hit())
        self.library.counts = 1
        self.assertTrue(self.hit())
        self.assertIn("1 hit)", self.world.run("break"))

    def test_where_each_hit_counts_the_library_is_not_asked(self) -> None:
        self.library.points = [point(PARALLEL_BEGIN, 0x9000, condition=None)]
        self.world.run("break parallel-begin")
        self.assertTrue(self.hit())
        self.assertEqual(self.library.asked("ompdx_get_stop"), 0)

    def test_a_condition_is_evaluated(self) -> None:
        self.world.run("break parallel-begin if $_omp_level() == 2")
        self.assertFalse(self.hit())
        self.world.debugger.true.add("$_omp_level() == 2")
        self.assertTrue(self.hit())

    def test_another_thread_than_that_of_the_step_does_not_stop(self) -> None:
        process = self.world.session.process()
        stop = self.world.plugin.stops.add(process, ("parallel-begin",), lwp=102)
        self.assertFalse(self.hit())
        self.world.debugger.select_thread(self.world.threads[1])
        self.assertTrue(self.hit())
        self.assertEqual(stop.hits, 1)

    def test_if_it_is_not_known_whether_it_counts_it_stops_and_says_so(self) -> None:
        self.world.run("break parallel-begin")
        self.library.codes["ompdx_get_stop"] = 1
        self.assertTrue(self.hit())
        self.assertEqual(self.world.debugger.output(), "Stop 1: whether this counts is not known. It does if rdi is not 0.\n")
        self.library.codes["ompdx_get_stop"] = 4
        self.assertTrue(self.hit())
        self.assertEqual(self.world.debugger.output(), "Stop 1: whether it counts is not known: ompdx_get_stop: failed\n")

    def test_at_a_hit_the_process_is_read_anew(self) -> None:
        self.world.run("break parallel-begin")
        state = self.world.session.process().state
        before = state.stop
        self.hit()
        self.assertGreater(state.stop, before)

    def test_at_a_stop_it_is_said_what_begins(self) -> None:
        self.library.points = [point(BARRIER, 0x9000)]
        self.world.run("break barrier-begin")
        runtime, program = Frame(0x9000, "GOMP_barrier"), Frame(0x1100, "sweep")
        runtime.line, program.line = Source("bar.c", 5), Source("hang.c", 24)
        self.world.threads[0].frames = stack(runtime, program)
        self.world.debugger.libraries = {range(0x9000, 0xA000): "/lib/libgomp.so.1"}
        self.hit()
        self.world.debugger.output()
        self.world.plugin.stopped([self.world.debugger.active()[0]])
        self.assertEqual(
            self.world.debugger.output(),
            "The thread comes to a barrier (Thread 1, LWP 101).\n  at: sweep (hang.c:24)\n  thread 1 of 4, level 2\nthe frame\n",
        )
        self.assertIs(self.world.debugger.frame, program)

    def test_at_a_lock_it_is_said_which_thread_comes_to_it(self) -> None:
        self.library.points = [point(LOCK, 0x9000)]
        self.world.run("break lock-acquire")
        self.world.threads[0].frames = stack(Frame(0x9000, "omp_set_lock"))
        self.hit()
        self.world.debugger.output()
        self.world.plugin.stopped([self.world.debugger.active()[0]])
        self.assertEqual(self.world.debugger.output(), "The thread comes to a lock (Thread 1, LWP 101).\n  thread 1 of 4, level 2\n")

    def test_of_breakpoints_at_one_address_the_one_that_stopped_is_told_of(self) -> None:
        self.library.points = [point(PARALLEL_BEGIN, 0x9000), point(BARRIER, 0x9000)]
        self.world.run("break parallel-begin if never")
        self.world.run("break barrier-begin")
        first, second = self.world.debugger.active()
        self.assertEqual([first.hit(), second.hit()], [False, True])
        self.world.debugger.output()
        self.world.plugin.stopped([first, second])
        self.assertIn("The thread comes to a barrier", self.world.debugger.output())
        # Each stop is reported once.
        self.world.plugin.stopped([first, second])
        self.assertEqual(self.world.debugger.output(), "")

    def test_of_threads_that_stop_together_each_is_told_of(self) -> None:
        self.world.run("break parallel-begin")
        for thread in self.world.threads[:2]:
            thread.frames = stack(Frame(0x9000, "GOMP_parallel"))
        self.hit()
        breakpoint = self.world.debugger.active()[0]
        self.world.debugger.output()
        with self.world.debugger.selected(self.world.threads[1]):
            self.world.plugin.stopped_too(breakpoint)
        self.world.plugin.stopped([breakpoint])
        told = [line for line in self.world.debugger.output().splitlines() if line.startswith("A parallel region begins")]
        self.assertEqual(told, ["A parallel region begins (Thread 2, LWP 102).", "A parallel region begins (Thread 1, LWP 101)."])
        self.world.plugin.stopped_too(self.world.debugger.break_at(0x1, lambda: True))
        self.assertEqual(self.world.debugger.output(), "")

    def test_what_the_debugger_refuses_to_say_of_a_stop_is_unknown(self) -> None:
        self.world.run("break parallel-begin")
        self.hit()
        with refusing(Debugger, "newest_frame"):
            self.world.plugin.stopped([self.world.debugger.active()[0]])
        self.assertEqual(self.world.debugger.output(), "A parallel region begins. Details unknown: Remote connection closed\n")
        with refusing(Debugger, "selected_inferior"):
            self.world.plugin.stopped([])

    def test_at_other_breakpoints_nothing_is_said(self) -> None:
        self.world.run("break parallel-begin")
        other = self.world.debugger.break_at(0x1, lambda: True)
        self.world.plugin.stopped([other])
        self.assertEqual(self.world.debugger.output(), "")


class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.debugger = self.world.debugger
        self.world.library.points = [point(PARALLEL_BEGIN, 0x9000), point(BARRIER, 0x9100)]

    def hit(self) -> bool:
        return self.debugger.active()[0].hit()

    def test_until_barrier_stops_there_and_leaves_no_breakpoint(self) -> None:
        def run() -> bool:
            self.assertEqual([made.address for made in self.debugger.active()], [0x9100])
            return self.debugger.active()[0].hit()

        self.debugger.running = run
        self.assertEqual(self.world.run("until barrier"), "the frame\n")
        self.assertEqual(self.debugger.active(), [])

    def test_until_barrier_selects_the_frame_of_the_program(self) -> None:
        runtime, program = Frame(0x9100, "GOMP_barrier"), Frame(0x1100, "sweep")
        program.line = Source("hang.c", 24)
        self.world.threads[0].frames = stack(runtime, program)
        self.debugger.select_thread(self.world.threads[0])
        self.debugger.running = self.hit
        self.assertEqual(self.world.run("until barrier"), "the frame\n")
        self.assertIs(self.debugger.frame, program)

    def test_if_something_else_stops_the_process_too_the_debugger_has_shown_it(self) -> None:
        self.region_at(0x7000)
        self.world.library.points.append(point(BARRIER, 0x9100))
        for text in ("until barrier", "finish"):
            for hits in (False, True):

                def run(hits: bool = hits) -> bool:
                    self.debugger.true.add("team() == 28672")
                    if hits:
                        self.assertTrue(self.hit())
                    # With a hit, another thread has stopped for another reason.
                    return not hits

                self.debugger.running = run
                with self.subTest(text, hits=hits):
                    self.assertEqual((self.world.run(text), self.debugger.active()), ("", []))

    def test_without_a_runtime_nothing_runs(self) -> None:
        self.world.library.codes["ompd_process_initialize"] = 7
        self.debugger.running = lambda: self.fail("it runs")
        for text in ("step", "finish", "until barrier", "until grid.c:35"):
            with self.subTest(text), self.assertRaisesRegex(NotNow, "^No OpenMP runtime"):
                self.world.run(text)

    def test_what_a_command_runs_to_is_not_listed_and_takes_no_number(self) -> None:
        def run() -> bool:
            self.assertIn("There are no stops", self.world.run("break"))
            self.assertEqual(self.world.plugin.stops.all[0].number, 0)
            child = Inferior(2, 200)
            child.all_threads = [Thread(1, 201)]
            self.debugger.inferiors.append(child)
            self.debugger.selected_number = 1
            self.world.plugin.files_loaded(child)
            self.debugger.selected_number = 0
            # A child of the same program has no thread that could come there.
            self.assertEqual(len(self.debugger.active()), 1)
            return False

        self.debugger.running = run
        self.world.run("until barrier")
        self.assertEqual(self.world.run("break barrier-begin"), "Stop 1  barrier-begin  (1 place; 0 hits)\n")

    def region_at(self, address: int) -> None:
        """The region of any thread has its record there, and the process has a place for its end."""
        self.world.library.points = [point(PARALLEL_END, 0x9200)]
        self.world.library.answers["ompdx_get_descriptor"] = lambda _handle, out: setattr(out._obj, "address", address)

    def test_finish_stops_in_thread_0_at_the_end_of_that_region(self) -> None:
        self.region_at(0x7000)

        def run() -> bool:
            [made] = self.debugger.active()
            self.debugger.true.add(f"team() == {0x7000}")
            hits = [made.hit()]
            self.debugger.select_thread(self.world.threads[0])
            self.debugger.true.clear()
            hits.append(made.hit())
            self.debugger.true.add(f"team() == {0x7000}")
            hits.append(made.hit())
            # Neither in another thread of the team, nor at the end of another region.
            self.assertEqual(hits, [False, False, True])
            return True

        self.debugger.running = run
        self.debugger.select_thread(self.world.threads[2])
        self.assertEqual(self.world.run("finish"), "the frame\n")
        self.assertEqual(self.debugger.active(), [])

    def test_finish_where_a_region_begins_is_for_that_region(self) -> None:
        self.region_at(0x7000)
        self.world.library.event = PARALLEL_BEGIN
        # Team 0 is that of another thread, and thread 1 of the debugger's begins a region.
        self.world.library.report["runtimes"] = [runtime([102, 101])]
        self.debugger.true.add("team() == 28672")
        self.debugger.running = self.hit
        self.assertEqual(self.world.run("finish"), "the frame\n")

    def test_finish_with_hold_where_the_outermost_region_begins_holds_all_teams(self) -> None:
        """The thread is in no team before."""
        self.region_at(0x7000)
        self.world.library.event = PARALLEL_BEGIN
        self.world.library.report["runtimes"] = [runtime([102, 103])]
        self.debugger.true.add("team() == 28672")
        self.debugger.running = self.hit
        self.assertEqual(self.world.run("finish -hold"), "the frame\n")
        self.assertEqual(self.debugger.held, ["2", "3"])

    def test_finish_asks_for_the_region_and_not_for_the_task(self) -> None:
        self.region_at(0x7000)
        self.world.run("finish")
        self.assertEqual(self.world.library.asked("ompd_get_curr_parallel_handle"), 1)
        self.assertEqual(self.world.library.asked("ompd_get_curr_task_handle"), 0)

    def test_finish_holds_teams_with_the_same_number_of_another_runtime(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([101, 102]), runtime([103, 104])]
        self.world.run("finish -hold")
        self.assertEqual(self.debugger.held, ["3", "4"])

    def test_finish_holds_other_teams_but_not_those_inside_the_region(self) -> None:
        self.region_at(0x7000)
        for number in range(5, 8):
            self.world.inferior.all_threads.append(Thread(number, 100 + number))
        # Team 1 is around team 0, and team 2 inside of team 0. Team 3 is another one.
        found = runtime([101, 102], [101, 103], [102, 104], [105, 106])
        for team, parent in zip(found["teams"], (1, None, 0, 1)):
            team["parent"] = fact(parent)
        self.world.library.report["runtimes"] = [found]
        self.debugger.running = lambda: False
        self.world.run("finish")
        self.assertEqual(self.debugger.held, [])
        self.world.run("finish -hold")
        # Thread 7 is in no team.
        self.assertEqual(self.debugger.held, ["3", "5", "6"])

    def come(self, thread: int) -> bool:
        """A thread comes to the first breakpoint at the line."""
        self.debugger.select_thread(self.world.threads[thread])
        return self.lines()[0].hit()

    def lines(self) -> list[Breakpoint]:
        """The breakpoints at the line."""
        return [made for made in self.debugger.active() if made.address < 0x9000]

    def test_until_line_stops_when_the_last_member_comes(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([102, 101])]
        self.debugger.lines = [(0x5000, 35, "grid.c"), (0x5100, 35, "grid.c"), (0x5200, 36, "grid.c")]

        def run() -> bool:
            self.assertEqual([made.address for made in self.lines()], [0x5000, 0x5100])
            # Neither a member that comes again nor another thread counts.
            self.assertEqual([self.come(thread) for thread in (0, 0, 2, 1)], [False, False, False, True])
            return True

        self.debugger.running = run
        self.assertEqual(self.world.run("until grid.c:35"), "All 2 threads of team 0 have come to grid.c:35.\nthe frame\n")
        self.assertEqual((self.debugger.active(), self.debugger.held), ([], []))

    def test_until_line_says_who_has_come_if_something_else_stops_it(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([102, 101, 103])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        self.debugger.running = lambda: self.come(0) or True
        text = "Of team 0, thread 1 has come to grid.c:35. Missing: threads 0,2.\n"
        self.assertEqual(self.world.run("until grid.c:35"), text)
        self.debugger.select_thread(self.world.threads[0])
        self.debugger.running = lambda: False
        self.assertEqual(self.world.run("until grid.c:35"), "No thread of team 0 has come to grid.c:35.\n")

    def test_until_line_reads_each_thread_that_comes_anew(self) -> None:
        self.region_at(0x7000)
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        state = self.world.session.process().state

        def run() -> bool:
            before = state.stop
            self.assertFalse(self.come(0))
            self.assertGreater(state.stop, before)
            self.world.library.codes["ompdx_get_descriptor"] = 1
            # Without its region it does not count.
            self.assertFalse(self.come(1))
            del self.world.library.codes["ompdx_get_descriptor"]
            self.debugger.thread = None
            self.assertFalse(self.lines()[0].hit())
            self.assertFalse(self.come(2))
            return True

        self.debugger.running = run
        expected = "Of team 0, threads 0,2 have come to grid.c:35. Missing: threads 1,3.\n"
        self.assertEqual(self.world.run("until grid.c:35"), expected)
        self.assertEqual(self.world.library.asked("ompd_get_curr_task_handle"), 0)

    def test_until_the_line_of_a_function_is_behind_its_prologue(self) -> None:
        self.region_at(0x7000)
        self.debugger.functions = [Function(0x5000, 0x5040, "grid.c", 35)]
        self.debugger.lines = [(at, line, "grid.c") for at, line in ((0x5000, 35), (0x5008, 36), (0x5020, 35), (0x5030, 36), (0x6000, 35))]
        found: list[list[int]] = []

        def run() -> bool:
            found.append([made.address for made in self.lines()])
            return False

        self.debugger.running = run
        self.world.run("until grid.c:35")
        self.assertEqual(found, [[0x5008, 0x5020, 0x6000]])

    def test_until_a_line_without_a_file_is_in_that_of_the_selected_frame(self) -> None:
        self.region_at(0x7000)
        frame = Frame(0x5000)
        frame.line = Source("grid.c", 1)
        self.world.threads[0].frames = [frame]
        self.debugger.select_thread(self.world.threads[0])
        self.debugger.lines = [(0x5000, 35, "grid.c"), (0x6000, 35, "main.c")]
        for text in ("until 35", "until :35"):
            self.assertEqual(self.world.run(text), "No thread of team 0 has come to grid.c:35.\n")
        for line in ("1", "2147483647"):
            with self.assertRaisesRegex(CommandError, f"^There is no code of line {line} of grid.c in what is loaded.$"):
                self.world.run(f"until {line}")

    def test_until_line_with_hold_ends_when_something_else_stops_the_process(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([101, 102])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        for thread in self.world.threads:
            thread.frames = [Frame(0x4000)]
        for first, lives in ((True, True), (True, False), (False, True)):
            runs: list[int] = []

            def run(first: bool = first, lives: bool = lives, runs: list[int] = runs) -> bool:
                runs.append(1)
                if first and len(runs) == 1:
                    self.assertTrue(self.come(1))
                    return lives
                return True

            self.debugger.running = run
            self.debugger.select_thread(self.world.threads[0])
            text = self.world.run("until -hold grid.c:35")
            with self.subTest(first=first, lives=lives):
                self.assertEqual(len(runs), 1 + (first and lives))
                self.assertEqual("Missing: thread 0." in text, first)

    def test_until_line_with_hold_counts_from_anew_where_all_are_at_the_line(self) -> None:
        """In a loop they come there again."""
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([101, 102])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        for thread in self.world.threads:
            thread.frames = [Frame(0x5000)]
        runs: list[list[str]] = []

        def run() -> bool:
            runs.append(self.debugger.held)
            return self.come(len(runs) - 1)

        self.debugger.running = run
        self.assertIn("All 2 threads", self.world.run("until -hold grid.c:35"))
        self.assertEqual(runs, [[], ["1"]])

    def test_until_line_shows_the_program_where_the_region_ends(self) -> None:
        self.region_at(0x7000)
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        program = Frame(0x1100, "sweep")
        program.line = Source("hang.c", 24)
        self.world.threads[0].frames = stack(Frame(0x9200, "GOMP_parallel"), program)
        self.debugger.true.add("team() == 28672")
        self.debugger.running = lambda: next(made for made in self.debugger.active() if made.address == 0x9200).hit()
        self.debugger.select_thread(self.world.threads[0])
        self.assertIn("The region ends.\n", self.world.run("until grid.c:35"))
        self.assertIs(self.debugger.frame, program)

    def test_until_line_ends_with_the_region_and_counts_no_other(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([102, 101])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]

        def run() -> bool:
            self.assertFalse(self.come(0))
            self.region_at(0x7100)
            # The next region comes there as well.
            self.assertFalse(self.come(1))
            self.debugger.true.add("team() == 28672")
            self.debugger.select_thread(self.world.threads[1])
            [end] = [made for made in self.debugger.active() if made.address == 0x9200]
            return end.hit()

        self.debugger.running = run
        text = "The region ends.\nOf team 0, thread 1 has come to grid.c:35. Missing: thread 0.\nthe frame\n"
        self.assertEqual(self.world.run("until grid.c:35"), text)
        self.assertEqual(self.debugger.active(), [])

    def test_until_line_holds_those_that_have_come_and_other_teams(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([101, 102, 103], [104])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        for thread, pc in zip(self.world.threads, (0x4000, 0x5000, 0x4100)):
            thread.frames = [Frame(pc)]
        self.debugger.thread = self.world.threads[0]
        held: list[list[str]] = []

        def run() -> bool:
            held.append(self.debugger.held)
            thread = 0 if len(held) == 1 else 2
            self.assertTrue(self.come(thread))
            # The selected thread may come there again before the debugger holds it.
            self.assertFalse(self.come(thread))
            return True

        self.debugger.running = run
        self.assertIn("All 3 threads", self.world.run("until -hold grid.c:35"))
        # Thread 2 of gdb's is there from the beginning, and thread 4 is in another team.
        self.assertEqual(held, [["2", "4"], ["1", "2", "4"]])
        self.debugger.can_hold = False
        with self.assertRaisesRegex(DebuggerError, "^It holds no threads"):
            self.world.run("until -hold grid.c:35")
        self.assertEqual(len(held), 2)

    def test_until_line_says_what_it_does_not_find(self) -> None:
        self.region_at(0x7000)
        self.world.library.report["runtimes"] = [runtime([101, None])]
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        for text, why in (
            ("until", "^Usage: "),
            ("until -hold barrier", "^Usage: "),
            ("until grid.c", "^grid.c is no line: "),
            ("until 35", "^The selected frame has no source file: "),
            ("until grid.c:35", "^Not found among the threads of the process: 1 of team 0.$"),
        ):
            with self.subTest(text), self.assertRaisesRegex(CommandError, why):
                self.world.run(text)
        self.world.library.report["runtimes"] = [runtime([101, 102])]
        self.world.inferior.stops += 1
        with self.assertRaisesRegex(CommandError, "^There is no code of line 99 of grid.c"):
            self.world.run("until grid.c:99")

    def test_finish_says_which_region_it_cannot_finish(self) -> None:
        self.region_at(0x7000)
        self.world.library.event = PARALLEL_END
        with self.assertRaisesRegex(CommandError, "^The region of this thread ends here"):
            self.world.run("finish")
        self.world.library.event = 0
        self.world.library.report["runtimes"] = [runtime([None, 101])]
        with self.assertRaisesRegex(CommandError, "^Thread 0 of team 0, in which the region ends, was not found"):
            self.world.run("finish")
        self.world.library.report["runtimes"] = []
        self.world.inferior.stops += 1
        with self.assertRaisesRegex(CommandError, "^The selected thread is in no team"):
            self.world.run("finish")
        with self.assertRaisesRegex(CommandError, "^Usage: openmp finish"):
            self.world.run("finish 3")

    def test_the_end_of_the_process_is_for_the_debugger_to_print(self) -> None:
        self.debugger.running = lambda: False
        self.assertEqual(self.world.run("step"), "")
        self.assertEqual(self.debugger.active(), [])

    def test_where_places_are_unknown_nothing_runs(self) -> None:
        self.region_at(0x7000)
        self.debugger.lines = [(0x5000, 35, "grid.c")]
        self.world.library.codes["ompdx_stop_points"] = 4
        self.debugger.running = lambda: self.fail("it runs")
        for text in ("step", "finish", "until barrier", "until grid.c:35"):
            with self.subTest(text), self.assertRaisesRegex(OmpdError, "^ompdx_stop_points: failed$"):
                self.world.run(text)
        self.assertEqual((self.world.plugin.stops.all, self.debugger.active()), ([], []))
        # A stop of the user waits for a time at which they are known.
        self.assertIn("waits for a runtime", self.world.run("break parallel-end"))

    def test_a_step_that_something_else_stops_ends_there(self) -> None:
        runs: list[int] = []

        def run() -> bool:
            runs.append(1)
            return True

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "")
        self.assertEqual((runs, self.debugger.active()), ([1], []))

    def test_a_step_that_something_else_stops_before_the_body_ends_there(self) -> None:
        self.begin_at(0x1000)
        self.world.library.event = PARALLEL_BEGIN
        for hits, lives in ((False, True), (True, False)):

            def run(hits: bool = hits, lives: bool = lives) -> bool:
                if hits:
                    self.assertTrue(self.debugger.active()[-1].hit())
                return lives

            self.debugger.running = run
            with self.subTest(hits=hits):
                self.assertEqual((self.world.run("step"), self.debugger.active()), ("", []))

    def test_a_breakpoint_that_went_with_its_process_is_not_deleted(self) -> None:
        self.begin_at(0x1000)
        self.world.library.event = PARALLEL_BEGIN
        self.debugger.lines = [(0x5000, 35, "grid.c")]

        def run() -> bool:
            for made in self.debugger.active():
                made.delete()
            return False

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "")
        self.region_at(0x7000)
        self.world.library.event = 0
        self.assertIn("No thread", self.world.run("until grid.c:35"))

    def test_step_goes_into_a_task_that_begins(self) -> None:
        def find(_handle: object, address: Any) -> None:
            address._obj.address = 0x1000

        self.world.library.answers["ompd_get_task_function"] = find
        self.world.library.points.append(point(TASK_BEGIN, 0x9300))
        self.assertEqual(self.steps(1), [[0x9000, 0x9300], [0x1000]])
        self.world.library.event = TASK_BEGIN
        self.assertEqual(self.steps(0), [[0x1000]])

    def steps(self, hit: int) -> list[list[int]]:
        """The breakpoints at each run of a step; the first run ends at one of them."""
        seen: list[list[int]] = []

        def run() -> bool:
            seen.append([made.address for made in self.debugger.active()])
            return self.debugger.active()[hit if len(seen) == 1 else 0].hit()

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "the frame\n")
        return seen

    def test_step_at_an_event_that_is_no_begin_runs_to_the_next(self) -> None:
        self.begin_at(0x1000)
        self.world.library.event = BARRIER
        self.assertEqual(self.steps(0), [[0x9000], [0x1000]])

    def begin_at(self, function: int) -> None:
        """The body of the region is in this function."""

        def find(_handle: object, address: Any) -> None:
            address._obj.address = function

        self.world.library.answers["ompdx_get_parallel_function"] = find

    def test_step_at_a_begin_goes_into_that_body(self) -> None:
        self.begin_at(0x1000)
        self.world.library.event = PARALLEL_BEGIN
        seen = []

        def run() -> bool:
            seen.append([made.address for made in self.debugger.active()])
            return self.debugger.active()[-1].hit()

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "the frame\n")
        self.assertEqual(seen, [[0x1000]])

    def test_step_does_not_end_where_another_thread_begins_the_body(self) -> None:
        self.begin_at(0x1000)
        self.world.library.event = PARALLEL_BEGIN

        def run() -> bool:
            self.debugger.select_thread(self.world.threads[1])
            self.assertFalse(self.debugger.active()[-1].hit())
            self.debugger.select_thread(self.world.threads[0])
            return self.debugger.active()[-1].hit()

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "the frame\n")

    def test_step_ends_in_the_body(self) -> None:
        self.begin_at(0x1000)
        seen = []

        def run() -> bool:
            seen.append([made.address for made in self.debugger.active()])
            return self.debugger.active()[-1].hit()

        self.debugger.running = run
        self.assertEqual(self.world.run("step"), "the frame\n")
        self.assertEqual(seen, [[0x9000], [0x1000]])
        self.assertEqual(self.debugger.active(), [])

    def test_step_into_a_body_that_is_not_known_ends_where_it_begins(self) -> None:
        self.world.library.codes["ompdx_get_parallel_function"] = 1
        self.debugger.running = self.hit
        text = "The runtime does not tell which function is the body: the process is where it begins.\nthe frame\n"
        self.assertEqual(self.world.run("step"), text)
        self.assertEqual(self.debugger.active(), [])

    def test_catch_deadlock_wants_the_same_verdict_twice(self) -> None:
        report = self.world.library.report
        report["verdicts"] = [{"verdict": "deadlock", "situation": "circle", "threads": [101]}]
        frames = [{"address": "0x1"}]
        report["stacks"] = [{"lwp": 101, "frames": frames}]
        looks = []

        def run() -> Stopped:
            looks.append(frames[0]["address"])
            frames[0]["address"] = f"{min(len(looks) + 1, 3):#x}"
            self.world.inferior.stops += 1
            return Stopped.TIME

        self.debugger.running_for = run
        self.assertEqual(self.world.run("catch deadlock 0.01"), "view waits\n\nmore\n")
        # As long as the thread moves, the verdict is another one.
        self.assertEqual(looks, ["0x1", "0x2", "0x3"])

    def test_catch_deadlock_looks_once_a_second_or_as_often_as_wanted(self) -> None:
        for text, seconds in (("", 1.0), (" 0.01", 0.01), (" 86400", 86400.0), (" -limit 3 2.5", 2.5)):
            self.debugger.seconds.clear()
            self.debugger.running_for = lambda: Stopped.OTHER
            self.world.run(f"catch deadlock{text}")
            self.assertEqual(self.debugger.seconds, [seconds])

    def test_catch_deadlock_lets_a_process_run_that_only_waits_or_has_no_runtime_yet(self) -> None:
        report = self.world.library.report
        report["verdicts"] = [{"verdict": "waiting", "situation": "outside", "threads": [101]}]
        stops = [Stopped.TIME] * 3 + [Stopped.ENDED]
        self.debugger.running_for = lambda: stops.pop(0)
        self.assertEqual((self.world.run("catch deadlock"), stops), ("", []))
        self.world.library.codes["ompd_process_initialize"] = 7
        self.world.plugin.replaced(self.world.inferior)
        stops = [Stopped.TIME] * 3 + [Stopped.ENDED]
        self.assertEqual((self.world.run("catch deadlock"), stops), ("", []))

    def test_catch_deadlock_wants_a_process_that_runs(self) -> None:
        self.debugger.thread = None
        with self.assertRaisesRegex(NotNow, "^No thread is selected"):
            self.world.run("catch deadlock")

    def test_catch_deadlock_ends_when_something_else_stops_the_process(self) -> None:
        stops = [Stopped.TIME, Stopped.OTHER, Stopped.ENDED]
        self.debugger.running_for = lambda: stops.pop(0)
        self.assertEqual(self.world.run("catch deadlock"), "")
        self.assertEqual(self.world.run("catch deadlock"), "")
        self.assertEqual(stops, [])

    def test_catch_deadlock_ends_at_the_limit(self) -> None:
        looks = []

        def run() -> Stopped:
            looks.append(1)
            return Stopped.TIME

        self.debugger.running_for = run
        text = self.world.run("catch deadlock -limit 2 0.5")
        self.assertEqual((text, len(looks)), ("No deadlock was found in 2 seconds. The process is stopped.\n", 4))


class Stepping(unittest.TestCase):
    def setUp(self) -> None:
        self.debugger = World().debugger
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10), Function(0x2000, 0x2040, "a.c", 11)]
        self.debugger.lines = [(0x1000, 10, "a.c"), (0x1010, 10, "a.c"), (0x2000, 11, "a.c"), (0x2008, 0, "a.c"), (0x2010, 12, "a.c")]
        self.debugger.targets = [0x2000]

    def test_the_body_begins_behind_what_loads_shared_variables(self) -> None:
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        self.debugger.lines = [(0x1000, 10, "a.c"), (0x1008, 10, "a.c"), (0x1010, 12, "a.c")]
        self.debugger.targets = []
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1010)
        # What is behind a jump may not be executed.
        self.debugger.jumps = [0x100C, 0x1014]
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x100C)
        # Code that has another line behind the prologue has loaded them.
        self.debugger.lines[1] = (0x1008, 11, "a.c")
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1008)

    def test_a_function_that_only_calls_another_leads_to_that(self) -> None:
        self.assertEqual(body_of(self.debugger, 0x1000), 0x2000)

    def test_a_function_with_a_body_of_its_own_is_the_body(self) -> None:
        cases: list[list[int | None]] = [[], [0x2000, 0x2000], [0x2000, None], [None], [0x2004], [0x9999]]
        for targets in cases:
            self.debugger.targets = targets
            self.assertEqual(body_of(self.debugger, 0x1000), 0x1000, targets)

    def test_a_function_with_more_lines_is_the_body(self) -> None:
        self.debugger.lines.append((0x1020, 13, "a.c"))
        self.assertEqual(body_of(self.debugger, 0x1000), 0x1000)

    def test_what_is_called_must_stand_in_the_same_file_close_by(self) -> None:
        for file, line in (("b.c", 11), ("a.c", 20)):
            self.debugger.functions[1] = Function(0x2000, 0x2040, file, line)
            self.assertEqual(body_of(self.debugger, 0x1000), 0x1000)

    def test_lines_without_a_number_are_no_lines(self) -> None:
        self.debugger.lines.append((0x1004, 0, "a.c"))
        self.assertEqual(body_of(self.debugger, 0x1000), 0x2000)
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        self.debugger.targets = []
        self.debugger.lines = [(0x1000, 10, "a.c"), (0x1004, 0, "a.c"), (0x1008, 10, "a.c"), (0x100C, 0, "a.c"), (0x1010, 12, "a.c")]
        self.debugger.lines.append((0x1018, 13, "a.c"))
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1010)

    def test_a_body_on_the_line_of_its_construct_ends_at_the_end_of_the_function(self) -> None:
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        self.debugger.targets = []
        self.debugger.lines = [(0x1000, 10, "a.c"), (0x1008, 10, "a.c")]
        self.debugger.jumps = [0x1004, 0x1030, 0x1050]
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1030)

    def test_a_body_without_debug_information_begins_with_its_function(self) -> None:
        self.assertEqual(begin_of_body(self.debugger, 0x5000), 0x5000)
        # A line without a function, and a function without lines.
        self.debugger.lines.append((0x5000, 20, "a.c"))
        self.assertEqual(begin_of_body(self.debugger, 0x5000), 0x5000)
        self.debugger.lines = []
        self.debugger.targets = []
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1000)

    def test_a_construct_in_a_macro_has_its_lines_in_another_file(self) -> None:
        self.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        self.debugger.targets = []
        self.debugger.lines = [(0x1000, 10, "b.h"), (0x1008, 10, "b.h"), (0x1010, 12, "b.h")]
        self.assertEqual(behind_prologue(self.debugger, 0x1000), 0x1008)
        self.assertEqual(begin_of_body(self.debugger, 0x1000), 0x1010)

    def test_behind_the_prologue_is_the_second_line(self) -> None:
        self.assertEqual(behind_prologue(self.debugger, 0x2000), 0x2010)

    def test_without_lines_or_debug_information_it_is_the_function(self) -> None:
        self.assertEqual(behind_prologue(self.debugger, 0x3000), 0x3000)
        self.assertEqual(body_of(self.debugger, 0x3000), 0x3000)
        self.debugger.lines = []
        self.assertEqual(behind_prologue(self.debugger, 0x2000), 0x2000)


class Taskframes(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.library = self.world.library
        #: Generating tasks that are left.
        self.left = 2
        self.library.answers["ompd_get_generating_task_handle"] = self.generating

    def generating(self, _task: object, _out: object) -> None:
        if not self.left:
            raise OmpdError("ompd_get_generating_task_handle", 1)
        self.left -= 1

    @staticmethod
    def frames(_task: object, leave: Any, enter: Any) -> None:
        leave._obj.frame_address.address, enter._obj.frame_address.address = 0x7FFC_0000_1230, 0x7FFC_0000_1000

    @staticmethod
    def function(_task: object, address: Any) -> None:
        address._obj.address = 0x1010

    def test_tasks_are_followed_until_one_has_no_generating_task(self) -> None:
        self.library.codes["ompd_get_task_function"] = 1
        text = self.world.run("taskframes")
        self.assertEqual(text, f"{'task':24} {'enter':18} exit\n" + f"{'function not known':24} {'-':18} -\n" * 3)
        self.assertEqual(self.library.asked("ompd_get_curr_task_handle"), 1)
        self.assertEqual(self.library.asked("ompd_rel_task_handle"), 3)

    def test_a_task_has_its_function_and_both_frames(self) -> None:
        self.left = 0
        self.library.answers.update({"ompd_get_task_frame": self.frames, "ompd_get_task_function": self.function})
        self.assertEqual(self.world.run("taskframes").splitlines()[1], f"{'0x1010':24} {'0x7ffc00001000':18} 0x7ffc00001230")
        self.world.debugger.functions = [Function(0x1000, 0x1040, "a.c", 10)]
        [task] = json.loads(self.world.run("taskframes -json"))
        self.assertEqual(task, {"task": "function_1000", "enter": "0x7ffc00001000", "exit": "0x7ffc00001230"})

    def test_a_long_name_leaves_the_frames_in_their_columns(self) -> None:
        self.left = 0
        self.library.answers.update({"ompd_get_task_frame": self.frames, "ompd_get_task_function": self.function})
        with mock.patch.object(Debugger, "symbol_at", return_value="n" * 30):
            self.assertEqual(self.world.run("taskframes").splitlines()[1], "n" * 24 + f" {'0x7ffc00001000':18} 0x7ffc00001230")

    def test_frames_that_are_not_known_are_absent(self) -> None:
        self.left = 0
        self.library.codes["ompd_get_task_frame"] = 1
        [task] = json.loads(self.world.run("taskframes -json"))
        self.assertEqual(task, {"task": "0x0", "enter": None, "exit": None})

    def test_a_failure_on_the_way_is_raised_and_all_handles_are_given_back(self) -> None:
        self.library.codes["ompd_get_generating_task_handle"] = 4
        with self.assertRaisesRegex(OmpdError, "^ompd_get_generating_task_handle: failed$"):
            self.world.run("taskframes")
        for kind in ("task", "thread"):
            self.assertEqual(self.library.asked(f"ompd_rel_{kind}_handle"), 1)


if __name__ == "__main__":
    unittest.main()
