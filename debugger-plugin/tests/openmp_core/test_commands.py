"""Arguments, help and completion of commands, and what the views ask the library for."""

from __future__ import annotations

import json
import unittest
from unittest import mock

from fake import Debugger, Inferior, World, fact, member, refusing, runtime
from openmp_core import Plugin
from openmp_core.command import Command
from openmp_core.errors import CommandError, DebuggerError, NoLibrary, NotNow, OmpdError, message
from openmp_core.variables import Print

COMMANDS = {
    "of what is": "status threads teams parallel tasks waits loops icvs stacks doctor history init why",
    "of threads": "thread apply taskframes print bt",
    "of what runs": "break delete disable enable condition commands save load step finish until catch",
}


class Applying(unittest.TestCase):
    def test_a_thread_that_has_ended_meanwhile_is_left_out(self) -> None:
        world = World()
        world.inferior.all_threads = list(world.threads)
        execute = world.debugger.execute

        def run(command: str, from_tty: bool) -> None:
            execute(command, from_tty)
            del world.inferior.all_threads[1:]
            world.inferior.stops += 1

        with mock.patch.object(world.debugger, "execute", run):
            text = world.run("apply 0 finish")
        self.assertEqual(text.count("executed finish"), 1)
        self.assertIn("\nLWP 102 has ended.\n", text)

    def test_a_thread_whose_region_has_ended_meanwhile_is_in_no_team(self) -> None:
        world = World()

        def run(_command: str, _from_tty: bool) -> None:
            world.library.report["runtimes"] = [runtime([101, 103, 104])]
            world.inferior.stops += 1

        with mock.patch.object(world.debugger, "execute", run):
            text = world.run("apply 0.0-1 next")
        self.assertEqual(text, "\nThread 1 (LWP 101), thread 0 of team 0:\n\nThread 2 (LWP 102), in no team now:\n")


