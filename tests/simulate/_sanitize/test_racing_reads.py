"""Tests of races between a load and a store, in which a replay determines whether the loaded value has an effect."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

HEAD = 'extern "C" __global__ void k(int* p, int* out) {'
# The compiler keeps the load in all threads.
KEPT = 'asm volatile("" : "+r"(x));'
UPDATE = f"{HEAD} int x = *p; {KEPT} if (threadIdx.x == 0) *p = x + 3; }}"


def report(source: str, grid: int = 1, **settings: bool) -> tuple[simulate.Report, np.ndarray, np.ndarray]:
    gpu = simulate.Device(schedules=2, **settings)
    p, out = np.zeros(2, np.int32), np.zeros(64, np.int32)
    return gpu.launch(simulate.Config(grid, 64), gpu.compile(source, "k"), p, out), p, out


HARMLESS = {
    "all threads load, one stores": UPDATE,
    "in a loop": f"{HEAD} for (int i = 0; i < 4; ++i) {{ int x = *p; {KEPT} if (threadIdx.x == 0) *p = x + 3; "
    'asm volatile("" ::: "memory"); } }',
    "after the store": f"{HEAD} if (threadIdx.x == 32) *p = 3; int x = *p; {KEPT} "
    "if (threadIdx.x == 32) out[0] = x; }",
    "two places": f"{HEAD} int x = p[0]; {KEPT} if (threadIdx.x == 0) p[0] = x + 3; "
    f"int y = p[1]; {KEPT.replace('x', 'y')} if (threadIdx.x == 0) p[1] = y + 3; }}",
}
HARMFUL = {
    "the value is stored": f"{HEAD} int x = *p; out[threadIdx.x] = x; if (threadIdx.x == 0) *p = x + 3; }}",
    "the value selects a branch": f"{HEAD} int x = *p; if (threadIdx.x == 0) *p = 3; else if (x) out[1] = 1; }}",
    "the value ends a loop": f"{HEAD} if (threadIdx.x < 32) *p = 3; else while (*(volatile int*)p == 0); }}",
    "the value is an address": f"{HEAD} int x = *p; if (threadIdx.x == 0) *p = 3; else out[x + threadIdx.x] = 1; }}",
    "the value is printed": f"{HEAD} int x = *p; if (threadIdx.x == 0) *p = 3; "
    'if (threadIdx.x == 40) printf("%d", x); }',
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_a_value_without_an_effect_is_advice(source: str) -> None:
    found, p, _ = report(source)
    assert [each.severity for each in found.findings] == ["advice"] * len(found.findings) and found.findings
    assert all("the value has no effect" in each.happened for each in found.findings)
    assert p[0] in (3, 12)


@pytest.mark.parametrize("source", HARMFUL.values(), ids=HARMFUL)
def test_a_value_with_an_effect_is_an_error(source: str) -> None:
    found, *_ = report(source)
    assert ("race", "error") in {(each.kind, each.severity) for each in found.findings}


def test_a_lost_update_is_an_error() -> None:
    found, p, _ = report(UPDATE, grid=2)
    assert {(each.kind, each.severity) for each in found.errors} == {("race", "error")} and p[0] in (3, 6)


def test_one_effect_leaves_the_other_place_advice() -> None:
    source = f"{HEAD} int x = p[0]; {KEPT}\nint y = p[1]; out[threadIdx.x] = y;\nif (threadIdx.x == 0) p[0] = x + 3;\n"
    source += "if (threadIdx.x == 0) p[1] = 3; }"
    found, *_ = report(source)
    assert sorted(each.severity for each in found.findings) == ["advice", "error"]


def test_replays_leave_memory_as_the_launch_did() -> None:
    """A launch updates an array in place only once, for any number of replays."""
    source = f"{HEAD} out[threadIdx.x] += threadIdx.x + 1; int x = *p; {KEPT} if (threadIdx.x == 0) *p = x + 3; }}"
    found, p, out = report(source)
    assert [each.severity for each in found.findings] == ["advice"]
    np.testing.assert_array_equal(out, np.arange(64) + 1)
    assert p[0] == 3


def test_strict_keeps_the_error() -> None:
    found, *_ = report(UPDATE, strict=True)
    assert [each.severity for each in found.findings] == ["error"]


def test_a_timeline_has_the_same_findings() -> None:
    gpu = simulate.Device()
    p, out = np.zeros(2, np.int32), np.zeros(64, np.int32)
    traced = gpu.launch(simulate.Config(1, 64), gpu.compile(UPDATE, "k"), p, out, trace=True)
    assert [each.severity for each in traced.findings] == ["advice"]
