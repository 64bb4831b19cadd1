"""How libompd.so is found and called, with functions of Python in place of its own."""

from __future__ import annotations

import ctypes
import os
import tempfile
import unittest
from ctypes import byref, c_uint64, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from fake import Debugger, Inferior, Thread, refusing
from openmp_core import Plugin, ompd
from openmp_core.callbacks import Callbacks
from openmp_core.errors import DebuggerError, NoLibrary, OmpdError
from openmp_core.inferior import InferiorState
from openmp_core.library import NAME, Library, candidates


class Functions:
    """The functions of a library that works, until a test changes one."""

    def __init__(self) -> None:
        self.initialized: list[tuple[int, Any]] = []
        self.code = 0
        self.ask: Any = lambda: None

    def ompd_initialize(self, version: c_uint64, table: Any) -> int:
        self.initialized.append((version.value, table._obj))
        return self.code

    @staticmethod
    def ompd_get_api_version(out: Any) -> int:
        out._obj.value = 202411
        return 0

    def ompd_ask(self) -> int:
        """Reads memory of the process, and returns what a test says."""
        self.ask()
        return self.code


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.inferior = Inferior()
        self.state = InferiorState(self.inferior)
        self.forgotten: list[None] = []
        self.callbacks = Callbacks({1: self.state}.get, lambda: self.forgotten.append(None), "fake")
        self.functions = Functions()
        patch = mock.patch("ctypes.CDLL", return_value=self.functions)
        self.opened = patch.start()
        self.addCleanup(patch.stop)
        self.library = Library(Path("/lib/libompd.so"), self.callbacks)

    def read(self) -> None:
        """What the library does to read memory."""
        self.callbacks.table.read_memory(1, None, byref(ompd.Address(0, 0x1000)), 1, ctypes.create_string_buffer(1))

    def test_it_is_initialized_with_the_newest_version_and_the_callbacks(self) -> None:
        self.opened.assert_called_once_with("/lib/libompd.so")
        [(version, table)] = self.functions.initialized
        self.assertEqual(version, 202411)
        self.assertIs(table, self.callbacks.table)
        self.assertEqual(self.library.version(), (2024, 11))
        self.assertEqual(str(self.library.path), "/lib/libompd.so")

    def test_a_library_that_refuses_to_begin_cannot_be_used(self) -> None:
        self.functions.code = 5
        with self.assertRaisesRegex(NoLibrary, "^/a/libompd.so cannot be used: ompd_initialize: not supported$"):
            Library(Path("/a/libompd.so"), self.callbacks)

    def test_a_library_without_the_function_cannot_be_used(self) -> None:
        self.opened.return_value = SimpleNamespace()
        with self.assertRaisesRegex(NoLibrary, "^/a/libompd.so cannot be used: .*ompd_initialize"):
            Library(Path("/a/libompd.so"), self.callbacks)

    def test_a_call_without_an_answer_says_which_and_why(self) -> None:
        self.library.call("ompd_ask")
        self.functions.code = 12
        with self.assertRaises(OmpdError) as raised:
            self.library.call("ompd_ask")
        self.assertEqual((raised.exception.code, str(raised.exception)), (12, "ompd_ask: fake did not answer"))
        self.assertIsNone(raised.exception.__cause__)
        self.assertEqual(self.forgotten, [])

    def test_what_the_debugger_refused_is_the_cause_and_nothing_is_kept(self) -> None:
        self.functions.ask, self.functions.code = self.read, 4
        with refusing(Inferior, "read"), self.assertRaises(OmpdError) as raised:
            self.library.call("ompd_ask")
        self.assertIsInstance(raised.exception.__cause__, DebuggerError)
        self.assertEqual(len(self.forgotten), 1)
        # The next call has nothing to do with it.
        self.functions.code = 0
        self.library.call("ompd_ask")
        self.assertEqual((len(self.forgotten), self.callbacks.failure), (1, None))

    def test_what_was_read_around_a_refusal_is_not_kept_although_the_call_has_an_answer(self) -> None:
        self.functions.ask = self.read
        with refusing(Inferior, "read"):
            self.library.call("ompd_ask")
        self.assertEqual(len(self.forgotten), 1)

    def test_an_interrupt_of_the_user_ends_the_command(self) -> None:
        self.functions.ask = self.read
        for code in (0, 4):
            self.functions.code = code
            with mock.patch.object(Inferior, "read", side_effect=KeyboardInterrupt()), self.assertRaises(KeyboardInterrupt):
                self.library.call("ompd_ask")
            self.assertIsNone(self.callbacks.failure)
        self.assertEqual(len(self.forgotten), 2)

    def test_a_text_is_copied_and_its_memory_given_back(self) -> None:
        def view(number: int, out: Any) -> int:
            block = c_void_p()
            self.callbacks.table.alloc_memory(16, byref(block))
            ctypes.memmove(block.value or 0, f"view {number} \u00e9".encode() + b"\xff\0", 11)
            out._obj.value = block.value
            return 0

        with mock.patch.object(self.functions, "ompdx_view", view, create=True):
            self.assertEqual(self.library.text("ompdx_view", 3), "view 3 \u00e9\ufffd")
        self.assertEqual(self.callbacks._memory, {})
        self.assertEqual(self.library.take(c_void_p()), "")


