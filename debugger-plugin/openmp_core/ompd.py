"""The C interface of libompd.so: its types and constants.

Names are those of the OpenMP specification (OpenMP 6.0, chapters 39 to 42) and of `ompd-ext.h`.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

#: OpenMP 6.0: the newest of the interfaces that the library speaks.
API_VERSION = 202411

OK = 0
UNAVAILABLE = 1
STALE_HANDLE = 2
BAD_INPUT = 3
ERROR = 4
UNSUPPORTED = 5
NOMEM = 10

#: Kinds of native thread ids.
PTHREAD = 0
LWP = 1

#: Scopes of control variables.
SCOPE_ADDRESS_SPACE = 2
SCOPE_THREAD = 3
SCOPE_PARALLEL = 4
SCOPE_IMPLICIT_TASK = 5
SCOPE_TASK = 6

#: Extensions of OMPD (docs/libompd.md): the kind of thread id that asks for them, the segment with
#: registers of threads, and the one with the count of stops.
EXTRA_KIND = 1_071_707
EXTRA_REGISTERS = 0x6F6D_7064_0001
EXTRA_STOP = 0x6F6D_7064_0002

#: The kind that asks for the segments in which many things are read at once.
EXTRA_BULK = 1_071_708
EXTRA_PIECES = 0x6F6D_7064_0003
EXTRA_THREADS = 0x6F6D_7064_0004
EXTRA_ALL_REGISTERS = 0x6F6D_7064_0005

#: The kind that asks for the segment with registers of which some may be absent.
EXTRA_PARTIAL = 1_071_709
EXTRA_PARTIAL_REGISTERS = 0x6F6D_7064_0006


class Address(Structure):
    """`ompd_address_t`."""

    _fields_ = [("segment", c_uint64), ("address", c_uint64)]


class TypeSizes(Structure):
    """`ompd_device_type_sizes_t`."""

    _fields_ = [
        ("sizeof_char", c_uint8),
        ("sizeof_short", c_uint8),
        ("sizeof_int", c_uint8),
        ("sizeof_long", c_uint8),
        ("sizeof_long_long", c_uint8),
        ("sizeof_pointer", c_uint8),
    ]


class FrameInfo(Structure):
    """`ompd_frame_info_t`."""

    _fields_ = [("frame_address", Address), ("frame_flag", c_uint64)]


class StopPoint(Structure):
    """`ompdx_stop_point_t`."""

    _fields_ = [
        ("point", c_uint64),
        ("event", c_int),
        ("own", c_int),
        ("address", Address),
        ("origin", c_int),
        ("register_count", c_int),
        ("registers", c_uint16 * 4),
        ("runtime", c_char_p),
        ("place", c_char_p),
        ("condition", c_char_p),
    ]


class ThreadLabel(Structure):
    """`ompdx_thread_label_t`."""

    _fields_ = [("lwp", c_int64), ("label", c_char_p)]


#: More columns than any text has. For the library, 0 is 80 columns.
UNLIMITED = 0xFFFF


class TextOptions(Structure):
    """`ompdx_text_options_t`."""

    _fields_ = [
        ("width", c_int),
        ("verbose", c_int),
        ("colour", c_int),
        ("labels", POINTER(ThreadLabel)),
        ("label_count", c_uint64),
    ]


#: The callbacks, in the order of `ompd_callbacks_t`.
AllocMemory = CFUNCTYPE(c_int, c_uint64, POINTER(c_void_p))
FreeMemory = CFUNCTYPE(c_int, c_void_p)
PrintString = CFUNCTYPE(c_int, c_char_p, c_int)
SizeofType = CFUNCTYPE(c_int, c_void_p, POINTER(TypeSizes))
SymbolAddrLookup = CFUNCTYPE(c_int, c_void_p, c_void_p, c_char_p, POINTER(Address), c_char_p)
ReadMemory = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(Address), c_uint64, c_void_p)
WriteMemory = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(Address), c_uint64, c_void_p)
DeviceHost = CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint64, c_uint64, c_void_p)
ThreadContextForId = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64, c_void_p, POINTER(c_void_p))


class Callbacks(Structure):
    """`ompd_callbacks_t`."""

    _fields_ = [
        ("alloc_memory", AllocMemory),
        ("free_memory", FreeMemory),
        ("print_string", PrintString),
        ("sizeof_type", SizeofType),
        ("symbol_addr_lookup", SymbolAddrLookup),
        ("read_memory", ReadMemory),
        ("write_memory", WriteMemory),
        ("read_string", ReadMemory),
        ("device_to_host", DeviceHost),
        ("host_to_device", DeviceHost),
        ("get_thread_context_for_thread_id", ThreadContextForId),
    ]
