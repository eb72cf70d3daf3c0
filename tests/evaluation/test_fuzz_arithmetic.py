"""Tests of the fuzzers of scalar instructions and of driver calls. Right cases pass, and the fuzzers find a planted
fault."""

from __future__ import annotations

import struct

import pytest

from evaluation.fuzzing import fuzz_arithmetic, fuzz_driver
from evaluation.fuzzing.arithmetic import OPERATIONS

COMPUTE = {operation.text.split(" ")[0]: operation.compute for operation in OPERATIONS}


def test_random_programs_are_right():
    assert [fuzz_arithmetic.wrong(seed) for seed in range(25)] == [""] * 25


def test_a_wrong_result_is_named(monkeypatch):
    wrong = tuple(each._replace(compute=lambda *_: 7) if "xor" in each.text else each for each in OPERATIONS)
    monkeypatch.setattr(fuzz_arithmetic, "OPERATIONS", wrong)
    found = [fuzz_arithmetic.wrong(seed) for seed in range(12)]
    assert any(text.startswith("xor.b32 {0}, {1}, {2}; of [") and text.endswith("not 0x7") for text in found)


def bits(value: float) -> int:
    return struct.unpack("I", struct.pack("f", value))[0]


@pytest.mark.parametrize(
    ("opcode", "given", "result"),
    [
        ("add.rn.f32", (1.0, 2.0**-24), 1.0),
        ("add.rn.f32", (1.0, 3 * 2.0**-24), 1.0 + 2.0**-22),
        ("mul.rn.f32", (2.0**-75, 2.0**-75), 0.0),
        ("mul.rn.f32", (2.0**-74, 1.25 * 2.0**-75), 2.0**-149),
        ("mul.rn.f32", (2.0**100, -(2.0**100)), float("-inf")),
        ("div.rn.f32", (1.0, 3.0), struct.unpack("f", struct.pack("I", 0x3EAAAAAB))[0]),
        ("sqrt.rn.f32", (2.0,), struct.unpack("f", struct.pack("I", 0x3FB504F3))[0]),
        ("fma.rn.f32", (1.0 + 2.0**-23, 1.0 + 2.0**-23, -1.0 - 2.0**-22), 2.0**-46),
    ],
)
def test_the_reference_rounds_to_nearest(opcode, given, result):
    assert COMPUTE[opcode](*map(bits, given)) == bits(result)


def test_a_sequence_of_driver_calls_agrees_with_the_model():
    assert fuzz_driver.fault_of(7, 150) == ""


def test_a_sequence_without_an_end_is_a_fault(tmp_path, monkeypatch):
    (tmp_path / "calls.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(fuzz_driver, "CALLS", tmp_path / "calls.py")
    assert fuzz_driver.fault_of(7, 150) != ""