class Places(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.adapter = self.root / "debugger-plugin/gdb/openmp_gdb"
        self.adapter.mkdir(parents=True)

    def test_the_first_that_is_there_is_loaded(self) -> None:
        callbacks = Callbacks(lambda _: None, lambda: None, "fake")
        (self.adapter.parent / NAME).touch()
        with mock.patch("ctypes.CDLL", return_value=Functions()):
            library = Library.load(None, self.adapter, "choose PATH", callbacks)
            self.assertEqual(library.path, self.adapter.parent / NAME)
            (self.adapter / NAME).touch()
            library = Library.load(None, self.adapter, "choose PATH", callbacks)
            self.assertEqual(library.path, self.adapter / NAME)

    def test_what_is_no_library_cannot_be_used(self) -> None:
        (self.adapter / NAME).write_text("no library")
        debugger = Debugger(Inferior())
        expected = f"^{self.adapter / NAME} cannot be used: "
        with mock.patch.object(Debugger, "folder", self.adapter), self.assertRaisesRegex(NoLibrary, expected):
            Plugin(debugger).session.process()

    def test_without_one_all_places_are_named(self) -> None:
        with self.assertRaises(NoLibrary) as raised:
            Library.load(None, self.adapter, "choose PATH", Callbacks(lambda _: None, lambda: None, "fake"))
        self.assertEqual(
            str(raised.exception),
            f"libompd.so is not beside the plugin. Tried:\n  {self.adapter / NAME}\n  {self.adapter.parent / NAME}\n"
            "Build it (`cargo build --release --package ompd`), or say where it is: `choose PATH`.",
        )

    def test_a_checkout_builds_it_where_cargo_is_told_to(self) -> None:
        (self.root / "Cargo.toml").touch()
        with mock.patch.dict(os.environ, clear=False):
            os.environ.pop("CARGO_TARGET_DIR", None)
            self.assertEqual(candidates(None, self.adapter)[2:], [self.root / f"target/{kind}" / NAME for kind in ("release", "debug")])
            os.environ["CARGO_TARGET_DIR"] = "/cargo"
            self.assertEqual(candidates(None, self.adapter)[2:], [Path(f"/cargo/{kind}") / NAME for kind in ("release", "debug")])

    def test_home_is_known_in_the_path_that_the_user_chose(self) -> None:
        with mock.patch.dict(os.environ, {"HOME": "/users/own"}):
            self.assertEqual(candidates("~/libompd.so", self.adapter), [Path("/users/own/libompd.so")])


class Sessions(unittest.TestCase):
    def test_the_library_is_loaded_once_and_asks_about_all_inferiors(self) -> None:
        debugger = Debugger(Inferior(1, 100), Inferior(2, 200))
        for inferior in debugger.inferiors:
            assert isinstance(inferior, Inferior)
            inferior.all_threads = [Thread(1, inferior.pid + 1)]
        session = Plugin(debugger).session
        session.choice.path = __file__
        with mock.patch("ctypes.CDLL", return_value=Functions()) as opened:
            first, second = (session.process(inferior) for inferior in debugger.inferiors)
        self.assertEqual((opened.call_count, session.choice.loaded), (1, __file__))
        out = c_void_p()
        callbacks = first.library.callbacks
        ask = callbacks.table.get_thread_context_for_thread_id
        found = [ask(number, ompd.LWP, 8, byref(c_uint64(201)), byref(out)) for number in (1, 2, 3)]
        self.assertEqual(found, [ompd.UNAVAILABLE, ompd.OK, ompd.BAD_INPUT])
        # After a failure nothing that was read of any of them counts.
        before = [process.state.stop for process in (first, second)]
        callbacks.forget()
        self.assertTrue(all(process.state.stop > stop for process, stop in zip((first, second), before)))
        # What the debugger has no more is not known to the library either.
        session.removed(second.inferior)
        self.assertEqual(ask(2, ompd.LWP, 8, byref(c_uint64(201)), byref(out)), ompd.BAD_INPUT)


if __name__ == "__main__":
    unittest.main()