class Running(unittest.TestCase):
    def test_while_others_run_a_thread_is_shown_by_itself(self) -> None:
        world = World()
        world.threads[1].running = True
        world.library.icvs = dict.fromkeys(range(64), 2)
        text = world.run("thread")
        self.assertTrue(text.startswith("Thread 1 (LWP 101)\n  "), text)
        self.assertTrue(text.endswith("  what it waits for: unknown, since other threads are running\n"), text)
        self.assertNotIn("ompdx_report_json", world.library.calls)
        with mock.patch("openmp_core.threads.MOST_TASKS", 3):
            self.assertEqual(len(world.run("taskframes").splitlines()), 4)
        world.threads[0].running = True
        for command in ("thread", "taskframes"):
            with self.subTest(command), self.assertRaisesRegex(NotNow, "^Thread 1 is running: stop it first"):
                world.run(command)


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()

    def test_all_commands_are_there_with_help_and_usage(self) -> None:
        commands = self.world.plugin.commands
        self.assertEqual(sorted(command.name for command in commands), sorted(" ".join(COMMANDS.values()).split()))
        for command in commands:
            with self.subTest(command.name):
                self.assertIn(f"openmp {command.name}", command.usage())
                self.assertIn(command.usage(), command.help())
                self.assertNotIn("{", command.help())

    def test_examples_in_help_are_those_of_the_debugger(self) -> None:
        helps = {command.name: command.help() for command in self.world.plugin.commands}
        self.assertIn("openmp apply 2 top 3  ", helps["apply"])
        self.assertIn("openmp apply 2.0-3,6 variables  ", helps["apply"])
        self.assertIn("where\n    level() and its like can be used", helps["break"])

    def test_help_has_the_name_of_the_debugger(self) -> None:
        helps = {command.name: command.help() for command in self.world.plugin.commands}
        self.assertIn("fake's number of the thread", helps["threads"])
        self.assertIn("fake's own backtraces", helps["bt"])
        self.assertIn("children that fake follows", helps["break"])

    def test_refused(self) -> None:
        cases = {
            "threads -x": "Unknown option -x. Usage: openmp threads [-v] [-json]",
            "threads now": "Unexpected: now. Usage: openmp threads",
            "stacks -tree -all": "One of -all, -tree at a time",
            "thread 0.1 0.2": "One thread is wanted",
            "thread nonsense": "nonsense is no thread",
            "thread 7": "There is no thread with the kernel id 7",
            "thread 0.9": "Team 0 has 4 threads: 0 to 3.",
            "thread 9.0": "There is no team 9 now",
            "apply -hold": "A team and a command are wanted",
            "apply -all 0 bt": "Unknown option -all",
            "commands 1-2 bt": "The number of one stop is wanted",
            "apply 0": "A team and a command are wanted",
            "apply x bt": "x is no team, nor members of one",
            "break nonsense": "nonsense is no event",
            "break task-begin when x": "Behind the event comes `if` and a condition",
            "break task-begin if": "Behind the event comes `if` and a condition",
            "history -last": "Behind -last comes a number, from 1 on. Usage: openmp history",
            "history -last 0": "Behind -last comes a number",
            "history 5": "Unexpected: 5. Usage: openmp history",
            "delete 7": "There is no stop 7",
            "until dawn": "dawn is no line",
            "catch deadlock never": "Usage: openmp catch deadlock [-limit LIMIT] [SECONDS]",
            "catch deadlock 0": "Usage: openmp catch deadlock [-limit LIMIT] [SECONDS]",
            "print -all": "An expression is wanted",
            "print -team 0": "An expression is wanted",
            "bt off continued": "Usage: openmp bt",
        }
        for line, expected in cases.items():
            with self.subTest(line), self.assertRaises(CommandError) as raised:
                self.world.run(line)
            self.assertIn(expected, str(raised.exception))

    def test_completion(self) -> None:
        commands = {command.name: command for command in self.world.plugin.commands}
        cases: list[tuple[str, str, list[str]]] = [
            ("stacks", "", ["-v", "-json", "-all", "-tree", "-dot", "-folded", "-svg"]),
            ("stacks", "-tree -", ["-v", "-json", "-all", "-dot", "-folded", "-svg"]),
            ("stacks", "-j", ["-json"]),
            ("break", "task", ["task-begin", "task-end", "taskwait-begin"]),
            ("bt", "on c", ["continued"]),
            ("until", "", ["barrier", "-hold"]),
            ("thread", "0.", ["0.0", "0.1", "0.2", "0.3"]),
            ("thread", "0.2 ", []),
        ]
        for name, text, expected in cases:
            with self.subTest(f"{name} {text}"):
                self.assertEqual(commands[name].complete(text), expected)

    def test_threads_are_completed_with_their_runtime_where_several_have_teams(self) -> None:
        self.world.library.report["runtimes"] = [runtime([101]), runtime([102, 103])]
        thread = next(command for command in self.world.plugin.commands if command.name == "thread")
        self.assertEqual(thread.complete(""), ["0:0.0", "1:0.0", "1:0.1"])

    def test_where_the_debugger_refuses_nothing_is_completed(self) -> None:
        thread = next(command for command in self.world.plugin.commands if command.name == "thread")
        with refusing(Inferior, "threads"):
            self.assertEqual(thread.complete(""), [])

    def test_options_of_print_stand_before_or_behind(self) -> None:
        parse = Print(self.world.session).parse
        self.assertEqual(parse("x + 1"), ("x + 1", set(), None))
        self.assertEqual(parse("-all -json a -> b"), ("a -> b", {"-all", "-json"}, None))
        self.assertEqual(parse("a[1] -all -json"), ("a[1]", {"-all", "-json"}, None))
        self.assertEqual(parse("-team 1.0-2 x"), ("x", {"-team"}, "1.0-2"))
        # What is no option is the expression.
        self.assertEqual(parse("-x"), ("-x", set(), None))

    def test_a_command_must_do_something(self) -> None:
        with self.assertRaises(NotImplementedError):
            Command(self.world.session).run("", False)


