"""What the library gets for its questions about a process, and what becomes of failures in between."""

from __future__ import annotations

import ctypes
import unittest
from ctypes import byref, c_char, c_uint32, c_uint64, c_void_p
from typing import Any
from unittest import mock

from fake import Inferior, Thread, refusing
from openmp_core import ompd
from openmp_core.callbacks import Callbacks
from openmp_core.debugger import TypeSizes
from openmp_core.inferior import AARCH64, UNUSED, X86_64, InferiorState

NUMBER = 7
#: What an address has beside its count, in segments that take one.
MARK = 1 << 63
SET = 27 * 8


def words(*numbers: int) -> bytes:
    """Numbers of eight bytes each."""
    return b"".join(number.to_bytes(8, "little") for number in numbers)


class Questions(unittest.TestCase):
    def setUp(self) -> None:
        self.inferior = Inferior(NUMBER)
        self.inferior.all_threads = [Thread(1, 11), Thread(2, 12)]
        self.inferior.all_threads[0].values = {name: n for n, name in enumerate(X86_64)}
        self.inferior.memory = {0x1000: b"abcdefgh"}
        self.state = InferiorState(self.inferior)
        self.callbacks = Callbacks({NUMBER: self.state}.get, lambda: None, "fake")
        self.table = self.callbacks.table

    def read(
        self, address: int, size: int, *, segment: int = 0, thread: int | None = None, question: bytes = b"", context: int | None = NUMBER
    ) -> tuple[int, bytes]:
        """The return code, and what is in the buffer then. Before, it has the question and then dots."""
        buffer = ctypes.create_string_buffer(question.ljust(size, b"."), max(size, 1))
        code = self.table.read_memory(context, thread, byref(ompd.Address(segment, address)), size, buffer)
        return code, buffer.raw[:size]

    def text(self, address: int, size: int, context: int | None = NUMBER) -> tuple[int, bytes]:
        """The same for a string."""
        buffer = ctypes.create_string_buffer(b"." * size, max(size, 1))
        code = self.table.read_string(context, None, byref(ompd.Address(0, address)), size, buffer)
        return code, buffer.raw[:size]

    def test_memory_is_read_whole_or_not_at_all(self) -> None:
        self.assertEqual(self.read(0x1002, 4), (ompd.OK, b"cdef"))
        self.assertEqual(self.read(0x1006, 4), (ompd.ERROR, b"...."))
        self.assertEqual(self.read(0x1002, 4, context=8), (ompd.ERROR, b"...."))
        self.assertEqual(self.read(0x1002, 4, context=None), (ompd.ERROR, b"...."))
        self.assertEqual(self.state.asked, {"read_memory": 2})

    def test_a_short_answer_of_the_debugger_is_a_failure(self) -> None:
        with mock.patch.object(Inferior, "read", return_value=memoryview(b"abc")):
            self.assertEqual(self.read(0x1000, 4), (ompd.ERROR, b"...."))
            self.assertEqual(self.read(0x1000, 3), (ompd.OK, b"abc"))

    def test_an_unknown_segment_is_not_supported(self) -> None:
        for segment in (1, ompd.EXTRA_REGISTERS - 1, ompd.EXTRA_PARTIAL_REGISTERS + 1):
            self.assertEqual(self.read(0x1000, 4, segment=segment), (ompd.UNSUPPORTED, b"...."))

    def test_the_number_of_the_stop_has_eight_bytes_and_is_not_counted(self) -> None:
        self.inferior.stops = 0x1234
        self.assertEqual(self.read(MARK, 8, segment=ompd.EXTRA_STOP), (ompd.OK, words(self.state.stop)))
        self.assertEqual(self.read(MARK, 4, segment=ompd.EXTRA_STOP)[0], ompd.BAD_INPUT)
        self.assertEqual(self.read(MARK, 16, segment=ompd.EXTRA_STOP)[0], ompd.BAD_INPUT)
        self.assertEqual(self.read(MARK, 8, segment=ompd.EXTRA_STOP, context=8)[0], ompd.BAD_INPUT)
        self.assertEqual(self.state.asked, {})

    def test_registers_are_those_of_the_thread(self) -> None:
        expected = words(*(0 if name in UNUSED else n for n, name in enumerate(X86_64)))
        self.assertEqual(self.read(MARK, SET, segment=ompd.EXTRA_REGISTERS, thread=11), (ompd.OK, expected))
        for thread in (12, 99, None):
            self.assertEqual(self.read(MARK, SET, segment=ompd.EXTRA_REGISTERS, thread=thread)[0], ompd.ERROR)
        self.assertEqual(self.read(MARK, SET, segment=ompd.EXTRA_REGISTERS, thread=11, context=8)[0], ompd.ERROR)
        self.assertEqual(self.state.asked, {"registers": 4})

    def test_pieces_of_memory_come_together(self) -> None:
        code, answer = self.read(MARK | 2, 32, segment=ompd.EXTRA_PIECES, question=words(0x1000, 8, 0x2000, 8))
        self.assertEqual((code, answer), (ompd.OK, words(1) + b"abcdefgh" + words(0, 0)))
        self.assertEqual(self.read(MARK | 2, 32, segment=ompd.EXTRA_PIECES, question=words(0, 0), context=8)[0], ompd.ERROR)
        self.assertEqual(self.state.asked, {"pieces of memory": 1})

    def test_threads_come_with_their_number(self) -> None:
        self.assertEqual(self.read(MARK, 24, segment=ompd.EXTRA_THREADS), (ompd.OK, words(2, 11, 12)))
        self.assertEqual(self.read(MARK, 24, segment=ompd.EXTRA_THREADS, context=8)[0], ompd.ERROR)
        self.assertEqual(self.state.asked, {"threads": 1})

    def test_registers_of_many_threads_come_together(self) -> None:
        rest = words(*(0 if name in UNUSED else n for n, name in enumerate(X86_64)))
        there = sum(1 << n for n, name in enumerate(X86_64) if name not in UNUSED)
        self.inferior.all_threads.append(Thread(3, 13))
        self.inferior.all_threads[1].values = self.inferior.all_threads[0].values
        size = 3 * (8 + SET)
        for segment, mark in ((ompd.EXTRA_ALL_REGISTERS, 1), (ompd.EXTRA_PARTIAL_REGISTERS, there)):
            code, answer = self.read(MARK | 3, size, segment=segment, question=words(11, 12, 13))
            self.assertEqual((code, answer), (ompd.OK, (words(mark) + rest) * 2 + bytes(8 + SET)))
            self.assertEqual(self.read(MARK, size, segment=segment)[0], ompd.ERROR, "no thread was asked about")
            self.assertEqual(self.read(MARK | 2, size, segment=segment, question=words(11, 12), context=8)[0], ompd.ERROR)
        self.assertEqual(self.state.asked, {"registers of all threads": 4})
        self.read(MARK | 1, 8 + SET, segment=ompd.EXTRA_PARTIAL_REGISTERS, question=words(11))
        self.assertEqual(self.state.asked["registers"], 1)

    def test_a_string_ends_before_memory_that_cannot_be_read(self) -> None:
        self.inferior.memory = {0x103B: b"omp\0.", 0x2010: b"x" * 100 + bytes(28), 0x3000: b"endless"}
        self.assertEqual(self.text(0x103B, 100)[1][:6], b"omp\0..")
        code, found = self.text(0x2010, 200)
        self.assertEqual((code, found.partition(b"\0")[0]), (ompd.OK, b"x" * 100))
        self.assertEqual(self.text(0x3000, 7), (ompd.OK, b"endless"))
        self.assertEqual(self.text(0x3000, 3), (ompd.OK, b"end"))
        self.assertEqual(self.text(0x3000, 8), (ompd.ERROR, b"........"))
        self.assertEqual(self.text(0x3000, 0)[0], ompd.ERROR)
        self.assertEqual(self.text(0x3000, 7, context=8), (ompd.ERROR, b"......."))
        self.assertEqual(self.state.asked, {"read_string": 6})
        self.assertIsNone(self.callbacks.failure)

    def test_a_string_does_not_go_beyond_its_buffer(self) -> None:
        self.inferior.memory = {0x2010: b"x" * 200}
        buffer = ctypes.create_string_buffer(b"." * 200, 200)
        # Two blocks of memory, of which the second is not wanted whole.
        code = self.table.read_string(NUMBER, None, byref(ompd.Address(0, 0x2010)), 60, buffer)
        self.assertEqual((code, buffer.raw), (ompd.OK, b"x" * 60 + b"." * 140))

    def test_nothing_is_written(self) -> None:
        buffer = ctypes.create_string_buffer(b"new")
        code = self.table.write_memory(NUMBER, None, byref(ompd.Address(0, 0x1000)), 3, buffer)
        self.assertEqual((code, self.read(0x1000, 4)[1]), (ompd.UNSUPPORTED, b"abcd"))

    def test_numbers_of_a_process_with_the_other_byte_order_are_swapped(self) -> None:
        for swapped, expected in ((False, b"abcdefgh"), (True, b"badcfehg")):
            self.state = InferiorState(self.inferior)
            callbacks = Callbacks({NUMBER: self.state}.get, lambda: None, "fake")
            with mock.patch.object(Inferior, "is_big_endian", return_value=swapped) as asked:
                for copy in (callbacks.table.device_to_host, callbacks.table.host_to_device):
                    target = ctypes.create_string_buffer(b"." * 9, 9)
                    self.assertEqual(copy(NUMBER, b"abcdefgh", 2, 4, target), ompd.OK)
                    self.assertEqual(target.raw, expected + b".")
                self.assertEqual(asked.call_count, 1)
        self.assertEqual(self.table.device_to_host(8, b"ab", 2, 1, (c_char * 2)()), ompd.ERROR)

    def context(self, kind: int, identifier: c_uint32 | c_uint64 | ctypes.Array[c_char], context: int = NUMBER) -> tuple[int, int | None]:
        """The return code, and the context of a thread."""
        out = c_void_p(5)
        size = ctypes.sizeof(identifier)
        code = self.table.get_thread_context_for_thread_id(context, kind, size, byref(identifier), byref(out))
        return code, out.value

    def test_the_context_of_a_thread_is_its_kernel_id(self) -> None:
        self.assertEqual(self.context(ompd.LWP, c_uint64(12)), (ompd.OK, 12))
        self.assertEqual(self.context(ompd.LWP, c_uint32(11)), (ompd.OK, 11))
        self.assertEqual(self.context(ompd.PTHREAD, c_uint64(0x7F00_0000_0000 + 12)), (ompd.OK, 12))
        self.assertEqual(self.context(ompd.LWP, c_uint64(99)), (ompd.UNAVAILABLE, 5))
        self.assertEqual(self.context(ompd.PTHREAD, c_uint64(12)), (ompd.UNAVAILABLE, 5))
        self.assertEqual(self.context(2, c_uint64(12)), (ompd.UNSUPPORTED, 5))
        self.assertEqual(self.context(ompd.LWP, ctypes.create_string_buffer(2)), (ompd.BAD_INPUT, 5))
        self.assertEqual(self.context(ompd.LWP, c_uint64(12), context=8), (ompd.BAD_INPUT, 5))
        self.assertEqual(self.state.asked, {"get_thread_context_for_thread_id": 7})

    def test_extensions_are_offered(self) -> None:
        for kind in (1_071_707, 1_071_708, 1_071_709):
            self.assertEqual(self.context(kind, c_uint64(0)), (ompd.OK, 5))
        self.assertEqual(self.context(1_071_710, c_uint64(0))[0], ompd.UNSUPPORTED)

    def test_sizes_of_types_are_the_debuggers(self) -> None:
        sizes = ompd.TypeSizes()
        with mock.patch.object(Inferior, "type_sizes", return_value=TypeSizes(1, 2, 3, 4, 5, 6)):
            self.assertEqual(self.table.sizeof_type(NUMBER, byref(sizes)), ompd.OK)
        names = [f"sizeof_{name}" for name in ("char", "short", "int", "long", "long_long", "pointer")]
        self.assertEqual([getattr(sizes, name) for name in names], [1, 2, 3, 4, 5, 6])
        with refusing(Inferior, "type_sizes"):
            self.assertEqual(self.table.sizeof_type(NUMBER, byref(sizes)), ompd.ERROR)
        self.assertIsNone(self.callbacks.failure, "the library does without")
        self.assertEqual(self.table.sizeof_type(8, byref(sizes)), ompd.ERROR)
        self.assertEqual(self.state.asked, {"sizeof_type": 2})

    def test_a_symbol_has_an_address_or_is_not_available(self) -> None:
        self.inferior.symbols = {"omp_version": 0x5000}
        for context, name, expected in (
            (NUMBER, b"omp_version", (ompd.OK, 0x5000)),
            (NUMBER, b"absent", (ompd.UNAVAILABLE, 1)),
            (NUMBER, b"omp_\xff", (ompd.UNAVAILABLE, 1)),
            (8, b"omp_version", (ompd.ERROR, 1)),
        ):
            out = ompd.Address(1, 1)
            code = self.table.symbol_addr_lookup(context, None, name, byref(out), None)
            self.assertEqual((code, out.address), expected)
            self.assertEqual(out.segment, 1 if code else 0)
        self.assertEqual(self.state.asked, {"symbol_addr_lookup": 3})

    def test_memory_for_the_library_is_kept_until_it_is_freed(self) -> None:
        blocks = [c_void_p(), c_void_p()]
        for block, size in zip(blocks, (16, 0)):
            self.assertEqual(self.table.alloc_memory(size, byref(block)), ompd.OK)
            self.assertTrue(block.value)
            ctypes.memmove(block.value or 0, b"a" * size, size)
        held = [len(memory) for memory in self.callbacks._memory.values()]
        self.assertEqual(held, [16, 1])
        self.assertEqual([self.table.free_memory(block) for block in (blocks[0], None)], [ompd.OK] * 2)
        self.assertEqual(list(self.callbacks._memory), [blocks[1].value])
        for size in (1 << 62, (1 << 64) - 1):
            self.assertEqual(self.table.alloc_memory(size, byref(blocks[0])), ompd.NOMEM)

    def test_what_the_library_says_is_kept(self) -> None:
        self.assertEqual(self.callbacks.said, "")
        self.assertEqual(self.table.print_string(b" no runtime \xc3\xa9 \xff\n", 0), ompd.OK)
        self.assertEqual(self.callbacks.said, "no runtime \u00e9 \ufffd")


