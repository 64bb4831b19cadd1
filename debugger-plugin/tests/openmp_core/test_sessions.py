"""What is kept of an inferior, and when it is asked for anew."""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from fake import Inferior, Thread, World, point
from openmp_core import ompd
from openmp_core.debugger import Registers
from openmp_core.errors import NotNow, OmpdError
from openmp_core.inferior import AARCH64, OPTIONAL, UNUSED, X86_64, InferiorState
from openmp_core.library import NAME, candidates
from openmp_core.session import LibraryChoice

REPORT = "ompdx_report_json"
OPEN = "ompd_process_initialize"
CLOSE = "ompd_rel_address_space_handle"


class Reports(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.library = self.world.library

    def report(self) -> None:
        self.world.session.process().report()

    def test_one_report_for_each_stop(self) -> None:
        self.report()
        self.report()
        self.assertEqual(self.library.asked(REPORT), 1)
        self.world.inferior.stops += 1
        self.report()
        self.report()
        self.assertEqual(self.library.asked(REPORT), 2)
        self.assertEqual(self.library.asked(OPEN), 1)

    def test_a_process_that_has_run_without_a_stop_is_read_anew(self) -> None:
        self.report()
        self.world.session.process().state.ran()
        self.report()
        self.assertEqual(self.library.asked(REPORT), 2)

    def test_stop_numbers_of_the_library_never_come_again(self) -> None:
        state = self.world.session.process().state
        seen = [state.stop]
        for step in (state.ran, lambda: setattr(self.world.inferior, "stops", self.world.inferior.stops + 1)) * 3:
            step()
            seen.append(state.stop)
        self.assertEqual(len(set(seen)), len(seen))
        self.assertGreater(seen[0], 0)

    def test_loaded_files_make_the_report_old_but_not_the_handle(self) -> None:
        self.report()
        self.world.plugin.files_unloaded(self.world.inferior)
        self.report()
        self.assertEqual((self.library.asked(REPORT), self.library.asked(OPEN)), (2, 1))

    def test_another_program_gets_another_handle(self) -> None:
        self.report()
        self.world.plugin.replaced(self.world.inferior)
        self.report()
        self.assertEqual((self.library.asked(OPEN), self.library.asked(CLOSE)), (2, 1))
        # An adapter may not have told.
        self.world.inferior.path = "/bin/other"
        self.report()
        self.assertEqual((self.library.asked(OPEN), self.library.asked(CLOSE)), (3, 2))

    def test_each_inferior_has_its_own(self) -> None:
        second = Inferior(2, 200)
        second.all_threads = [Thread(1, 201)]
        self.world.debugger.inferiors.append(second)
        self.report()
        self.world.debugger.selected_number = 1
        self.report()
        self.assertEqual((self.library.asked(REPORT), self.library.asked(OPEN)), (2, 2))
        first = self.world.session.process(self.world.inferior)
        self.world.plugin.removed(self.world.inferior)
        self.assertIsNot(self.world.session.process(self.world.inferior), first)
        self.assertEqual(self.library.asked(CLOSE), 1)

    def test_a_refusal_holds_until_files_are_loaded(self) -> None:
        # The fewest that a program with libraries has: itself, the C library and the vDSO.
        self.world.inferior.modules = 3
        self.library.codes[OPEN] = 7
        process = self.world.session.process()
        for _ in range(3):
            self.assertFalse(process.is_openmp())
            self.world.inferior.stops += 1
        self.assertEqual(self.library.asked(OPEN), 1)
        with self.assertRaisesRegex(NotNow, "^No OpenMP runtime .* was found in this process"):
            process.report()
        del self.library.codes[OPEN]
        self.assertFalse(process.is_openmp())
        self.world.plugin.files_loaded(self.world.inferior)
        self.assertTrue(process.is_openmp())

    def test_a_program_without_libraries_is_asked_at_each_stop(self) -> None:
        self.world.inferior.modules = 2
        self.library.codes[OPEN] = 7
        process = self.world.session.process()
        for _ in range(3):
            self.assertFalse(process.is_openmp())
            self.assertFalse(process.is_openmp())
            self.world.inferior.stops += 1
        self.assertEqual(self.library.asked(OPEN), 3)

    def test_why_the_library_refused_is_told(self) -> None:
        def refuse(*_: object) -> None:
            self.library.callbacks.said = "libgomp was removed from disk"
            raise OmpdError(OPEN, 7)

        self.library.answers[OPEN] = refuse
        with self.assertRaisesRegex(NotNow, "until then.\nlibgomp was removed from disk$"):
            self.report()

    def test_what_the_library_said_before_is_not_the_reason_of_a_refusal(self) -> None:
        self.library.codes[OPEN] = 7
        for said in ("", "something else", "no OpenMP runtime is loaded"):
            self.library.callbacks.said = said
            self.world.plugin.replaced(self.world.inferior)
            with self.assertRaises(NotNow) as raised:
                self.report()
            self.assertEqual(
                str(raised.exception),
                "No OpenMP runtime (libgomp, libomp, libiomp5) was found in this process. "
                "If it is yet to be loaded, let the process run until then.",
            )

    def test_that_no_runtime_is_loaded_is_said_once(self) -> None:
        def refuse(*_: object) -> None:
            self.library.callbacks.said = "no OpenMP runtime is loaded in process 100"
            raise OmpdError(OPEN, 7)

        self.library.answers[OPEN] = refuse
        with self.assertRaisesRegex(NotNow, "let the process run until then.$"):
            self.report()

    def test_a_refusal_does_not_hold_for_another_program(self) -> None:
        self.library.codes[OPEN] = 7
        process = self.world.session.process()
        self.assertFalse(process.is_openmp())
        self.world.plugin.replaced(self.world.inferior)
        del self.library.codes[OPEN]
        self.assertTrue(process.is_openmp())

    def test_a_process_that_was_replaced_at_the_same_stop_is_read_anew(self) -> None:
        process = self.world.session.process()
        self.world.inferior.symbols = {"omp_version": 1}
        process.state.symbol("omp_version")
        for change in (self.world.plugin.replaced, self.world.plugin.files_unloaded, self.world.plugin.files_loaded):
            self.report()
            asked, before = self.library.asked(REPORT), process.state.stop
            symbols = self.world.inferior.questions.count("symbol omp_version")
            change(self.world.inferior)
            self.assertGreater(process.state.stop, before, "the library reads it anew as well")
            self.report()
            self.assertEqual(self.library.asked(REPORT), asked + 1)
            process.state.symbol("omp_version")
            self.assertEqual(self.world.inferior.questions.count("symbol omp_version"), symbols + 1)

    def test_files_of_an_unknown_inferior_are_no_matter(self) -> None:
        other = Inferior(2, 200)
        for change in (self.world.plugin.replaced, self.world.plugin.files_unloaded, self.world.plugin.removed):
            change(other)
        self.assertEqual(self.library.calls, [])

    def test_the_library_is_told_where_the_files_of_the_process_are(self) -> None:
        roots: list[Any] = []
        self.library.answers["ompdx_set_lib_root"] = lambda root: roots.append(root.value)
        with mock.patch.object(Inferior, "lib_root", return_value="/sysroot/\udce9"):
            self.report()
        self.assertEqual(roots, [b"/sysroot/\xe9"])

    def test_the_library_is_asked_about_the_number_of_the_inferior(self) -> None:
        numbers: list[Any] = []

        def open_process(context: Any, out: Any) -> None:
            numbers.append(context.value)
            out._obj.value = 1

        self.library.answers[OPEN] = open_process
        self.world.debugger.inferiors[0] = Inferior(3, 300)
        self.report()
        self.assertEqual(numbers, [3])

    def test_a_handle_that_is_not_valid_any_more_is_no_failure(self) -> None:
        self.report()
        self.library.codes[CLOSE] = 2
        self.world.plugin.replaced(self.world.inferior)
        self.report()
        self.assertEqual(self.library.asked(OPEN), 2)

    def test_a_control_variable_that_the_library_does_not_have_is_not_supported(self) -> None:
        process = self.world.session.process()
        self.assertEqual(process.icv("team-size-var")[0], 2)
        with self.assertRaisesRegex(OmpdError, "^levels: not supported$"):
            process.icv("levels")
        self.assertEqual(self.library.asked("ompd_enumerate_icvs"), 3)
        # Their names are the library's memory, as the places are.
        process.stop_points()
        self.assertEqual(self.library.callbacks._memory, {})

    def test_places_of_a_newer_library_and_without_texts_are_read(self) -> None:
        self.library.points = [point(99, 0x9000), ompd.StopPoint(point=1, event=1, address=ompd.Address(0, 0x9010))]
        newer, bare = self.world.session.process().stop_points()
        self.assertEqual((newer.event, newer.runtime, newer.place, newer.condition), ("unknown", "libfake", "", None))
        self.assertEqual((bare.event, bare.own, bare.runtime, bare.place, bare.condition), ("parallel-begin", False, "", "", None))
        self.library.points = []
        self.assertEqual(self.world.session.process().stop_points(), [])
        self.library.points = [ompd.StopPoint(runtime=b"\xff", place=b"\xff", condition=b"\xff")]
        [damaged] = self.world.session.process().stop_points()
        self.assertEqual((damaged.runtime, damaged.place, damaged.condition), ("\ufffd",) * 3)

    def test_an_event_of_a_newer_library_is_unknown_and_one_that_does_not_count_is_none(self) -> None:
        process = self.world.session.process()
        self.library.event = 99
        self.assertEqual((process.event_at(101), process.counts(101)), ("unknown", True))
        self.library.counts = 0
        self.assertEqual((process.event_at(101), process.counts(101)), (None, False))
        self.library.codes["ompdx_get_stop"] = 1
        self.assertEqual((process.event_at(101), process.counts(101)), (None, None))
        self.library.codes["ompdx_get_stop"] = 4
        with self.assertRaises(OmpdError):
            process.event_at(101)
        self.assertEqual(self.library.asked("ompd_get_thread_handle"), self.library.asked("ompd_rel_thread_handle"))

    def test_a_thread_is_asked_about_by_its_kernel_id(self) -> None:
        asked: list[tuple[int, int, int]] = []

        def handle(_space: Any, kind: Any, size: Any, number: Any, out: Any) -> None:
            asked.append((kind.value, size.value, number._obj.value))
            out._obj.value = 1

        self.library.answers["ompd_get_thread_handle"] = handle
        self.world.session.process().event_at(104)
        self.assertEqual(asked, [(ompd.LWP, 8, 104)])

    def test_only_a_thread_with_team_and_number_is_a_member(self) -> None:
        threads = self.world.library.report["runtimes"][0]["threads"]
        threads[0]["team"] = threads[1]["thread_num"] = {"unknown": "no memory"}
        process = self.world.session.process()
        self.assertEqual([process.members(lwp) for lwp in (101, 102, 103)], [[], [], [(0, 0, 2)]])


class States(unittest.TestCase):
    def setUp(self) -> None:
        self.inferior = Inferior()
        self.inferior.all_threads = [Thread(1, 11), Thread(2, 12), Thread(3, 13)]
        for thread in self.inferior.all_threads[:2]:
            thread.values = {name: thread.lwp * 100 + n for n, name in enumerate(X86_64)}
        self.state = InferiorState(self.inferior)

    def test_registers_are_asked_for_once_a_stop(self) -> None:
        self.state.registers([11])
        self.state.registers([11, 12])
        self.state.registers([12])
        self.assertEqual([q for q in self.inferior.questions if q != "threads"], ["registers 11", "registers 12"])
        self.inferior.stops += 1
        self.state.registers([11])
        self.assertEqual(self.inferior.questions[-1], "registers 11")

    def test_registers_are_words_in_the_kernels_order(self) -> None:
        [found] = self.state.registers([12])
        assert found is not None
        self.assertEqual(len(found), 27 * 8)
        words = [int.from_bytes(found[n : n + 8], "little") for n in range(0, 27 * 8, 8)]
        self.assertEqual(words, [0 if name in UNUSED else 1200 + n for n, name in enumerate(X86_64)])

    def test_registers_that_do_not_matter_may_be_missing(self) -> None:
        values = self.inferior.all_threads[0].values
        for name in OPTIONAL & set(values):
            del values[name]
        values["rax"] = -1
        [found] = self.state.registers([11])
        assert found is not None
        self.assertEqual(found[10 * 8 : 11 * 8], b"\xff" * 8)
        self.assertEqual(found[15 * 8 : 16 * 8], b"\xff" * 8, "as of a thread in no system call")
        del values["fs_base"]
        self.inferior.stops += 1
        self.assertEqual(self.state.registers([11]), [None])

    def test_absent_registers_are_marked(self) -> None:
        question = b"".join(lwp.to_bytes(8, "little") for lwp in (11, 12, 13))
        values = self.inferior.all_threads[0].values
        del values["fs_base"], values["orig_rax"]
        del self.inferior.all_threads[1].values["rsp"]
        found = self.state.partial_registers(question, 3 * (8 + 27 * 8))
        assert found is not None
        third = len(found) // 3
        there = [int.from_bytes(found[n : n + 8], "little") for n in range(0, 3 * third, third)]
        names = [name for n, name in enumerate(X86_64) if there[0] >> n & 1]
        self.assertEqual(names, [name for name in X86_64 if name not in UNUSED | {"fs_base", "orig_rax"}])
        self.assertEqual(there[1:], [0, 0], "without a stack pointer the rest is of no use")
        self.assertEqual(found[third + 8 :], bytes(2 * third - 8))
        self.assertIsNone(self.state.partial_registers(b"", 100))

    def test_words_have_the_byte_order_of_the_process(self) -> None:
        for swapped in (False, True):
            state = InferiorState(self.inferior)
            with mock.patch.object(Inferior, "is_big_endian", return_value=swapped):
                [found] = state.registers([12])
            assert found is not None
            self.assertEqual(int.from_bytes(found[8:16], "big" if swapped else "little"), 1201)

    def test_registers_of_an_aarch64_process_may_lack_two(self) -> None:
        values = [None if name in ("cpsr", "tpidr") else n for n, name in enumerate(AARCH64)]
        answers = [Registers("aarch64", values), Registers("aarch64", [*values[:31], None, *values[32:]])]
        with mock.patch.object(Inferior, "registers", return_value=answers):
            found = self.state.packed([11, 12])
        assert found[0] is not None
        self.assertEqual(found[0].words, b"".join((n if n < 33 else 0).to_bytes(8, "little") for n in range(35)))
        self.assertEqual((found[0].there, found[0].is_whole), ((1 << 33) - 1, True))
        self.assertIsNone(found[1], "the stack pointer is missing")

    def test_the_sets_of_registers_are_those_of_the_library(self) -> None:
        self.assertEqual((len(X86_64), len(AARCH64)), (27, 35))

    def test_of_threads_that_are_gone_or_unreadable_there_are_none(self) -> None:
        self.assertEqual(self.state.registers([13, 99]), [None, None])

    def test_all_registers_mark_those_that_are_missing(self) -> None:
        question = b"".join(lwp.to_bytes(8, "little") for lwp in (12, 13))
        found = self.state.all_registers(question, 2 * (8 + 27 * 8))
        assert found is not None
        half = len(found) // 2
        self.assertEqual((found[0], found[half]), (1, 0))
        self.assertEqual(found[8:half], self.state.registers([12])[0])
        self.assertEqual(found[half + 8 :], bytes(27 * 8))
        self.assertIsNone(self.state.all_registers(b"", 100))

    def test_pieces_of_memory_have_a_mark_each(self) -> None:
        self.inferior.memory = {0x1000: b"abcdefgh"}
        question = b"".join(number.to_bytes(8, "little") for number in (0x1002, 3, 0x1006, 4))
        self.assertEqual(self.state.pieces(question, 32), b"\1" + bytes(7) + b"cde" + bytes(8) + bytes(4) + bytes(9))

    def test_threads_beyond_the_room_are_counted(self) -> None:
        self.assertEqual([n for n in self.state.lwps(24) if n], [3, 11, 12])
        self.assertEqual(len(self.state.lwps(100)), 100)

    def test_threads_by_id_are_listed_once_a_stop(self) -> None:
        for lwp in (11, 12, 99):
            self.state.thread(lwp)
        self.assertEqual(self.inferior.questions, ["threads"])
        self.inferior.all_threads = [Thread(1, 99)]
        self.assertIsNone(self.state.thread(99))
        self.inferior.stops += 1
        self.assertIsNotNone(self.state.thread(99))
        self.assertIsNotNone(self.state.thread_by_pthread(0x7F00_0000_0000 + 99))
        self.assertIsNone(self.state.thread_by_pthread(1))

    def test_symbols_are_kept_until_files_are_loaded(self) -> None:
        self.inferior.symbols = {"omp_version": 0x5000}
        for _ in range(2):
            self.assertEqual(self.state.symbol("omp_version"), 0x5000)
            self.assertIsNone(self.state.symbol("absent"))
        self.assertEqual(self.inferior.questions, ["symbol omp_version", "symbol absent"])
        self.state.new_modules()
        self.state.symbol("absent")
        self.assertEqual(self.inferior.questions[-1], "symbol absent")

    def test_what_is_no_identifier_is_no_symbol(self) -> None:
        for name in ("", "f()", "a b", "x'", "1x", "a\n", "*p", "a::b"):
            with self.subTest(name):
                self.assertIsNone(self.state.symbol(name))
        self.assertEqual(self.inferior.questions, [])


class Libraries(unittest.TestCase):
    def test_an_installed_plugin_looks_beside_itself_and_below_its_prefix(self) -> None:
        for prefix in ("/usr", "/usr/local", "/opt/a/b", "/"):
            for debugger in ("gdb", "lldb"):
                folder = Path(prefix) / "share/ompd" / debugger / f"openmp_{debugger}"
                with self.subTest(str(folder)):
                    self.assertEqual(candidates(None, folder), [folder / NAME, folder.parent / NAME, Path(prefix) / "lib" / NAME])

    def test_a_plugin_elsewhere_looks_beside_itself_only(self) -> None:
        # Anybody can make a folder `lib` in /tmp.
        for folder in ("/tmp/plugin/openmp_gdb", "/tmp/a/share/gdb/openmp_gdb", "/tmp", "/"):
            with self.subTest(folder):
                self.assertEqual(candidates(None, Path(folder)), [Path(folder) / NAME, Path(folder).parent / NAME])

    def test_a_checkout_has_it_in_its_target(self) -> None:
        root = Path(__file__).resolve().parents[3]
        found = candidates(None, root / "debugger-plugin/gdb/openmp_gdb")
        self.assertEqual([path.parts[-2] for path in found[-2:]], ["release", "debug"])

    def test_a_chosen_one_is_the_only_one(self) -> None:
        self.assertEqual(candidates("/a/libompd.so", Path("/b")), [Path("/a/libompd.so")])

    def test_after_it_is_loaded_another_choice_is_refused(self) -> None:
        choice = LibraryChoice()
        choice.path = "/a/libompd.so"
        self.assertEqual(choice.refusal("gdb"), "")
        self.assertEqual(choice.shown(""), "libompd.so is taken from beside the plugin.")
        choice.path = ""
        self.assertEqual(choice.shown("/b"), "libompd.so is taken from /b.")
        choice.path = "/a/libompd.so"
        choice.loaded = "/a/libompd.so"
        self.assertEqual(choice.shown("/b"), "libompd.so is taken from /a/libompd.so.")
        self.assertEqual(choice.refusal("gdb"), "")
        choice.path = "/b/libompd.so"
        self.assertEqual(choice.refusal("gdb"), "/a/libompd.so is loaded already, and stays so: another one is for a new gdb.")


if __name__ == "__main__":
    unittest.main()
