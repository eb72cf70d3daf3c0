"""Tests of the decoding and the encoding of an mbarrier's 64 bits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma.barrier import BARRIER_FIELDS, Barrier, decode_barrier, encode_barrier

sys.path.append(str(Path(__file__).parent.parent / "evaluation" / "recordings"))
import barrier_cases
import record_barriers
import recordings
import replay_barriers

DATA = Path(__file__).parent / "data"
MOST = (1 << 20) - 1
COUNTS = st.integers(0, MOST)
BARRIERS = st.builds(Barrier, st.integers(0, 1), COUNTS, COUNTS, st.integers(-MOST, MOST))


@given(BARRIERS)
def test_a_word_contains_its_fields(barrier):
    assert decode_barrier(encode_barrier(barrier)) == barrier
    assert eval(repr(barrier)) == barrier


@given(st.integers(0, 2**64 - 1))
def test_every_word_comes_back(word):
    found = decode_barrier(word)
    assert encode_barrier(found) == word
    assert eval(repr(found)) == found
    assert found == decode_barrier(np.uint64(word)) == decode_barrier(word.to_bytes(8, "little"))


@given(st.integers(1, MOST))
def test_word_stored_by_init(count):
    """For mbarrier.init on sm_90, ptxas computes the 64 bits by two shifts of 2**20 - count."""
    less = (1 << 20) - count
    assert decode_barrier(less << 43 | less << 1) == Barrier(0, count, count, 0)


def test_fields_share_no_bit():
    assert sum(field.width for field in BARRIER_FIELDS) == 62
    assert sum(field.mask for field in BARRIER_FIELDS) == 2**64 - 1 - (1 << 42) - 1
    assert decode_barrier(1).unexplained == 1
    assert repr(decode_barrier(1)).endswith("tx_count=0, unexplained=0x1)")


@pytest.mark.parametrize("word", [-1, 2**64, b"1234567", bytes(9)])
def test_invalid_word_of_64_bits(word):
    with pytest.raises(ValueError, match="64 bits|8 bytes"):
        cuda_tma.barrier.decode_barrier(word)


def test_bytes_of_an_array_are_a_word():
    """A kernel can copy the bytes of an mbarrier into an array, from which the package decodes the mbarrier."""
    word = encode_barrier(Barrier(1, 2, 3, 64))
    assert decode_barrier(np.array([word], np.uint64).view(np.uint8)) == Barrier(1, 2, 3, 64)
    with pytest.raises(ValueError, match="word has 4 bytes, but an mbarrier has 8"):
        decode_barrier(np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match=r"word % 2\*\*64"):
        decode_barrier(np.int64(-1))


@pytest.mark.parametrize("barrier", [5, None, (0, 1, 1, 0)])
def test_invalid_barrier(barrier):
    with pytest.raises(TypeError, match=r"^barrier=.* is not a Barrier; pass the result of decode_barrier\(word\)$"):
        encode_barrier(barrier)


@pytest.mark.parametrize("word", [1.5, "1", None])
def test_invalid_word(word):
    with pytest.raises(TypeError, match="must be the mbarrier's 64 bits"):
        cuda_tma.barrier.decode_barrier(word)


# ---- recordings ----


def test_recorded_cases_are_defined():
    """The recorded cases do not exceed the ranges of the PTX ISA."""
    names = [name for name, _ in barrier_cases.cases()]
    assert len(names) == len(set(names)) > 90
    for name, operations in barrier_cases.cases():
        assert {operation for operation, _ in operations} <= set(barrier_cases.OPERATIONS), name
        assert all(0 <= number <= MOST for _, number in operations), name
        for barrier in barrier_cases.states(operations):
            assert 1 <= barrier.pending_count <= MOST or barrier.tx_count, name
            assert abs(barrier.tx_count) <= MOST and barrier.expected_count >= 1, name


def test_words_of_hardware_are_decoded():
    """The states of mbarriers that hardware recorded include limits of the arrival counts, and phases of both
    parities."""
    barriers, words = replay_barriers.observed(recordings.read(DATA / "barriers_sm90.jsonl.gz"))
    assert len(words) >= 74 and {barrier.phase for barrier in barriers} == {0, 1}
    assert [decode_barrier(word) for word in words] == barriers


def test_the_layout_is_found_in_words_of_hardware():
    barriers, words = replay_barriers.observed(recordings.read(DATA / "barriers_sm90.jsonl.gz"))
    if len({barrier.tx_count for barrier in barriers}) < 100:
        pytest.skip("recorded is the last word of each case, and most tx-counts end at 0")
    assert replay_barriers.layout(barriers, words) == BARRIER_FIELDS


# The barriers are results of kernels in tests/data/faults_sm90.jsonl.gz. Each kernel expects 4096 bytes, and reads the
# mbarrier after mbarrier.inval.
LEFT = {
    "a load": Barrier(1, 1, 1, 0),
    "a load that is multicast": Barrier(1, 1, 1, 0),
    "fewer bytes come than are expected": Barrier(0, 0, 1, 16),
    "more bytes come than are expected": Barrier(0, 0, 1, -16),
    "multicast to no CTA": Barrier(0, 0, 1, 4096),
    "a bulk load of 0 bytes": Barrier(1, 1, 1, 0),
    # The mbarrier receives 16 of the expected 24 bytes.
    "a bulk load of 24 bytes": Barrier(0, 0, 1, 8),
    "a barrier is made twice": Barrier(0, 1, 1, 0),
}


def test_words_that_kernels_left():
    rows = {row["case"]: row for row in recordings.read(DATA / "faults_sm90.jsonl.gz")[1:] if "blocking" not in row}
    assert {name: decode_barrier(rows[name]["out"][2]) for name in LEFT} == LEFT
    assert all(decode_barrier(row["out"][2]).unexplained == 0 for row in rows.values() if "out" in row)


def test_the_recorder_compiles():
    assert b"contend" in record_barriers.compiled()


def test_the_layout_follows_from_words_only():
    """The table of fields determines the layout of an mbarrier's 64 bits."""
    barriers = [barrier for _, operations in barrier_cases.cases() for barrier in barrier_cases.states(operations)]
    assert replay_barriers.layout(barriers, [encode_barrier(barrier) for barrier in barriers]) == BARRIER_FIELDS
