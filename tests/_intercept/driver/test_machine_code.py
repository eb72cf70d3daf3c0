"""Tests of modules in machine code. If no adapter has stored the PTX of the machine code, the error contains the names
of the kernels."""

from __future__ import annotations

import struct

import pytest

from cuda_tma._intercept.driver import machine_code
from cuda_tma._intercept.driver.images import NoPTX, ptx_of

CODE = b"\x7fELF" + bytes(60) + b"\0.text.my_kernel\0.nv.info.my_kernel\0.text._Z5otherPf\0" + bytes(range(256)) * 2


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    monkeypatch.setattr(machine_code, "_kept", [])
    return machine_code.keep


def fat_binary(code: bytes) -> bytes:
    entry = struct.pack("<HHIQI4xHHIIIQ8xQ", 2, 0x101, 64, len(code), 0, 0, 0, 90, 0, 0, 0x11, len(code)) + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


@pytest.mark.parametrize("image", [CODE, CODE[:400], fat_binary(CODE)])
def test_kept_ptx_is_found(kept, image):
    kept(CODE, "first")
    kept(CODE[:300] + b"other" + CODE[305:], "second")
    kept(CODE, "third")
    assert ptx_of(image, (9, 0)) == "third"


def test_other_code_is_refused_with_its_kernels(kept):
    kept(CODE[:100] + b"x" + CODE[101:], "another")
    with pytest.raises(NoPTX, match="machine code of my_kernel, _Z5otherPf, and the simulator runs PTX"):
        ptx_of(CODE, (9, 0))
    with pytest.raises(NoPTX, match="machine code for sm_90"):
        ptx_of(fat_binary(CODE), (9, 0))
