"""Which frames are folded, and what the others are called."""

from __future__ import annotations

import unittest
from typing import Any

from fake import Debugger, Frame, Inferior, Json, Thread, World, fact, member, refusing, stack
from openmp_core import debugger as core
from openmp_core.errors import CommandError
from openmp_core.frames import Body, Elsewhere, Folded, Plain, Row
from openmp_core.modules import is_system

#: In the runtime: the barrier, the caller of the region's function. In the C library: the thread's start.
BARRIER, CALL, START = 0x9100, 0x9200, 0x9300
#: In the program: a function that the construct's body calls, and the body.
SWEEP, BODY = 0x1100, 0x1200


def record(lwp: int | None, address: int, function: str, construct: str | None = None) -> Json:
    """A frame of the report."""
    return {"lwp": lwp, "address": f"{address:#x}", "function": function, "construct": construct, "file": "hang.c", "line": 24}


class Backtraces(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.frames = stack(Frame(BARRIER), Frame(SWEEP, "sweep"), Frame(BODY, "main._omp_fn.0"), Frame(CALL), Frame(START, "start_thread"))
        own = [record(102, SWEEP, "sweep"), record(102, BODY, "main", "parallel")]
        others = [record(101, 0x1300, "main"), record(101, 0x1400, "start")]
        self.stack: Json = {"lwp": 102, "frames": own + others, "end": {"complete": True}, "in_call": {"function": "omp_set_lock"}}
        report = self.world.library.report
        report["stacks"] = [self.stack]
        wait = {"kind": "explicit_barrier", "name": None, "lock": None}
        report["runtimes"][0]["threads"][1] = member(102, 0, 1, wait)
        self.world.debugger.select_thread(self.world.threads[1])

    def rows(self) -> list[Row[Frame]] | None:
        found = self.world.plugin.folding.rows(self.frames, lambda frame: frame)
        return list(found) if found is not None else None

    def test_frames_of_the_runtime_are_folded_and_constructs_named(self) -> None:
        rows = self.rows()
        assert rows is not None
        barrier, sweep, body, call, start = self.frames
        self.assertEqual(
            rows,
            [
                Folded([barrier], "waits: explicit barrier", "omp_set_lock"),
                Plain(sweep),
                Body(body, "#pragma omp parallel in main"),
                Folded([call, start], "worker"),
                Elsewhere(start, self.stack["frames"][2], "[continues in Thread 1] main"),
            ],
        )

    def test_the_body_of_the_threads_own_region_below_a_task_is_shown(self) -> None:
        task = Frame(0x1500, "main._omp_fn.1")
        own = [record(102, 0x1500, "main", "task")]
        others = [record(101, BODY + 8, "main", "parallel"), record(101, 0x1300, "main")]
        self.stack["frames"] = own + others
        self.frames = stack(task, Frame(CALL), Frame(BODY, "main._omp_fn.0"), Frame(CALL), Frame(START, "start_thread"))
        self.world.debugger.functions = [core.Function(BODY, BODY + 0x40, "hang.c", 20), core.Function(START, START + 0x40, "x.c", 1)]
        # A function of the C library is not the program's, although another stack has it.
        self.world.debugger.libraries = {range(START, START + 0x40): "/lib/x86_64-linux-gnu/libc.so.6"}
        others.append(record(101, START + 8, "clone3"))
        # Nor is one in a record without a thread.
        self.world.debugger.functions.append(core.Function(CALL, CALL + 0x40, "gomp.c", 1))
        others.append(record(None, CALL + 8, "gomp_call"))
        rows = self.rows()
        assert rows is not None
        bodies = [(row.frame, row.label) for row in rows if isinstance(row, Body)]
        self.assertIsInstance(rows[3], Folded)
        self.assertEqual(bodies, [(task, "#pragma omp task in main"), (self.frames[2], "#pragma omp parallel in main")])

    def test_all_frames_of_the_other_thread_follow_if_that_is_wanted(self) -> None:
        self.world.run("bt on continued")
        rows = self.rows()
        assert rows is not None
        links = [row for row in rows if isinstance(row, Elsewhere)]
        self.assertEqual([link.label for link in links], ["[continues in Thread 1] main", "[continues in Thread 1] start"])
        self.assertEqual((links[1].address, links[1].file, links[1].line), (0x1400, "hang.c", 24))
        self.world.run("bt on")
        self.assertEqual(len(self.rows() or []), 5)

    def test_a_thread_that_is_gone_is_named_by_its_kernel_id(self) -> None:
        del self.world.threads[0]
        rows = self.rows()
        assert rows is not None and isinstance(rows[-1], Elsewhere)
        self.assertEqual(rows[-1].label, "[continues in LWP 101] main")

    def test_an_inlined_frame_at_the_address_of_the_body_is_not_the_body(self) -> None:
        self.frames[2:2] = [Frame(BODY, "helper", inline=True)]
        rows = self.rows()
        assert rows is not None
        self.assertEqual([type(row) for row in rows], [Folded, Plain, Plain, Body, Folded, Elsewhere])

    def test_all_of_the_runtime_is_one_row_with_role_and_wait(self) -> None:
        self.stack["frames"] = []
        self.assertEqual(self.rows(), [Folded(self.frames, "worker, waits: explicit barrier")])

    def test_nothing_is_folded_of_what_is_not_known_to_its_end(self) -> None:
        self.stack["end"] = {"complete": False}
        self.assertIsNone(self.rows())
        self.world.library.report["stacks"] = []
        self.world.inferior.stops += 1
        self.assertIsNone(self.rows())

    def test_nothing_is_folded_where_there_is_no_openmp_or_no_answer(self) -> None:
        self.world.threads[0].running = True
        self.assertIsNone(self.rows())
        self.world.threads[0].running = False
        self.world.library.codes["ompd_process_initialize"] = 7
        self.world.plugin.replaced(self.world.inferior)
        self.assertIsNone(self.rows())
        self.world.debugger.thread = None
        self.assertIsNone(self.rows())

    def test_whatever_the_debugger_refuses_frames_stay_plain_or_are_folded(self) -> None:
        folded = self.rows()
        for of, interface in ((Debugger, core.Debugger), (Inferior, core.Inferior), (Thread, core.Thread)):
            for name in sorted(interface.__abstractmethods__):
                self.world.inferior.stops += 1
                with self.subTest(f"{of.__name__}.{name}"), refusing(of, name):
                    self.assertIn(self.rows(), (None, folded))

    def test_if_threads_are_refused_frames_stay_plain(self) -> None:
        with refusing(Inferior, "threads"):
            self.assertIsNone(self.rows())

    def test_what_is_refused_while_rows_are_printed_leaves_them_complete(self) -> None:
        expected = self.rows()
        rows = self.world.plugin.folding.rows(self.frames, lambda frame: frame)
        assert rows is not None
        with refusing(Inferior, "threads"):
            self.assertEqual(list(rows), expected)

    def test_a_frame_that_the_debugger_cannot_read_stays_plain(self) -> None:
        for name in ("pc", "is_inline"):
            with self.subTest(name), refusing(Frame, name):
                rows = self.rows()
                assert rows is not None
                self.assertIn(Plain(self.frames[2]), rows)

    def test_waits_have_the_name_of_what_is_waited_for(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"kind": "lock", "name": "total_lock", "object": "0x10", "lock": 0}, "waits: lock total_lock"),
            ({"kind": "lock", "name": None, "object": "0x10", "lock": 0}, "waits: lock 0x10"),
            ({"kind": "taskwait", "name": None, "object": "0x10", "lock": None}, "waits: taskwait"),
        ]
        for wait, note in cases:
            self.world.library.report["runtimes"][0]["threads"][1]["wait"] = fact(wait)
            self.world.inferior.stops += 1
            rows = self.rows()
            assert rows is not None and isinstance(rows[0], Folded)
            self.assertEqual(rows[0].note, note)

    def test_stacks_of_other_threads_and_runtimes_are_no_matter(self) -> None:
        report = self.world.library.report
        expected = self.rows()
        other = {"lwp": 103, "frames": [record(103, 0x1700, "other")], "end": {"complete": False}}
        report["stacks"] = [other, self.stack]
        report["runtimes"].insert(0, {"threads": [{"lwp": 102, "role": {}, "wait": None}], "teams": []})
        self.world.inferior.stops += 1
        self.assertEqual(self.rows(), expected)

    def test_a_thread_that_waits_for_nothing_has_no_note(self) -> None:
        self.world.library.report["runtimes"][0]["threads"][1] = {"lwp": 102}
        rows = self.rows()
        assert rows is not None
        self.assertEqual(rows[0], Folded(self.frames[:1], None, "omp_set_lock"))
        self.assertEqual(rows[3], Folded(self.frames[3:], None))
        del self.stack["in_call"]
        self.stack["frames"] = []
        self.world.inferior.stops += 1
        self.assertEqual(self.rows(), [Folded(self.frames, None)])

    def test_only_the_innermost_folded_frames_have_the_wait(self) -> None:
        self.frames[2:2] = [Frame(CALL)]
        rows = self.rows()
        assert rows is not None
        notes = [row.note for row in rows if isinstance(row, Folded)]
        self.assertEqual(notes, ["waits: explicit barrier", None, "worker"])
        calls = [row.called for row in rows if isinstance(row, Folded)]
        self.assertEqual(calls, ["omp_set_lock", None, None])

    def test_without_a_selected_thread_nothing_is_folded(self) -> None:
        self.world.debugger.thread = None
        self.assertIsNone(self.rows())

    def test_an_empty_stack_has_no_link(self) -> None:
        self.frames = []
        self.assertEqual(self.rows(), [])

    def test_frames_without_an_address_or_a_thread_are_not_the_programs(self) -> None:
        self.stack["frames"][2:] = [{"lwp": 102, "address": None}, record(None, BARRIER, "main")]
        rows = self.rows()
        assert rows is not None
        self.assertEqual([type(row) for row in rows], [Folded, Plain, Body, Folded])

    def test_a_link_has_the_construct_or_the_function_of_its_frame(self) -> None:
        cases = [
            (record(101, 0x1300, "main", "parallel"), "#pragma omp parallel in main"),
            (record(101, 0x1300, "", "task"), "#pragma omp task in a function without a name"),
            (record(101, 0x1300, "main"), "main"),
            (record(101, 0x1300, ""), "??"),
        ]
        for frame, expected in cases:
            self.stack["frames"][2:] = [frame]
            self.world.inferior.stops += 1
            rows = self.rows()
            assert rows is not None and isinstance(rows[-1], Elsewhere)
            self.assertEqual(rows[-1].label, f"[continues in Thread 1] {expected}")

    def test_a_link_without_a_place_has_none(self) -> None:
        link = Elsewhere(self.frames[0], {"lwp": 101}, "")
        self.assertEqual((link.address, link.file, link.line), (None, None, None))

    def test_functions_of_other_stacks_need_debug_information(self) -> None:
        """Frames without it are known by their addresses alone, in the stack of their thread."""
        self.stack["frames"].append(record(101, CALL, "main"))
        self.world.library.report["stacks"].append({"lwp": 101, "frames": [record(101, CALL + 4, "main"), record(101, 0x1300, "main")]})
        rows = self.rows()
        assert rows is not None
        self.assertEqual([type(row) for row in rows], [Folded, Plain, Body, Folded, Elsewhere])

    def test_titles(self) -> None:
        frames = [Frame(1)]
        self.assertEqual(Folded(frames, "worker").title("clone3"), "clone3 [worker]")
        self.assertEqual(Folded(frames, "worker").title(None), "?? [worker]")
        self.assertEqual(Folded(frames, "waits", "omp_set_lock").title(None), "omp_set_lock [waits]")
        self.assertEqual(Folded(frames, None, "omp_set_lock").title("own"), "own")
        self.assertEqual(Folded(frames, None).title(None), "??")

    def test_bt_switches_it(self) -> None:
        folding = self.world.plugin.folding
        self.assertEqual((folding.enabled, folding.continued), (True, False))
        self.world.run("bt off")
        self.assertEqual((folding.enabled, folding.continued), (False, False))
        self.world.run("bt on continued")
        self.assertEqual((folding.enabled, folding.continued), (True, True))
        with self.assertRaises(CommandError):
            self.world.run("bt continued on")


class Modules(unittest.TestCase):
    def test_the_c_library_and_the_dynamic_linker_are_no_program(self) -> None:
        for path in (
            "/lib64/libc.so.6",
            "/usr/lib/libc-2.31.so",
            "/lib/libpthread.so.0",
            "libpthread-2.31.so",
            "/lib/ld-linux-aarch64.so.1",
        ):
            self.assertTrue(is_system(path), path)
        for module in (
            None,
            "/opt/libcommon.so",
            "/usr/lib/libc++.so.1",
            "/lib/libcrypto.so.3",
            "/lib/libc.so.6/libmine.so",
            "/opt/mylibc.so",
        ):
            self.assertFalse(is_system(module), module)


if __name__ == "__main__":
    unittest.main()