class Failures(unittest.TestCase):
    """What an adapter raises while the library asks."""

    def setUp(self) -> None:
        self.inferior = Inferior(NUMBER)
        self.inferior.memory = {0x1000: b"abcdefgh"}
        self.callbacks = Callbacks({NUMBER: InferiorState(self.inferior)}.get, lambda: None, "fake")

    def read(self) -> int:
        buffer = ctypes.create_string_buffer(4)
        return int(self.callbacks.table.read_memory(NUMBER, None, byref(ompd.Address(0, 0x1000)), 4, buffer))

    def failing(self, failure: BaseException) -> Any:
        return mock.patch.object(Inferior, "read", side_effect=failure)

    def test_a_failure_is_kept_for_the_caller_and_the_next_question_answered(self) -> None:
        failure = ValueError("a bug of the adapter")
        with self.failing(failure):
            self.assertEqual(self.read(), ompd.ERROR)
        self.assertIs(self.callbacks.failure, failure)
        self.assertEqual(self.read(), ompd.OK)

    def test_after_an_interrupt_nothing_is_asked_any_more(self) -> None:
        with self.failing(KeyboardInterrupt()):
            self.assertEqual(self.read(), ompd.ERROR)
        with mock.patch.object(Inferior, "read") as asked:
            self.assertEqual(self.read(), ompd.ERROR)
        asked.assert_not_called()
        self.assertIsInstance(self.callbacks.failure, KeyboardInterrupt)


