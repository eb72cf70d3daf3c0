"""Tests of exchanges between lanes of a warp, which follow the pseudocode of the PTX ISA for each lane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma.simulate._pure import lookup
from tests.support.pure_instructions import Draw, column, entry_of, instruction, integers_of, signed

MASKS = st.sampled_from([0xFFFFFFFF, 1, 0x80000000, 0xFFFF0000, 0x55555555]) | st.integers(1, (1 << 32) - 1)
FEW = st.sampled_from([[0], [0xFFFFFFFF], [0, 1, 2, 0xFFFFFFFF]])


def of_a_warp(draw: Draw) -> st.SearchStrategy[list[int]]:
    return column(draw, least=32, most=32)


def warp(values, dtype="u4"):
    return np.array(values, np.uint64).astype(dtype).reshape(1, 32)


def active(mask: int) -> np.ndarray:
    return np.array([[bool(mask >> lane & 1) for lane in range(32)]])


def members(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Return the source lane of a shuffle, and whether the lane is in the segment (PTX ISA, "shfl.sync")."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last, first = (lane & segment) | (clamp & ~segment & 31), lane & segment
    if mode == "up":
        other = lane - b
        inside = other >= last
    elif mode == "down":
        other = lane + b
        inside = other <= last
    else:
        other = lane ^ b if mode == "bfly" else first | (b & ~segment & 31)
        inside = other <= last
    return (other if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@settings(max_examples=60)
@given(of_a_warp(lambda random: random.randint(0, 40)), of_a_warp(lambda random: random.randint(0, 0x1FFF)))
def test_shuffles(mode, offsets, controls):
    values = list(range(100, 132))
    sources = warp(values), warp(offsets), warp(controls), warp([0xFFFFFFFF] * 32)
    found, inside = entry_of(f"shfl.sync.{mode}.b32 d|p, a, b, c, e").compute(active(0xFFFFFFFF), *sources)
    expected = [shuffled(mode, lane, b, c) for lane, (b, c) in enumerate(zip(offsets, controls, strict=True))]
    assert found[0].tolist() == [values[other] for other, _ in expected]
    assert inside[0].tolist() == [each for _, each in expected]
    assert (entry_of(f"shfl.sync.{mode}.b32 d, a, b, c, e").compute(active(0xFFFFFFFF), *sources) == found).all()


@pytest.mark.parametrize(
    ("mode", "c", "first"), [("up", 0, [0, 0, 1]), ("down", 31, [1, 2, 3]), ("bfly", 31, [1, 0, 3])]
)
def test_shuffles_as_cuda_has_them(mode, c, first):
    """The test runs the PTX of __shfl_up_sync and its related functions for a whole warp, with a distance of one."""
    found = entry_of(f"shfl.sync.{mode}.b32 d, a, b, c, e").compute(
        active(0xFFFFFFFF), warp(range(32)), *(warp([each] * 32) for each in (1, c, 0xFFFFFFFF))
    )
    assert found[0, :3].tolist() == first


@settings(max_examples=60)
@given(MASKS, st.integers(0, (1 << 32) - 1))
def test_votes(mask, truths):
    lanes = members(mask)
    given_ = [truths >> lane & 1 for lane in lanes]
    expected = {
        "all.pred": all(given_), "any.pred": any(given_), "uni.pred": len({*given_}) == 1, "ballot.b32": truths & mask,
    }  # fmt: skip
    for name, value in expected.items():
        found = entry_of(f"vote.sync.{name} d, a, b").compute(active(mask), active(truths), warp([mask] * 32))
        assert {found[0, lane].item() for lane in lanes} == {value}


@settings(max_examples=60)
@given(MASKS, FEW.flatmap(lambda few: of_a_warp(lambda random: random.choice(few))), st.sampled_from(["b32", "b64"]))
def test_matches(mask, values, type_):
    lanes = members(mask)
    a = warp([value << 31 for value in values] if type_ == "b64" else values, f"u{int(type_[1:]) // 8}")
    masks = warp([mask] * 32)
    same = entry_of(f"match.any.sync.{type_} d, a, b").compute(active(mask), a, masks)
    for lane in lanes:
        assert same[0, lane] == sum(1 << other for other in lanes if values[other] == values[lane])
    found, agree = entry_of(f"match.all.sync.{type_} d|p, a, b").compute(active(mask), a, masks)
    together = len({values[lane] for lane in lanes}) == 1
    assert {(found[0, lane].item(), agree[0, lane].item()) for lane in lanes} == {(mask * together, together)}


@settings(max_examples=60)
@given(MASKS, of_a_warp(integers_of("u32")))
def test_reductions(mask, values):
    lanes = members(mask)
    chosen = [values[lane] for lane in lanes]
    whole = chosen[0]
    each, either, odd = whole, whole, whole
    for value in chosen[1:]:
        each, either, odd = each & value, either | value, odd ^ value
    expected = {
        "add.u32": sum(chosen), "add.s32": sum(chosen), "min.u32": min(chosen), "max.u32": max(chosen),
        "min.s32": min(signed(value, 32) for value in chosen), "max.s32": max(signed(value, 32) for value in chosen),
        "and.b32": each, "or.b32": either, "xor.b32": odd,
    }  # fmt: skip
    for name, value in expected.items():
        entry = entry_of(f"redux.sync.{name} d, a, b")
        found = entry.compute(active(mask), warp(values).view(entry.sources[0]), warp([mask] * 32))
        assert found.dtype == entry.results[0]
        assert {found.view(np.uint32)[0, lane].item() for lane in lanes} == {value % 2**32}, name


def test_two_warps_do_not_meet():
    both = np.concatenate([active(0xFF), active(0xF0)])
    masks = np.array([[0xFF] * 32, [0xF0] * 32], np.uint32)
    ones = np.ones((2, 32), np.uint32)
    assert (entry_of("activemask.b32 d").compute(both) == masks).all()
    found = entry_of("redux.sync.add.u32 d, a, b").compute(both, ones, masks)
    assert [found[0, 0], found[1, 4]] == [8, 4]


@pytest.mark.parametrize("text", ["shfl.up.b32 d, a, b, c", "vote.any.pred d, a", "redux.sync.add.f32 d, a, b"])
def test_other_forms_are_unknown(text):
    assert lookup(instruction(text)) is None


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
def test_floats_are_reduced(operation, modifiers):
    """A redux.sync of floats on sm_100 returns the least or largest number. The result is NaN only with .NaN, or if
    there is no number."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 32)).astype(np.float32)
    values[1, 3::5], values[2] = np.nan, np.nan
    entry = entry_of(f"redux.sync.{operation}{modifiers}.f32 d, a, m")
    found = entry.compute(np.ones((3, 32), bool), values, np.full((3, 32), 0xFFFFFFFF, np.uint32))
    given = np.abs(values) if ".abs" in modifiers else values
    reduce = {("min", True): np.min, ("max", True): np.max, ("min", False): np.nanmin, ("max", False): np.nanmax}
    with np.testing.suppress_warnings() as warnings:
        warnings.filter(RuntimeWarning)
        expected = reduce[operation, ".NaN" in modifiers](given, axis=1)
    assert np.array_equal(found, np.broadcast_to(expected[:, None], (3, 32)), equal_nan=True)
    assert found.dtype == np.float32
