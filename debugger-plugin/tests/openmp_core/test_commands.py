"""Arguments, help and completion of commands, and what the views ask the library for."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any
from unittest import mock

from fake import Debugger, Inferior, World, fact, member, refusing, runtime
from openmp_core import Plugin, ompd
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

    def test_with_hold_all_other_threads_stay_where_they_are(self) -> None:
        world = World()
        held: list[list[str]] = []
        with mock.patch.object(world.debugger, "execute", lambda _command, _from_tty: held.append(world.debugger.held)):
            world.run("apply -hold 0.1-2 next")
            world.run("apply 0.1 next")
        self.assertEqual(held, [["1", "3", "4"], ["1", "2", "4"], []])

    def test_a_command_has_its_words_as_they_were_typed(self) -> None:
        world = World()
        world.run("apply 0.1 print  'a  b'")
        world.run("apply  -hold  0.1  next 2")
        self.assertEqual(world.debugger.executed, [" print  'a  b'".lstrip(), " next 2"])

    def test_a_thread_in_teams_of_several_runtimes_has_all_its_places(self) -> None:
        world = World()
        world.library.report["runtimes"] = [runtime([102, 101]), runtime([103], [101])]
        self.assertTrue(world.run("apply 0:0.1 bt").startswith("\nThread 1 (LWP 101), thread 1 of team 0, thread 0 of team 1:\n"))

    def test_of_a_process_that_has_ended_no_thread_is_asked_about(self) -> None:
        world = World()
        with mock.patch.object(world.debugger, "execute", lambda _command, _from_tty: world.inferior.end()):
            text = world.run("apply 0.0-1 continue")
        self.assertTrue(text.endswith("\nLWP 102 has ended.\n"), text)


class Running(unittest.TestCase):
    """While other threads run, a thread is shown by itself."""

    def setUp(self) -> None:
        self.world = World()
        self.world.threads[1].running = True
        self.world.library.icvs = {1: 2, 2: 4, 3: 1}

    def test_what_the_thread_itself_has_is_shown(self) -> None:
        def find(_handle: object, address: Any) -> None:
            address._obj.address = 0x1234

        for name in ("ompdx_get_parallel_function", "ompd_get_task_function"):
            self.world.library.answers[name] = find
        self.assertEqual(
            self.world.run("thread"),
            "Thread 1 (LWP 101)\n  thread 2 of 4, level 1\n  function: 0x1234\n  it executes: the task of 0x1234\n  its frames: none\n"
            "  what it waits for: unknown, since other threads are running\n",
        )
        self.assertNotIn("ompdx_report_json", self.world.library.calls)

    def test_a_thread_that_the_runtime_does_not_know_is_said(self) -> None:
        self.world.library.codes["ompd_get_thread_handle"] = 1
        expected = "Thread 1 (LWP 101)\n  it is no thread of OpenMP\n  what it waits for: unknown, since other threads are running\n"
        self.assertEqual(self.world.run("thread"), expected)

    def test_without_a_runtime_the_user_is_told_so(self) -> None:
        self.world.library.codes["ompd_process_initialize"] = 7
        for command in ("thread", "taskframes"):
            with self.subTest(command), self.assertRaisesRegex(NotNow, "^No OpenMP runtime"):
                self.world.run(command)

    def test_a_ring_of_tasks_has_an_end(self) -> None:
        with mock.patch("openmp_core.threads.MOST_TASKS", 3):
            self.assertEqual(len(self.world.run("taskframes").splitlines()), 4)

    def test_a_thread_that_runs_itself_is_not_shown(self) -> None:
        self.world.threads[0].running = True
        for command in ("thread", "taskframes"):
            with self.subTest(command), self.assertRaisesRegex(NotNow, r"^Thread 1 is running: stop it first \(`halt`\).$"):
                self.world.run(command)


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
        self.assertIn("where\nlevel() and its like can be used", helps["break"])

    def test_help_is_not_indented_by_any_python(self) -> None:
        for command in self.world.plugin.commands:
            with self.subTest(command.name):
                first, usage, *_ = command.help().splitlines()
                self.assertRegex(first, "^[A-Z]")
                self.assertEqual(usage, f"Usage: {command.usage()}")
        lines = next(command for command in self.world.plugin.commands if command.name == "until").help().splitlines()
        self.assertIn("  openmp until 35         the same, in the file of the selected frame", lines)

    def test_help_has_the_name_of_the_debugger(self) -> None:
        helps = {command.name: command.help() for command in self.world.plugin.commands}
        self.assertIn("fake's number of the thread", helps["threads"])
        self.assertIn("fake's own backtraces", helps["bt"])
        self.assertIn("children that fake follows", helps["break"])

    def test_what_is_refused_has_its_cause_and_the_usage(self) -> None:
        events = "parallel-begin, parallel-end, task-begin, task-end, thread-begin, thread-end, barrier-begin, lock-acquire, "
        events += "critical-acquire, taskwait-begin, worksharing-begin, single-begin"
        no_line = "is no line: grid.c:35 is wanted, or 35 in the file of the selected frame."
        cases = {
            "threads -x": "Unknown option -x. USAGE",
            "threads now -v then": "Unexpected: now then. USAGE",
            "threads v": "Unexpected: v. USAGE",
            "stacks -tree -v -all": "One of -all, -tree at a time. USAGE",
            "thread 0.1 0.2": "One thread is wanted. USAGE",
            "thread nonsense": "nonsense is no thread: a team and a number in it (2.3), or the kernel's id of a thread, is wanted.",
            "thread 7": "There is no thread with the kernel id 7 (`openmp threads` lists them).",
            "thread 0.9": "Team 0 has 4 threads: 0 to 3.",
            "thread 9.0": "There is no team 9 now (`openmp teams` lists them).",
            "thread 9:0.0": "There is no team 0 now (`openmp teams` lists them).",
            "apply -hold": "A team and a command are wanted. USAGE",
            "apply -hold 0": "A team and a command are wanted. USAGE",
            "apply -all 0 bt": "Unknown option -all. USAGE",
            "apply 0": "A team and a command are wanted. USAGE",
            "apply x bt": "x is no team, nor members of one: 2, 2.3 or 2.0-3,6 is wanted.",
            "break nonsense": f"nonsense is no event. USAGE\n  EVENT: {events}",
            "break -temporary": f"An event is wanted. USAGE\n  EVENT: {events}",
            "break -hidden task-begin": "Unknown option -hidden. USAGE",
            "break task-begin when x": "Behind the event comes `if` and a condition. USAGE",
            "break task-begin if": "Behind the event comes `if` and a condition. USAGE",
            "condition": "The number of a stop is wanted. USAGE",
            "commands": "The number of one stop is wanted. USAGE",
            "commands 1-2 bt": "The number of one stop is wanted. USAGE",
            "commands \u0661 bt": "The number of one stop is wanted. USAGE",
            "commands last bt": "There are no stops (`openmp break EVENT` makes one).",
            "delete 7": "There is no stop 7 (`openmp break` lists them).",
            "delete x": "There is no stop x (`openmp break` lists them).",
            "save": "One file is wanted. USAGE",
            "load a b": "One file is wanted. USAGE",
            "save file": "There are no stops to save (`openmp break EVENT` makes one).",
            "history -last": "Behind -last comes a number, from 1 on. USAGE",
            "history -last 0": "Behind -last comes a number, from 1 on. USAGE",
            "history -last 9223372036854775808": "Behind -last comes a number, from 1 on. USAGE",
            "history -last \u0661": "Behind -last comes a number, from 1 on. USAGE",
            "history -by-time 5": "Unexpected: 5. USAGE",
            "until": "USAGE",
            "until -hold barrier": "USAGE",
            "until dawn": f"dawn {no_line}",
            "until grid.c:0": f"grid.c:0 {no_line}",
            "until grid.c:2147483648": f"grid.c:2147483648 {no_line}",
            "until grid.c:\u0661": f"grid.c:\u0661 {no_line}",
            "until 35": "The selected frame has no source file: FILE:35 is wanted.",
            "finish 3": "USAGE",
            "catch": "USAGE",
            "catch livelock": "USAGE",
            "catch deadlock never": "USAGE",
            "catch deadlock 0": "USAGE",
            "catch deadlock 86401": "USAGE",
            "catch deadlock 1 2": "USAGE",
            "catch deadlock -limit": "USAGE",
            "print": "An expression is wanted. USAGE",
            "print -all": "An expression is wanted. USAGE",
            "print -team 0": "An expression is wanted. USAGE",
            "print -team": "An expression is wanted. USAGE",
            "bt off continued": "USAGE",
            "bt 0.0 0.1": "USAGE",
        }
        for line, expected in cases.items():
            name, _, argument = line.partition(" ")
            [command] = [command for command in self.world.plugin.commands if command.name == name]
            with self.subTest(line), self.assertRaises(CommandError) as raised:
                command.run(argument, False)
            self.assertEqual(str(raised.exception), expected.replace("USAGE", f"Usage: {command.usage()}"))

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
            ("thread", " 0.3", ["0.3"]),
            ("thread", "0.2 ", []),
            ("tasks", "-", ["-v", "-json", "-tree", "-dot"]),
            ("waits", "", ["-v", "-json", "-dot"]),
            ("bt", "", ["on", "off", "continued", "-v"]),
            ("commands", "", ["last"]),
            ("apply", "", ["-hold"]),
            ("print", "-", ["-all", "-team", "-each", "-json"]),
            ("history", "", ["-by-time", "-last"]),
            ("catch", "", ["deadlock", "-limit"]),
            ("finish", "", ["-hold"]),
            ("taskframes", "", ["-json"]),
            ("why", "", ["-json"]),
            ("init", "", []),
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
        self.assertEqual(parse("x -each"), ("x", {"-each"}, None))
        self.assertEqual(parse("-each  -team  0.1   x - y "), ("x - y", {"-each", "-team"}, "0.1"))
        self.assertEqual(parse("-team 1.0-2 x"), ("x", {"-team"}, "1.0-2"))
        # What is no option is the expression.
        self.assertEqual(parse("-x"), ("-x", set(), None))

    def test_a_command_without_a_docstring_is_used_by_its_name(self) -> None:
        class Bare(Command):
            name = "bare"

        Bare.__doc__ = None
        self.assertEqual((Bare(self.world.session).help(), Bare.usage()), ("", "openmp bare"))

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
            "tasks -dot": "tasks --dot",
            "waits -dot": "waits --dot",
            "stacks -folded": "stacks --folded",
            "teams": "teams",
            "loops": "loops",
            "icvs": "icvs",
            "history": "history",
            "history -by-time": "history --by-time",
            "history -last 1": "history --last 1",
            "history -last 9223372036854775807 -by-time": "history --last 9223372036854775807 --by-time",
            "why": "why 101",
            "why 0.2": "why 103",
            "why 104": "why 104",
            "bt 0.3": "stack 104",
        }
        for line, view in cases.items():
            with self.subTest(line):
                self.assertEqual(self.world.run(line), f"view {view}\n\nmore\n")

    def test_a_text_is_as_the_terminal_wants_it(self) -> None:
        wanted = self.world.library.wanted
        self.world.run("threads")
        self.world.run("threads -v")
        self.world.run("bt -v")
        self.world.run("thread")
        self.world.debugger.columns, self.world.debugger.colours = 0, True
        self.world.run("why")
        # Without a limit: 0 is 80 columns for the library.
        self.assertEqual(
            [(one.width, one.verbose, one.colour) for one in wanted],
            [(80, 0, 0), (80, 1, 0), (80, 1, 0), (80, 0, 0), (ompd.UNLIMITED, 0, 1)],
        )

    def test_a_text_has_the_debuggers_numbers_and_a_mark_at_the_selected_thread(self) -> None:
        def labels() -> list[tuple[int, bytes]]:
            self.world.run("threads")
            found = self.world.library.wanted[-1]
            return [(label.lwp, label.label) for label in found.labels[: found.label_count]]

        self.world.debugger.select_thread(self.world.threads[2])
        self.assertEqual(labels(), [(101, b"1"), (102, b"2"), (103, b"*3"), (104, b"4")])
        self.world.debugger.thread = None
        self.assertEqual(labels(), [(101, b"1"), (102, b"2"), (103, b"3"), (104, b"4")])
        self.world.threads.clear()
        self.assertEqual(labels(), [])

    def test_each_part_of_json_has_its_keys(self) -> None:
        process = ["os_threads", "nested_runtimes", "verdicts", "remarks", "stacks", "without_lines", "complete", "issues"]
        of_runtimes = ["build_id", "needed_by", "origins", "missing", "costs", "teams", "tasks", "locks", "loops", "icvs", "notes"]
        self.world.library.report.update({key: [key] for key in process if key != "verdicts"})
        runtime = self.world.library.report["runtimes"][0]
        runtime.update({key: [key] for key in of_runtimes})
        cases = {
            "threads": ("os_threads nested_runtimes", "threads"),
            "teams": ("", "teams"),
            "parallel": ("", "teams"),
            "tasks": ("", "tasks"),
            "waits": ("verdicts remarks", "locks waits"),
            "loops": ("", "loops teams"),
            "icvs": ("", "icvs notes threads"),
            "stacks": ("stacks without_lines", ""),
            "doctor": ("complete issues fake library asked failures", " ".join(of_runtimes[:5])),
        }
        for name, (outside, inside) in cases.items():
            with self.subTest(name):
                found = json.loads(self.world.run(f"{name} -json"))
                runtimes = found.pop("runtimes", [{}])
                self.assertEqual(set(found), {"schema", "fake_threads", *outside.split()})
                self.assertEqual(set(runtimes[0]) - {"family", "product", "path", "base"}, set(inside.split()))
        self.assertEqual(json.loads(self.world.run("status -json")), self.world.library.report)

    def test_json_is_indented(self) -> None:
        self.assertTrue(self.world.run("taskframes -json").startswith('[\n  {\n    "task": '))

    def test_icvs_of_threads_have_their_sources(self) -> None:
        icvs = {"lwp": 101, "icvs": {"nthreads-var": "4"}, "icv_sources": {"nthreads-var": "memory"}, "placement": "0-3"}
        threads = self.world.library.report["runtimes"][0]["threads"]
        threads[0].update(icvs)
        [found] = json.loads(self.world.run("icvs -json"))["runtimes"]
        self.assertEqual(found["threads"][0], icvs)
        self.assertEqual(found["threads"][1], {"lwp": 102, "icvs": None, "icv_sources": None, "placement": None})

    def test_init_lists_the_runtimes(self) -> None:
        self.world.library.report["runtimes"].append({**runtime([102]), "product": "Another", "path": "/lib/libother.so"})
        self.assertEqual(self.world.run("init"), "Fake runtime  /lib/libfake.so\nAnother  /lib/libother.so\n")

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
            found = json.loads(self.world.run(f"why -json {thread}"))
            self.assertEqual(found["verdicts"], expected)
            self.assertEqual(found["lwp"], int(thread))
            self.assertEqual([entry["lwp"] for entry in found["threads"]], [int(thread)])

    def test_doctor_names_debugger_library_and_what_was_asked(self) -> None:
        asked = self.world.session.process().state.asked
        asked.update({"read_memory": 12, "pieces of memory": 3})
        last = "\nfake 1, libompd 2024.11 from /fake/libompd.so\nAsked of fake so far: 3 pieces of memory, 12 read_memory\n"
        self.assertEqual(self.world.run("doctor"), "view doctor\n\nmore\n" + last)
        found = json.loads(self.world.run("doctor -json"))
        self.assertEqual((found["fake"], found["library"], found["asked"], found["failures"]), ("1", "/fake/libompd.so", asked, ""))

    def test_doctor_has_the_failures_of_the_plugin_first(self) -> None:
        self.world.session.failures.note(ValueError("a bug"))
        text = self.world.run("doctor -v")
        self.assertTrue(text.startswith("The plugin has failed before:\nValueError: a bug\nview doctor\n"), text)
        found = json.loads(self.world.run("doctor -json"))
        self.assertEqual(found["failures"], "ValueError: a bug\n")

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
        # The numbers are those of `ompd_rc_t`.
        texts = {
            1: "not known, or not there",
            2: "it is gone",
            3: "wrong argument",
            4: "failed",
            5: "not supported",
            6: "the runtime would have to keep track of states",
            7: "no OpenMP runtime that this library knows",
            10: "no memory",
            11: "only a part of it is known",
            12: "the debugger did not answer",
            13: "wrong kind of thing",
            99: "error 99",
        }
        for code, text in texts.items():
            self.assertEqual(message(OmpdError("ompd_f", code)), f"ompd_f: {text}.")
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
        world.threads[2].running = False
        for command in ("status", "print x", "print -all x"):
            with self.subTest(command), self.assertRaisesRegex(NotNow, r"^1 thread is running: stop the process first \(`halt`\).$"):
                world.run(command)

    def test_a_process_that_cannot_be_read_is_said(self) -> None:
        world = World()
        world.library.codes["ompd_process_initialize"] = 12
        with self.assertRaisesRegex(NotNow, "^The process cannot be read: ompd_process_initialize: fake did not answer.$"):
            world.run("status")

    def test_in_a_core_file_nothing_runs(self) -> None:
        world = World()
        world.inferior.core = True
        expected = "^This is a core file, in which nothing runs: that takes a process.$"
        for line in ("step", "finish", "until barrier", "catch deadlock", "break task-begin", "apply -hold 0 next", f"load {os.devnull}"):
            with self.subTest(line), self.assertRaisesRegex(NotNow, expected):
                world.run(line)
        # What reads only is there.
        self.assertIn("executed bt in 4", world.run("apply 0 bt"))

    def test_without_the_library_it_is_said_how_to_choose_one(self) -> None:
        plugin = Plugin(Debugger(Inferior()))
        plugin.session.choice.path = "/nowhere/libompd.so"
        with self.assertRaisesRegex(NoLibrary, "Tried:\n  /nowhere/libompd.so\nBuild it .*`choose PATH`"):
            plugin.commands[0].run("", False)


if __name__ == "__main__":
    unittest.main()
