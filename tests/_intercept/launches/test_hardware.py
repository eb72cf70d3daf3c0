"""Tests of recorded launches with the results of a GPU. A replay compares the memory byte for byte or within a
bound."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._intercept.launches import (
    Hardware,
    MemorySegment,
    captured,
    compared_replay,
    read_recording,
    replayed,
    write_recording,
)
from cuda_tma._intercept.launches.hardware import open_results
from cuda_tma._intercept.launches.values import launch_of, values_of_launch

SCALE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 values) {
    .reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [values];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    OPERATION
    st.global.f32 [%rd3], %f2;
    ret;
}
"""
EXACT, APPROXIMATE = "mul.rn.f32 %f2, %f1, 0f40000000;", "ex2.approx.f32 %f2, %f1;"


def launch_with(operation: str, change=lambda values: values, **outcome):
    """Return a recorded launch of a fake GPU, whose results differ from the simulator's results by a given change."""
    gpu = simulate.Device()
    values = np.linspace(0.5, 4, 64, dtype=np.float32)
    kernel, config = gpu.load(SCALE.replace("OPERATION", operation), "scale"), simulate.Config(1, 64)
    value = captured(gpu, config, kernel, [values], kernel="scale", runtime="GPU")
    gpu.launch(config, kernel, values)
    ((segment),) = value.memory
    changed = (MemorySegment(segment.address, np.asarray(change(values)).tobytes()),)
    return replace(value, hardware=Hardware("a GPU", changed=changed, **outcome))


def one_more(values: np.ndarray, at: int = 3, bits: int = 1) -> np.ndarray:
    """Return a copy of the values in which one value has different low bits."""
    changed = values.copy()
    changed.view(np.uint32)[at] += bits
    return changed


def test_equal_bytes_are_equal():
    report, comparison = compared_replay(launch_with(EXACT))
    assert (str(comparison), report.findings) == ("equal", ())


def test_without_a_gpu_nothing_is_compared():
    report, comparison = compared_replay(replace(launch_with(EXACT), hardware=None))
    assert (comparison, report.findings) == (None, ())


def test_one_bit_differs_if_ptx_fixes_it():
    report, comparison = compared_replay(launch_with(EXACT, one_more))
    (found,) = report.findings
    assert comparison is not None
    assert comparison.result == "differs"
    assert (found.kind, found.severity) == ("hardware-difference", "advice")
    assert "1 bytes of" in found.message
    assert "the first at byte 12 " in found.message


def test_a_replay_has_the_same_finding():
    launch = launch_with(EXACT, one_more)
    assert replayed(launch) == compared_replay(launch)[0]


def test_an_approximate_result_is_within_the_bound():
    report, comparison = compared_replay(launch_with(APPROXIMATE, one_more))
    assert comparison is not None
    assert report.findings == ()
    assert comparison.result == "within the bound"
    assert "as f32 (approximate functions)" in comparison.details


def test_an_approximate_result_has_a_bound():
    _, comparison = compared_replay(launch_with(APPROXIMATE, lambda values: one_more(values, bits=1 << 17)))
    assert comparison is not None
    assert comparison.result == "differs"


def test_a_lost_store_is_beyond_the_bound():
    def lost(values: np.ndarray) -> np.ndarray:
        changed = values.copy()
        changed[5] = 0
        return changed

    _, comparison = compared_replay(launch_with(APPROXIMATE, lost))
    assert comparison is not None
    assert comparison.result == "differs"


def test_an_error_on_only_the_gpu_is_a_difference():
    report, comparison = compared_replay(launch_with(EXACT, result=700))
    assert comparison is not None
    assert comparison.result == "differs"
    assert "error 700" in report.findings[0].message


def test_a_launch_with_errors_is_not_compared():
    launch = launch_with(EXACT)
    report, comparison = compared_replay(replace(launch, config=simulate.Config(1, 128)))
    assert comparison is not None
    assert report.errors[0].kind == "out-of-bounds"
    assert str(comparison) == "not compared: an error ends the simulated launch"


def test_a_difference_of_a_launch_with_errors_is_no_finding():
    racing = EXACT + " st.global.f32 [%rd1], %f1;"
    report, comparison = compared_replay(launch_with(racing, one_more))
    assert comparison is not None
    assert comparison.result == "differs"
    assert {each.kind for each in report.findings} == {"race"}


@pytest.mark.parametrize(
    ("ptx", "found"),
    [
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", ()),
        ("mul.rn.f32 %f1, %f2, %f3;\nadd.rn.f32 %f1, %f1, %f2;", ()),
        ("mul.f32 %f1, %f2, %f3;\nadd.f32 %f1, %f1, %f2;", ("products and sums that ptxas may fuse",)),
        ("mul.lo.u32 %r1, %r2, %r3;\nadd.u32 %r1, %r1, %r2;", ()),
        ("tanh.approx.f32 %f1, %f2;", ("approximate functions",)),
        ("div.full.f32 %f1, %f2, %f3;", ("approximate functions",)),
        ("red.global.gpu.relaxed.add.f32 [%rd1], %f1;", ("the order of atomic additions of floats",)),
        ("atom.global.add.u32 %r1, [%rd1], 1;", ()),
        ("atom.add.noftz.f16x2 %r1, [%rd1], %r2;", ("the order of atomic additions of floats",)),
    ],
)
def test_instructions_with_open_results(ptx, found):
    assert open_results(ptx) == found


# ---- files ----


def test_a_file_keeps_the_outcome(tmp_path):
    launch = launch_with(EXACT, one_more, seconds=0.5)
    write_recording(tmp_path / "launches", [launch], {})
    (read,) = read_recording(tmp_path / "launches")
    assert read == launch
    assert read.hardware == launch.hardware


def test_a_gpu_has_memory_below_the_addresses_of_the_simulator():
    launch = launch_with(EXACT)
    assert launch.hardware is not None
    at = 0x302000000
    (memory,), (changed,) = launch.memory, launch.hardware.changed
    launch = replace(
        launch,
        memory=(replace(memory, address=at),),
        hardware=replace(launch.hardware, changed=(replace(changed, address=at),)),
        arguments=(at.to_bytes(8, "little"),),
    )
    values, blobs = values_of_launch(launch)
    read = launch_of(json.loads(json.dumps(values)), blobs)
    assert str(compared_replay(read)[1]) == "equal"


@pytest.mark.parametrize(
    "hardware",
    [
        5,
        {"changed": 5},
        {"name": "", "result": -1, "seconds": 0.0, "changed": []},
        {"name": "", "result": 0, "seconds": "long", "changed": []},
        {"name": "", "result": 0, "seconds": 0.0, "changed": [{"address": 0, "data": "DATA"}]},
        {"name": "", "result": 0, "seconds": 0.0, "changed": [{"address": 1 << 60, "data": "DATA"}] * 2},
    ],
)
def test_a_wrong_outcome_is_refused(hardware):
    values, blobs = values_of_launch(replace(launch_with(EXACT), hardware=None))
    key = values["memory"][0]["data"]
    values["hardware"] = json.loads(json.dumps(hardware).replace("DATA", key))
    with pytest.raises((TypeError, ValueError, KeyError)):
        launch_of(json.loads(json.dumps(values)), blobs)
