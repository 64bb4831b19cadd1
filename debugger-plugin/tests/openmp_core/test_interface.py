"""The C interface as Python has it: that of the headers and of `docs/libompd.md`."""

from __future__ import annotations

import ctypes
import re
import unittest
from pathlib import Path
from typing import Any

import headers
from openmp_core import ompd
from openmp_core.errors import OmpdError
from openmp_core.process import EVENTS

PAGE = Path(__file__).resolve().parents[3] / "docs/libompd.md"

STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "ompd_address_t": ompd.Address,
    "ompd_device_type_sizes_t": ompd.TypeSizes,
    "ompd_frame_info_t": ompd.FrameInfo,
    "ompdx_stop_point_t": ompd.StopPoint,
    "ompdx_thread_label_t": ompd.ThreadLabel,
    "ompdx_text_options_t": ompd.TextOptions,
    "ompd_callbacks_t": ompd.Callbacks,
}
SIZES = {
    "uint8_t": 1,
    "uint16_t[OMPDX_REGISTERS]": 8,
    "int": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "char *": 8,
    "ompd_addr_t": 8,
    "ompd_seg_t": 8,
    "ompd_size_t": 8,
    "ompd_word_t": 8,
    "ompd_address_t": 16,
    "ompdx_event_t": 4,
    "ompdx_origin_t": 4,
    "ompdx_thread_label_t *": 8,
}


class Interface(unittest.TestCase):
    def test_structures_have_the_fields_of_the_headers(self) -> None:
        for name, structure in STRUCTURES.items():
            expected = headers.fields(name)
            self.assertTrue(expected, name)
            declared: list[Any] = list(structure._fields_)
            with self.subTest(name):
                self.assertEqual([field[0] for field in declared], [field for field, _ in expected])
                sizes = [SIZES.get(kind, ctypes.sizeof(ctypes.c_void_p)) for _, kind in expected]
                self.assertEqual([ctypes.sizeof(field[1]) for field in declared], sizes)

    def test_callbacks_are_functions_of_the_kinds_of_the_headers(self) -> None:
        kinds: dict[str, set[object]] = {}
        declared: list[Any] = list(ompd.Callbacks._fields_)
        for (_, kind), field in zip(headers.fields("ompd_callbacks_t"), declared):
            kinds.setdefault(kind, set()).add(field[1])
        for kind, found in kinds.items():
            with self.subTest(kind):
                self.assertEqual(len(found), 1)
                parameters = re.search(rf"\(\*{kind}\)\(([^)]*)\)", headers.TEXT)
                assert parameters is not None
                self.assertEqual(len(next(iter(found))._argtypes_), parameters[1].count(",") + 1)  # type: ignore[attr-defined]

    def test_return_codes_are_those_of_the_headers_and_each_has_a_text(self) -> None:
        codes = headers.constants("ompd_rc_t")
        for name in ("OK", "UNAVAILABLE", "STALE_HANDLE", "BAD_INPUT", "ERROR", "UNSUPPORTED", "NOMEM"):
            self.assertEqual(getattr(ompd, name), codes[f"ompd_rc_{name.lower()}"], name)
        # The library has no devices.
        without = {name for name, code in codes.items() if str(OmpdError("f", code)) == f"f: error {code}"}
        self.assertEqual(without, {"ompd_rc_ok", "ompd_rc_device_read_error", "ompd_rc_device_write_error"})

    def test_scopes_are_those_of_the_headers(self) -> None:
        scopes = headers.constants("ompd_scope_t")
        for name in ("ADDRESS_SPACE", "THREAD", "PARALLEL", "IMPLICIT_TASK", "TASK"):
            self.assertEqual(getattr(ompd, f"SCOPE_{name}"), scopes[f"ompd_scope_{name.lower()}"], name)

    def test_events_have_the_names_of_the_headers(self) -> None:
        events = headers.constants("ompdx_event_t")
        self.assertEqual(EVENTS, {number: name.removeprefix("ompdx_event_").replace("_", "-") for name, number in events.items()})

    def test_extensions_are_those_of_the_page_about_the_library(self) -> None:
        text = PAGE.read_text()
        self.assertEqual([f"{ompd.EXTRA_KIND}", f"{ompd.EXTRA_BULK}", f"{ompd.EXTRA_PARTIAL}"], re.findall(r"id kind (\d+)", text))
        names = ("REGISTERS", "STOP", "PIECES", "THREADS", "ALL_REGISTERS", "PARTIAL_REGISTERS")
        segments = re.findall(r"^ +\| `(0x6f6d\w+)` \|", text, re.MULTILINE)
        self.assertEqual([f"{getattr(ompd, f'EXTRA_{name}'):#x}" for name in names], segments)


if __name__ == "__main__":
    unittest.main()
