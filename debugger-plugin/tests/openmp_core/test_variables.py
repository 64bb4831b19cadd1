"""Where a variable is looked for, and in which threads; what functions and names say of threads."""

from __future__ import annotations

import json
import unittest
from typing import Any
from unittest import mock

from fake import Debugger, Frame, Inferior, Thread, World, refusing, runtime, stack
from openmp_core import functions
from openmp_core.errors import CommandError, DebuggerError, NoSuchName, NotNow

WAIT, BODY, MAIN, CALLED = 0x9000, 0x1200, 0x1300, 0x1100


class Variables(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        threads = self.world.threads
        threads[0].frames = stack(Frame(WAIT, "futex"), Frame(BODY, "body", i="0"), Frame(MAIN, "main", total="7", lost="9"))
        for n in (1, 2, 3):
            threads[n].frames = stack(Frame(WAIT, "futex", i="wrong"), Frame(BODY, "body", i=str(n), lost=None))
        self.world.library.report["stacks"] = [
            {"lwp": 100 + n, "frames": [{"lwp": lwp, "address": f"{at:#x}"} for lwp, at in ((100 + n, BODY), (101, MAIN))]}
            for n in range(1, 5)
        ]
        self.world.debugger.select_thread(threads[1])

    def test_in_the_selected_frame_it_is_what_the_user_sees(self) -> None:
        self.assertEqual(self.world.run("print i"), "wrong\n")

    def test_in_other_threads_only_the_programs_frames_count(self) -> None:
        rows = json.loads(self.world.run("print -all -json i"))
        self.assertEqual([row["value"] for row in rows], ["0", "wrong", "2", "3"])
        self.assertEqual([(row["team"], row["thread_num"]) for row in rows], [(0, n) for n in range(4)])

    def test_shared_variables_are_those_of_the_thread_that_opened_the_region(self) -> None:
        self.assertEqual(self.world.run("print total"), "7    (in Thread 1, main)\n")
        text = self.world.run("print -team 0.2-3 total")
        self.assertEqual(text, "0.2-3  7    (in Thread 1, main)\n")
        text = self.world.run("print -each -team 0.2-3 total")
        self.assertEqual(text, "0.2      Thread 3      7    (in Thread 1, main)\n0.3      Thread 4      7    (in Thread 1, main)\n")

    def test_members_with_the_same_value_share_a_line(self) -> None:
        frames = [thread.frames for thread in self.world.threads]
        frames[0][1].variables["state"] = "17"
        frames[1][1].variables["state"] = "{\n  a = 1\n}"
        frames[2][1].variables["state"] = "17"
        frames[3][1].variables["state"] = None
        expected = "0.0,2  17\n0.1    {\n         a = 1\n       }\n0.3    unknown: state is optimized out\n"
        self.assertEqual(self.world.run("print -all state"), expected)
        self.assertEqual(self.world.run("print state -all"), expected)
        lines = self.world.run("print -each state").splitlines()
        self.assertEqual([lines[0], lines[-1]], ["0.0      Thread 1      17", "0.3      Thread 4      unknown: state is optimized out"])

    def test_a_long_list_of_members_moves_the_value_and_no_other(self) -> None:
        numbers = range(0, 40, 2)
        members: list[int | None] = [101 + n % 4 for n in range(41)]
        self.world.library.report["runtimes"] = [runtime(members)]
        team = "0." + ",".join(str(n) for n in numbers)
        with mock.patch("openmp_core.variables.evaluate", side_effect=[("1", "", "")] * 19 + [("2", "", "")]):
            long, short = self.world.run(f"print -team {team} x").splitlines()
        self.assertEqual(long, f"{team.rpartition(',')[0]}  1")
        self.assertEqual(short, f"{'0.38':24}  2")

    def test_the_line_names_the_team_that_was_asked_about(self) -> None:
        """A member of an outer team may be in a team of its own."""
        self.world.library.report["runtimes"] = [runtime([101, 102], [102, 103])]
        self.assertEqual(self.world.run("print -team 0.1 i"), "0.1  wrong\n")

    def test_of_several_runtimes_the_line_names_one(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101]), runtime([102, 103, 104])]
        self.assertEqual(self.world.run("print -all total"), "1:0.0-2  7    (in Thread 1, main)\n")

    def test_a_member_that_the_process_does_not_have_is_shown(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101, 102, None, 999])]
        expected = "0.0-1  7\n0.2-3  unknown: the thread was not found in the process\n"
        self.world.threads[1].frames[1].variables["total"] = self.world.threads[0].frames[1].variables["total"] = "7"
        self.assertEqual(self.world.run("print -all total"), expected)
        rows = json.loads(self.world.run("print -all -json total"))
        self.assertEqual([row["thread"] for row in rows], ["1", "2", None, None])

    def test_what_has_no_value_here_is_looked_for_there(self) -> None:
        self.assertEqual(self.world.run("print lost"), "9    (in Thread 1, main; lost is optimized out here)\n")

    def test_what_was_lost_here_and_lies_further_out_is_marked(self) -> None:
        """It may be what a private variable was made from."""
        frames = self.world.threads[0].frames
        frames[1].variables["lost"] = None
        self.world.debugger.select_thread(self.world.threads[0])
        self.assertEqual(self.world.run("print lost"), "9    (in main; lost is optimized out here)\n")

    def test_in_other_members_the_selected_function_counts(self) -> None:
        """A function that the body calls may know another variable of the name."""
        self.world.threads[2].frames = stack(Frame(WAIT, "futex"), Frame(CALLED, "called", i="global"), Frame(BODY, "body", i="2"))
        self.world.library.report["stacks"][2]["frames"].insert(0, {"lwp": 103, "address": f"{CALLED:#x}"})
        self.world.debugger.select_frame(self.world.threads[1].frames[1])
        rows = json.loads(self.world.run("print -all -json i"))
        self.assertEqual([row["value"] for row in rows], ["0", "1", "2", "3"])
        # No other member is in the selected function.
        self.world.debugger.select_frame(self.world.threads[1].frames[0])
        rows = json.loads(self.world.run("print -all -json i"))
        self.assertEqual([row["value"] for row in rows], ["0", "wrong", "global", "3"])

    def test_optimized_out_says_more_than_no_symbol(self) -> None:
        del self.world.threads[0].frames[2].variables["lost"]
        with self.assertRaisesRegex(CommandError, "^lost is optimized out$"):
            self.world.run("print lost")
        with self.assertRaisesRegex(CommandError, '^No symbol "nowhere"'):
            self.world.run("print nowhere")
        self.assertIn('unknown: No symbol "nowhere"', self.world.run("print -team 0.3 nowhere"))

    def test_a_value_that_cannot_be_printed_is_not_looked_for_in_outer_frames(self) -> None:
        own, main = self.world.threads[1].frames[1], self.world.threads[0].frames[2]
        own.variables["lost"] = DebuggerError("no memory to print it")
        with self.assertRaisesRegex(DebuggerError, "^no memory to print it$"):
            self.world.run("print lost")
        # Nor in another call of the thread that opened the region.
        main.variables["total"] = DebuggerError("no memory to print it")
        with self.assertRaisesRegex(DebuggerError, "^no memory to print it$"):
            self.world.run("print total")

    def test_recursion_leaves_open_which_call_is_meant(self) -> None:
        main = self.world.threads[0].frames[2]
        main.caller = Frame(MAIN, "main", total="8")
        with self.assertRaisesRegex(CommandError, "which of 2 calls in Thread 1, main has opened the region is not known"):
            self.world.run("print total")
        [row] = json.loads(self.world.run("print -json total"))
        self.assertEqual((row["value"], row["where"]), (None, None))
        # What is inlined into the call is not another one.
        main.caller = Frame(MAIN, "main", inline=True)
        self.assertEqual(self.world.run("print total"), "7    (in Thread 1, main)\n")

    def test_a_reason_is_that_of_the_innermost_frame(self) -> None:
        own = self.world.threads[1].frames[1].variables
        own["lost"] = None
        own_outer = Frame(MAIN, "outer", lost=DebuggerError("outer"))
        self.world.threads[1].frames[1].caller = own_outer
        self.world.library.report["stacks"][1]["frames"] = [{"lwp": 102, "address": hex(at)} for at in (BODY, MAIN)]
        own_outer.variables["lost"] = None
        own_outer.variables["late"] = None
        with self.assertRaisesRegex(CommandError, "^lost is optimized out$"):
            self.world.run("print lost")
        with self.assertRaisesRegex(CommandError, "^late is optimized out$"):
            self.world.run("print late")
        with self.assertRaisesRegex(CommandError, '^No symbol "nowhere" in current context.$'):
            self.world.run("print nowhere")

    def test_a_name_that_is_absent_says_less_than_any_other_reason(self) -> None:
        absent, refused = NoSuchName, DebuggerError
        cases: list[tuple[list[DebuggerError], str]] = [
            ([absent("first"), absent("second")], "first"),
            ([absent("first"), refused("second"), refused("third")], "second"),
            ([refused("first"), refused("second")], "first"),
            ([refused("first"), absent("second")], "first"),
        ]
        for failures, expected in cases:
            frames = stack(*(Frame(BODY + n) for n in range(len(failures))))
            self.world.threads[1].frames = frames
            self.world.library.report["stacks"][1]["frames"] = [{"lwp": 102, "address": hex(frame.pc)} for frame in frames]
            self.world.inferior.stops += 1
            self.world.debugger.select_thread(self.world.threads[1])
            with mock.patch.object(Frame, "evaluate", side_effect=failures), self.assertRaisesRegex(CommandError, f"^{expected}$"):
                self.world.run("print x")

    def test_the_selected_frame_has_the_reason_if_no_frame_of_the_program_is_known(self) -> None:
        self.world.library.report["stacks"] = []
        self.assertEqual(self.world.run("print i"), "wrong\n")
        with self.assertRaisesRegex(CommandError, '^No symbol "nowhere"'):
            self.world.run("print nowhere")

    def test_a_frame_at_the_address_of_one_of_the_opener_is_not_meant(self) -> None:
        self.world.threads[1].frames[1].caller = Frame(MAIN, "start", total="wrong")
        self.assertEqual(self.world.run("print total"), "7    (in Thread 1, main)\n")

    def test_without_a_selected_thread_members_have_their_values(self) -> None:
        self.world.debugger.thread = None
        self.assertEqual(self.world.run("print -team 0.3 i"), "0.3  3\n")

    def test_without_a_frame_of_the_program_a_value_is_looked_for_in_the_opener_alone(self) -> None:
        self.world.library.report["stacks"][2]["frames"] = [{"lwp": 101, "address": hex(MAIN)}, {"lwp": None}, {"lwp": 101}]
        self.world.library.report["stacks"].pop()
        text = self.world.run("print -each -team 0.2-3 total")
        self.assertEqual(
            text, "0.2      Thread 3      7    (in Thread 1, main)\n0.3      Thread 4      unknown: no frame of the program is known\n"
        )
        # The frame of the runtime has the name, but the user has not chosen it.
        self.assertEqual(self.world.run("print -team 0.3 i"), "0.3  unknown: no frame of the program is known\n")

    def test_of_a_frame_without_a_name_only_the_thread_is_told(self) -> None:
        self.world.threads[0].frames[2]._name = None
        self.assertEqual(self.world.run("print total"), "7    (in Thread 1, ??)\n")

    def test_a_frame_of_the_opener_that_is_not_on_its_stack_any_more_has_no_value(self) -> None:
        self.world.threads[0].frames[1].caller = None
        with self.assertRaisesRegex(CommandError, '^No symbol "total"'):
            self.world.run("print total")

    def test_json_has_where_a_value_is_from_or_why_it_is_unknown(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101, 102, None])]
        self.world.threads[1].frames[1].variables["total"] = None
        del self.world.threads[0].frames[2].variables["total"]
        self.world.threads[0].frames[1].variables["total"] = "5"
        common = {"team": 0, "where": None}
        self.assertEqual(
            json.loads(self.world.run("print -all -json total")),
            [
                {**common, "thread": "1", "lwp": 101, "thread_num": 0, "value": "5", "unknown": None},
                {**common, "thread": "2", "lwp": 102, "thread_num": 1, "value": None, "unknown": "total is optimized out"},
                {
                    **common,
                    "thread": None,
                    "lwp": None,
                    "thread_num": 2,
                    "value": None,
                    "unknown": "the thread was not found in the process",
                },
            ],
        )
        self.world.threads[0].frames[2].variables["total"] = "7"
        del self.world.threads[1].frames[1].variables["total"]
        [row] = json.loads(self.world.run("print -json total"))
        self.assertEqual((row["value"], row["where"], row["unknown"]), ("7", "in Thread 1, main", None))

    def test_each_member_that_is_not_found_has_a_line(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101, None])]
        self.world.threads[0].frames[1].variables["i"] = "3"
        lines = self.world.run("print -each -team 0 i").splitlines()
        self.assertEqual(lines, ["0.0      Thread 1      3", "0.1      Thread -      unknown: the thread was not found in the process"])

    def test_a_thread_in_no_team_has_the_value_of_its_own(self) -> None:
        self.world.library.report["runtimes"] = []
        self.assertEqual(self.world.run("print i"), "wrong\n")
        [row] = json.loads(self.world.run("print -json i"))
        self.assertEqual((row["team"], row["thread_num"], row["value"]), (None, None, "wrong"))

    def test_the_selection_stays(self) -> None:
        debugger = self.world.debugger
        before = debugger.thread, debugger.frame
        self.world.run("print -all total")
        self.assertEqual((debugger.thread, debugger.frame), before)

    def test_a_thread_in_no_team_has_no_members(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101]), runtime([103])]
        self.assertEqual(self.world.run("print i"), "wrong\n")
        with self.assertRaisesRegex(CommandError, r"^The selected thread is in no team \(`openmp threads` lists those that are\).$"):
            self.world.run("print -all i")

    def test_a_thread_without_frames_is_the_debuggers_to_explain(self) -> None:
        self.world.debugger.frame = None
        with self.assertRaisesRegex(DebuggerError, "No frame selected"):
            self.world.run("print i")