class Registers(unittest.TestCase):
    """The library knows registers by their places in `struct user_regs_struct` and `struct user_pt_regs`."""

    def test_places_of_the_registers_that_the_library_reads(self) -> None:
        for number, name in ((4, "rbp"), (10, "rax"), (14, "rdi"), (15, "orig_rax"), (16, "rip"), (19, "rsp"), (21, "fs_base")):
            self.assertEqual(X86_64[number], name)
        for number, name in ((0, "x0"), (29, "x29"), (30, "x30"), (31, "sp"), (32, "pc"), (33, "cpsr"), (34, "tpidr")):
            self.assertEqual(AARCH64[number], name)

    def test_a_debugger_is_asked_by_the_names_that_adapters_translate(self) -> None:
        inferior = Inferior()
        inferior.all_threads = [Thread(1, 11)]
        with mock.patch.object(Inferior, "registers", return_value=[None]) as asked:
            InferiorState(inferior).registers([11])
        _, names = asked.call_args.args
        general = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi"
        self.assertEqual(names["x86-64"], f"{general} orig_rax rip rsp fs_base".split())
        self.assertEqual(names["aarch64"], [f"x{n}" for n in range(31)] + ["sp", "pc", "cpsr", "tpidr"])


if __name__ == "__main__":
    unittest.main()
