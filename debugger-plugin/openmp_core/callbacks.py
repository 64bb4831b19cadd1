"""The callbacks for libompd.so: those of OMPD, and its extensions (docs/libompd.md)."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable

from . import ompd
from .errors import DebuggerError
from .inferior import InferiorState

#: The part of an address that is a count, in the segments that take one.
COUNT = (1 << 32) - 1


def _guarded(function: Callable[..., int]) -> Callable[..., int]:
    """Has a callback that fails answer so. By itself, ctypes prints a traceback and answers success."""

    @functools.wraps(function)
    def guarded(self: Callbacks, *arguments: object) -> int:
        if self.failure is not None and not isinstance(self.failure, Exception):
            # The user has pressed Ctrl-C: the call is to end.
            return ompd.ERROR
        try:
            return function(self, *arguments)
        except BaseException as failure:
            self.failure = failure
            return ompd.ERROR

    return guarded


class Callbacks:
    """The table of callbacks, one for all inferiors: the context is the inferior's number."""

    def __init__(self, find: Callable[[int], InferiorState | None], forget: Callable[[], None], debugger: str) -> None:
        self._find = find
        #: How the debugger is named in texts.
        self.debugger = debugger
        #: Has everything read anew.
        self.forget = forget
        #: Memory that was given to the library, by address.
        self._memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        #: What went wrong in a callback, since it was last looked at.
        self.failure: BaseException | None = None
        #: What the library has said last: why it refused a process.
        self.said = ""
        copy = ompd.DeviceHost(self._device_host)
        read = ompd.ReadMemory(self._read_memory)
        self.table = ompd.Callbacks(
            ompd.AllocMemory(self._alloc),
            ompd.FreeMemory(self._free),
            ompd.PrintString(self._print),
            ompd.SizeofType(self._sizeof),
            ompd.SymbolAddrLookup(self._symbol),
            read,
            ompd.WriteMemory(self._write_memory),
            ompd.ReadMemory(self._read_string),
            copy,
            copy,
            ompd.ThreadContextForId(self._thread_context),
        )

    def take(self, address: int) -> None:
        """Memory that the library has handed out is not needed any more."""
        self._memory.pop(address, None)

    def _asked(self, number: int | None, what: str) -> InferiorState | None:
        state = self._find(number or 0)
        if state is not None:
            state.asked[what] = state.asked.get(what, 0) + 1
        return state

    @_guarded
    def _alloc(self, size: int, out: ctypes._Pointer[ctypes.c_void_p]) -> int:
        try:
            block = ctypes.create_string_buffer(max(size, 1))
        except (MemoryError, OverflowError, ValueError):
            return ompd.NOMEM
        address = ctypes.addressof(block)
        self._memory[address] = block
        out[0] = ctypes.c_void_p(address)
        return ompd.OK

    @_guarded
    def _free(self, address: int | None) -> int:
        self.take(address or 0)
        return ompd.OK

    @_guarded
    def _print(self, text: bytes, _category: int) -> int:
        self.said = text.decode("utf-8", "replace").strip()
        return ompd.OK

    @_guarded
    def _sizeof(self, context: int, out: ctypes._Pointer[ompd.TypeSizes]) -> int:
        state = self._asked(context, "sizeof_type")
        if state is None:
            return ompd.ERROR
        try:
            sizes = state.inferior.type_sizes()
        except DebuggerError:
            return ompd.ERROR
        out[0] = ompd.TypeSizes(*sizes)
        return ompd.OK

    @_guarded
    def _symbol(self, context: int, _thread: int | None, name: bytes, out: ctypes._Pointer[ompd.Address], _file: bytes | None) -> int:
        state = self._asked(context, "symbol_addr_lookup")
        if state is None:
            return ompd.ERROR
        found = state.symbol(name.decode("ascii", "replace"))
        if found is None:
            return ompd.UNAVAILABLE
        out[0] = ompd.Address(0, found)
        return ompd.OK

    @_guarded
    def _read_memory(self, context: int, thread: int | None, at: ctypes._Pointer[ompd.Address], size: int, buffer: int) -> int:
        segment, address = at[0].segment, at[0].address
        if segment == ompd.EXTRA_STOP:
            state = self._find(context)
            if state is None or size != 8:
                return ompd.BAD_INPUT
            found: bytes | memoryview | None = state.stop.to_bytes(8, "little")
        elif segment == ompd.EXTRA_REGISTERS:
            state = self._asked(context, "registers")
            found = state.registers([thread or 0])[0] if state else None
        elif segment == ompd.EXTRA_PIECES:
            state = self._asked(context, "pieces of memory")
            found = state.pieces(ctypes.string_at(buffer, 16 * (address & COUNT)), size) if state else None
        elif segment == ompd.EXTRA_THREADS:
            state = self._asked(context, "threads")
            found = state.lwps(size) if state else None
        elif segment == ompd.EXTRA_ALL_REGISTERS:
            state = self._asked(context, "registers of all threads")
            found = state.all_registers(ctypes.string_at(buffer, 8 * (address & COUNT)), size) if state else None
        elif segment == ompd.EXTRA_PARTIAL_REGISTERS:
            state = self._asked(context, "registers of all threads" if address & COUNT != 1 else "registers")
            found = state.partial_registers(ctypes.string_at(buffer, 8 * (address & COUNT)), size) if state else None
        elif segment:
            return ompd.UNSUPPORTED
        else:
            state = self._asked(context, "read_memory")
            found = state.read(address, size) if state else None
        if found is None or len(found) < size:
            return ompd.ERROR
        ctypes.memmove(buffer, bytes(found), size)
        return ompd.OK

    @_guarded
    def _read_string(self, context: int, _thread: int | None, at: ctypes._Pointer[ompd.Address], size: int, buffer: int) -> int:
        state = self._asked(context, "read_string")
        text = bytearray()
        while state is not None and len(text) < size and 0 not in text:
            address = at[0].address + len(text)
            part = state.read(address, min(size - len(text), 64 - address % 64))
            if part is None:
                return ompd.ERROR
            text += part
        if not text:
            return ompd.ERROR
        ctypes.memmove(buffer, bytes(text), len(text))
        return ompd.OK

    @_guarded
    def _write_memory(self, *_: object) -> int:
        # Nothing is ever written.
        return ompd.UNSUPPORTED

    @_guarded
    def _device_host(self, context: int, source: int, unit: int, count: int, target: int) -> int:
        state = self._find(context)
        if state is None:
            return ompd.ERROR
        data = ctypes.string_at(source, unit * count)
        if state.is_swapped():
            data = b"".join(data[n : n + unit][::-1] for n in range(0, len(data), unit))
        ctypes.memmove(target, data, len(data))
        return ompd.OK

    @_guarded
    def _thread_context(self, context: int, kind: int, size: int, identifier: int, out: ctypes._Pointer[ctypes.c_void_p]) -> int:
        state = self._asked(context, "get_thread_context_for_thread_id")
        if state is None or size not in (4, 8):
            return ompd.BAD_INPUT
        number = int.from_bytes(ctypes.string_at(identifier, size), "little")
        if kind in (ompd.EXTRA_KIND, ompd.EXTRA_BULK, ompd.EXTRA_PARTIAL):
            return ompd.OK
        if kind == ompd.LWP:
            thread = state.thread(number)
        elif kind == ompd.PTHREAD:
            thread = state.thread_by_pthread(number)
        else:
            return ompd.UNSUPPORTED
        if thread is None:
            return ompd.UNAVAILABLE
        # The context of a thread is its kernel thread id.
        out[0] = ctypes.c_void_p(thread.lwp)
        return ompd.OK
