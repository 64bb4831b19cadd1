"""The core and the real library on a process that hangs, without gdb: see `stopped_process.py`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import fake
from openmp_core import Plugin, functions
from openmp_core.frames import Elsewhere, Folded, Plain
from stopped_process import StoppedProcess, await_rest, why_not

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "test-programs/programs/hang.c"
THREADS = 4
#: Seconds within which the program hangs, however busy the machine is.
PATIENCE = 120


def library() -> Path | None:
    """libompd.so: that of `OMPD_LIBRARY`, or the one built last in the checkout."""
    chosen = os.environ.get("OMPD_LIBRARY")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    files = [Path(chosen)] if chosen else [target / kind / "libompd.so" for kind in ("release", "debug")]
    return max((file for file in files if file.is_file()), key=lambda file: file.stat().st_mtime, default=None)


class Hanging(unittest.TestCase):
    """Three threads are at a barrier, and thread 3 waits for the lock that one of them holds."""

    process: subprocess.Popen[bytes]
    inferior: StoppedProcess
    debugger: fake.Debugger
    plugin: Plugin
    report: fake.Json

    @classmethod
    def setUpClass(cls) -> None:
        reason = why_not()
        if reason is None and library() is None:
            reason = "libompd.so is not built"
        compiler = shutil.which("gcc")
        if reason is None and compiler is None:
            reason = "gcc is not here"
        if reason is not None:
            raise unittest.SkipTest(reason)
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "hang"
            subprocess.run([str(compiler), "-g", "-O0", "-fopenmp", str(PROGRAM), "-o", str(program)], check=True)
            # Threads that wait sleep at once.
            environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
            cls.process = subprocess.Popen([str(program)], stdout=subprocess.PIPE, env=environment)
            cls.addClassCleanup(cls.end)
            assert cls.process.stdout is not None
            # It prints a line when it begins.
            cls.process.stdout.readline()
            await_rest(cls.process.pid, THREADS, PATIENCE)
            try:
                cls.inferior = StoppedProcess(cls.process.pid)
            except PermissionError as refusal:
                raise unittest.SkipTest(f"this process may not hold another: {refusal}") from None
            cls.addClassCleanup(cls.inferior.release)
            # While the file is there: the library reads its debug information.
            cls.debugger = fake.Debugger(cls.inferior)
            cls.plugin = Plugin(cls.debugger)
            cls.plugin.session.choice.path = str(library())
            cls.debugger.select_thread(cls.inferior.all_threads[0])
            cls.report = cls.plugin.session.process().report()

    @classmethod
    def end(cls) -> None:
        cls.process.kill()
        cls.process.communicate()

    def run_command(self, line: str) -> str:
        name, _, argument = line.partition(" ")
        next(command for command in self.plugin.commands if command.name == name).run(argument, False)
        return self.debugger.output()

    def test_the_deadlock_is_proven(self) -> None:
        text = " ".join(self.run_command("status").split())
        self.assertIn("DEADLOCK thread 3 has not reached the barrier that threads 0-2 wait at", text)
        self.assertIn("not reached by thread 3", text)
        self.assertIn("waits for lock total_lock", self.run_command("why 0.3"))

    def test_threads_have_the_debuggers_numbers(self) -> None:
        rows = re.findall(r"^ (\*?)(\d) +(\d+) +\w+ +0 +(\d)/4", self.run_command("threads"), re.MULTILINE)
        self.assertEqual(len(rows), THREADS)
        for mark, number, lwp, _ in rows:
            thread = self.inferior.all_threads[int(number) - 1]
            self.assertEqual((thread.lwp, mark == "*"), (int(lwp), thread is self.debugger.thread))

    def test_selection_by_team_and_number(self) -> None:
        before = self.debugger.thread
        for number in range(THREADS):
            self.assertIn(f"thread {number} of 4 in team 0", self.run_command(f"thread 0.{number}"))
            answers = [functions.answer(self.plugin.session, f"_omp_{name}") for name in ("thread_num", "num_threads", "level")]
            self.assertEqual(answers, [number, 4, 1])
        assert before is not None
        self.debugger.select_thread(before)

    def test_a_stop_is_read_once(self) -> None:
        state = self.plugin.session.process().state
        asked = dict(state.asked)
        self.run_command("threads -json")
        self.assertEqual(state.asked, asked)
        self.inferior.stops += 1
        self.run_command("threads -json")
        self.assertGreater(state.asked["read_memory"], asked["read_memory"])

    def test_a_backtrace_is_folded_and_goes_on_in_the_first_thread(self) -> None:
        worker = next(t for t in self.report["runtimes"][0]["threads"] if t["thread_num"]["value"] == 3)
        thread = next(thread for thread in self.inferior.all_threads if thread.lwp == worker["lwp"])
        [stack] = [stack for stack in self.report["stacks"] if stack["lwp"] == thread.lwp]
        own = [int(frame["address"], 16) for frame in stack["frames"] if frame["lwp"] == thread.lwp]
        frames = [fake.Frame(pc) for pc in (1, *own, 2, 3)]
        with self.debugger.selected(thread):
            rows = self.plugin.folding.rows(frames, lambda frame: frame)
            assert rows is not None
            first, *body, last, link = rows
        assert isinstance(first, Folded) and isinstance(last, Folded) and isinstance(link, Elsewhere)
        self.assertEqual(first.note, "waits: lock total_lock")
        self.assertEqual(body[0], Plain(frames[1]))
        self.assertEqual((last.frames, last.note), (frames[-2:], "worker"))
        self.assertEqual(link.label, "[continues in Thread 1] main")

    def test_places_to_stop_at_lie_in_the_runtime(self) -> None:
        text = self.run_command("break barrier-begin")
        self.assertRegex(text, r"^Stop \d+  barrier-begin  \(\d+ places?; 0 hits\)")
        runtime = self.report["runtimes"][0]
        addresses = [made.address for made in self.debugger.active()]
        self.assertTrue(addresses)
        self.assertTrue(all(0 < address - int(runtime["base"], 16) < 1 << 24 for address in addresses), addresses)
        self.run_command("delete")
        self.assertEqual(self.debugger.active(), [])

    def test_task_frames_are_stack_pointers(self) -> None:
        [task] = json.loads(self.run_command("taskframes -json"))[:1]
        stack = next(line for line in Path(f"/proc/{self.process.pid}/maps").read_text().splitlines() if "[stack]" in line)
        first, last = (int(bound, 16) for bound in stack.split()[0].split("-"))
        self.assertTrue(first < int(task["enter"], 16) < last, task)

    def test_without_registers_nothing_is_made_up(self) -> None:
        self.inferior.has_registers = False
        self.inferior.stops += 1
        try:
            verdicts = self.plugin.session.process().report()["verdicts"]
        finally:
            self.inferior.has_registers = True
            self.inferior.stops += 1
        self.assertEqual([verdict for verdict in verdicts if verdict["verdict"] == "deadlock"], [])


if __name__ == "__main__":
    unittest.main()