class Functions(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.world.library.icvs = {1: 3, 2: 4, 3: 1}

    def answer(self, name: str) -> int:
        return functions.answer(self.world.session, name)

    def test_they_ask_about_the_selected_thread(self) -> None:
        self.assertEqual([self.answer(f"_omp_{name}") for name in ("thread_num", "num_threads", "level")], [3, 4, 1])
        self.assertEqual(self.world.library.asked("ompdx_report_json"), 0)

    def test_each_asks_about_the_region_or_the_task(self) -> None:
        def find(_handle: object, out: Any) -> None:
            out._obj.address = 0x7000

        self.world.library.answers["ompdx_get_descriptor"] = find
        cases = {
            "thread_num": ("task", 3),
            "num_threads": ("parallel", 4),
            "level": ("task", 1),
            "task_id": ("task", 0x7000),
            "team": ("parallel", 0x7000),
        }
        for name, (kind, expected) in cases.items():
            with self.subTest(name):
                self.world.library.calls.clear()
                self.assertEqual(self.answer(f"_omp_{name}"), expected)
                handles = [call for call in self.world.library.calls if call.startswith("ompd_get_curr_")]
                self.assertEqual(handles, [f"ompd_get_curr_{kind}_handle"])
                self.assertEqual(self.world.library.asked(f"ompd_rel_{kind}_handle"), 1)

    def test_what_is_not_known_is_minus_one(self) -> None:
        self.world.library.codes["ompd_get_curr_task_handle"] = 1
        self.assertEqual(self.answer("_omp_level"), -1)
        self.world.debugger.thread = None
        self.assertEqual(self.answer("_omp_num_threads"), -1)

    def test_a_thread_at_a_breakpoint_has_run_since_the_last_stop(self) -> None:
        state = self.world.session.process().state
        self.answer("_omp_level")
        before = state.stop
        self.answer("_omp_level")
        self.assertEqual(state.stop, before)
        self.world.threads[0].running = True
        self.answer("_omp_level")
        self.assertGreater(state.stop, before)

    def test_numbers_of_a_team(self) -> None:
        self.assertEqual(functions.ids_of_team(self.world.session, "0.1-3"), "2 3 4")
        with self.assertRaises(NotNow):
            functions.ids_of_team(self.world.session, "5")


class Names(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.names = self.world.plugin.names

    def shown(self) -> list[str | None]:
        return [thread.name for thread in self.world.threads]

    def test_threads_are_named_by_place_and_unnamed_again(self) -> None:
        self.names.enable(True)
        self.assertEqual(self.shown(), [f"omp 0.{n} (4)" for n in range(4)])
        self.names.enable(False)
        self.assertEqual(self.shown(), [None] * 4)

    def test_they_are_named_anew_at_each_stop_and_not_between(self) -> None:
        self.names.enable(True)
        self.world.plugin.prompt()
        self.assertEqual(self.world.library.asked("ompdx_report_json"), 1)
        self.world.library.report["runtimes"][0]["threads"].pop()
        self.world.inferior.stops += 1
        self.world.plugin.prompt()
        self.assertEqual(self.shown(), [f"omp 0.{n} (4)" for n in range(3)] + [None])

    def test_names_are_off_until_they_are_wanted(self) -> None:
        self.world.plugin.prompt()
        self.assertEqual((self.shown(), self.world.library.calls), ([None] * 4, []))

    def test_names_that_are_wanted_again_are_given_at_the_same_stop(self) -> None:
        self.world.session.process().report()
        self.names.enable(True)
        self.world.threads[0].name = None
        self.world.plugin.prompt()
        self.assertIsNone(self.shown()[0])
        self.names.enable(True)
        self.assertEqual(self.shown(), [f"omp 0.{n} (4)" for n in range(4)])

    def test_a_name_is_taken_away_once(self) -> None:
        self.names.enable(True)
        self.names.enable(False)
        self.world.threads[0].name = "mine"
        self.world.plugin.prompt()
        self.assertEqual(self.shown()[0], "mine")

    def test_of_several_runtimes_with_teams_the_name_begins_with_the_number_of_one(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101]), runtime(), runtime([102, 999])]
        self.names.enable(True)
        self.assertEqual(self.shown(), ["omp 0:0.0 (1)", "omp 2:0.0 (2)", None, None])

    def test_a_thread_without_a_place_has_no_name_and_an_unknown_size_is_a_question_mark(self) -> None:
        found = runtime([101, 102, 103, 104])
        unknown = {"unknown": "no memory"}
        found["threads"][0]["team"] = found["threads"][1]["thread_num"] = found["teams"][0]["size"] = unknown
        del found["threads"][2]["lwp"]
        self.world.library.report["runtimes"] = [found]
        self.names.enable(True)
        self.assertEqual(self.shown(), [None, None, None, "omp 0.3 (?)"])

    def test_a_name_is_known_whatever_the_setting_and_read_once_a_stop(self) -> None:
        self.assertEqual([self.names.name_of(lwp) for lwp in (101, 103, 999)], ["omp 0.0 (4)", "omp 0.2 (4)", None])
        with mock.patch("openmp_core.names.names_of") as read:
            self.assertEqual(self.names.name_of(102), "omp 0.1 (4)")
        read.assert_not_called()
        self.world.library.report["runtimes"] = [runtime([102])]
        self.world.inferior.stops += 1
        self.assertEqual([self.names.name_of(lwp) for lwp in (101, 102)], [None, "omp 0.0 (1)"])
        self.assertEqual(self.shown(), [None] * 4)
        self.world.library.codes["ompd_process_initialize"] = 7
        self.world.plugin.replaced(self.world.inferior)
        self.assertIsNone(self.names.name_of(102))

    def test_the_users_names_stay(self) -> None:
        self.world.threads[1].name = "mine"
        self.world.threads[1].named_by_user = True
        self.names.enable(True)
        self.names.enable(False)
        self.assertEqual(self.shown(), [None, "mine", None, None])

    def test_what_the_debugger_refuses_leaves_the_prompt_alone(self) -> None:
        self.names.enable(True)
        for of, name in ((Inferior, "threads"), (Thread, "give_name"), (Thread, "take_name"), (Debugger, "selected_inferior")):
            self.world.inferior.stops += 1
            with self.subTest(name), refusing(of, name):
                self.world.plugin.prompt()

    def test_without_openmp_nothing_is_named(self) -> None:
        self.world.library.codes["ompd_process_initialize"] = 7
        self.names.enable(True)
        self.assertEqual(self.shown(), [None] * 4)


if __name__ == "__main__":
    unittest.main()
