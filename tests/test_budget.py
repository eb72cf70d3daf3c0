"""Tests of the limits on untrusted input, such as the largest size of a file."""

from __future__ import annotations

import pytest

from cuda_tma import _budget, _files

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LIMITS = {
    "ALIGNMENT_BYTES": 64 * KIB,
    "BASELINE_BYTES": 64 * MIB,
    "CALL_DEPTH": 256 * KIB // 64,
    "COMPILER_BYTES": 8 * GIB,
    "COMPLAINT_CHARACTERS": 32 * KIB,
    "DEMANGLED_CHARACTERS": MIB,
    "KERNEL_BYTES": 32 * MIB,
    "LAYOUT_STEPS": 32 * 128 * 512,
    "LOCAL_BYTES": GIB,
    "MANGLED_CHARACTERS": 4 * KIB,
    "MODULE_BYTES": GIB,
    "NAME_BYTES": 64 * MIB,
    "NESTING": 100,
    "OUTPUT_CHARACTERS": 4 * MIB,
    "PARAMETER_BYTES": 32764,
    "PATH_CHARACTERS": 4 * KIB,
    "RECORDED_BYTES": 2 * GIB,
    "RECORDING_TEXT_BYTES": 256 * MIB,
    "REGISTERS": 512 * KIB,
    "REGISTER_BYTES": GIB,
    "SOURCE_BYTES": 4 * MIB,
    "STACK_BYTES": 256 * KIB,
    "SUPPRESSIONS_BYTES": MIB,
    "TEXT_CHARACTERS": 64 * KIB,
    "TOKENS": 4 * MIB,
    "VARIABLES": 16 * KIB,
}


def test_limits():
    assert {name: getattr(_budget, name) for name in _budget.__all__} == LIMITS


def test_a_file_at_its_limit(tmp_path):
    path = tmp_path / "some"
    path.write_bytes(b"\xef\xbb\xbfab\r\nc\rd")
    assert _files.text_of_file(path, 10) == "ab\nc\nd"
    with pytest.raises(ValueError, match="some has more than 9 bytes, the limit of a file of this kind"):
        _files.text_of_file(path, 9)