class Views(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()

    def test_each_view_asks_for_its_own(self) -> None:
        cases = {
            "status": "summary",
            "status -v": "summary",
            "threads": "threads",
            "parallel": "teams",
            "tasks -tree": "tasks --tree",
            "stacks -folded": "stacks --folded",
            "why": "why 101",
            "why 0.2": "why 103",
            "why 104": "why 104",
            "bt 0.3": "stack 104",
        }
        for line, view in cases.items():
            with self.subTest(line):
                self.assertEqual(self.world.run(line), f"view {view}\n\nmore\n")

    def test_json_has_the_part_and_the_debuggers_numbers(self) -> None:
        found = json.loads(self.world.run("threads -json"))
        self.assertEqual(found["fake_threads"], {"101": "1", "102": "2", "103": "3", "104": "4"})
        self.assertEqual(found["schema"], 1)
        self.assertEqual(set(found["runtimes"][0]), {"family", "product", "path", "base", "threads"})

    def test_waits_are_those_of_threads_that_wait(self) -> None:
        threads = [member(101, 0, 0, {"kind": "lock"}), member(102, 0, 1)]
        self.world.library.report["runtimes"][0]["threads"] = threads
        [found] = json.loads(self.world.run("waits -json"))["runtimes"]
        self.assertEqual(found["waits"], [{"lwp": 101, "team": fact(0), "thread_num": fact(0), "wait": fact({"kind": "lock"})}])

    def test_why_as_json_has_the_verdicts_of_the_thread(self) -> None:
        verdict = {"verdict": "deadlock", "situation": "circle", "threads": [102], "held_up": [104]}
        self.world.library.report["verdicts"] = [verdict]
        for thread, expected in (("102", [verdict]), ("104", [verdict]), ("101", [])):
            self.assertEqual(json.loads(self.world.run(f"why -json {thread}"))["verdicts"], expected)

    def test_doctor_names_debugger_and_library(self) -> None:
        text = self.world.run("doctor")
        self.assertIn("fake 1, libompd 2024.11 from /fake/libompd.so\nAsked of fake so far: ", text)
        self.assertEqual(json.loads(self.world.run("doctor -json"))["fake"], "1")

    def test_thread_selects_and_tells_the_first_paragraph(self) -> None:
        self.assertEqual(self.world.run("thread 0.2"), "the frame\nview why 103\n")
        self.assertIs(self.world.debugger.thread, self.world.threads[2])
        self.assertEqual(self.world.run("thread"), "view why 103\n")

    def test_apply_goes_back_to_the_selected_thread(self) -> None:
        text = self.world.run("apply 0.1-2 info locals")
        self.assertEqual(
            text,
            "\nThread 2 (LWP 102), thread 1 of team 0:\nexecuted info locals in 2\n"
            "\nThread 3 (LWP 103), thread 2 of team 0:\nexecuted info locals in 3\n",
        )
        self.assertIs(self.world.debugger.thread, self.world.threads[0])


class Failures(unittest.TestCase):
    def test_each_is_a_sentence(self) -> None:
        self.assertEqual(message(OmpdError("ompd_f", 3)), "ompd_f: wrong argument.")
        self.assertEqual(message(OmpdError("ompd_f", 99)), "ompd_f: error 99.")
        self.assertEqual(message(OmpdError("ompd_f", 12, "gdb")), "ompd_f: gdb did not answer.")
        self.assertEqual(message(NotNow("Not now.")), "Not now.")
        self.assertEqual(message(NoLibrary("None.")), "None.")
        self.assertEqual(message(DebuggerError("No symbol table")), "No symbol table")

    def test_without_a_process_it_is_said_how_to_begin(self) -> None:
        world = World()
        world.inferior.end()
        world.debugger.thread = None
        with self.assertRaisesRegex(NotNow, "^There is no process: begin with one.$"):
            world.run("status")
        with self.assertRaisesRegex(NotNow, "^No thread is selected: begin with one.$"):
            world.run("why")

    def test_of_threads_that_run_nothing_is_told(self) -> None:
        world = World()
        world.threads[1].running = world.threads[2].running = True
        with self.assertRaisesRegex(NotNow, r"^2 threads are running: stop the process first \(`halt`\).$"):
            world.run("threads")

    def test_in_a_core_file_nothing_runs(self) -> None:
        world = World()
        world.inferior.core = True
        for line in ("step", "until barrier", "catch deadlock", "break task-begin"):
            with self.subTest(line), self.assertRaisesRegex(NotNow, "core file"):
                world.run(line)

    def test_without_the_library_it_is_said_how_to_choose_one(self) -> None:
        plugin = Plugin(Debugger(Inferior()))
        plugin.session.choice.path = "/nowhere/libompd.so"
        with self.assertRaisesRegex(NoLibrary, "Tried:\n  /nowhere/libompd.so\nBuild it .*`choose PATH`"):
            plugin.commands[0].run("", False)


if __name__ == "__main__":
    unittest.main()
