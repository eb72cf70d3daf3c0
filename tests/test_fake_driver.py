"""A test that the fake driver returns the results of the recorded driver."""

import ctypes

from cuda_tma import Im2colParams, Im2colWideParams, TiledParams
from tests.support.descriptors import golden


def test_the_encoders_answer_as_recorded(driver):
    """The test compares the verdict and every byte for a sample of the recorded calls in all three modes."""
    memory, seen = ctypes.create_string_buffer(128 + 64), set()
    target = -(-ctypes.addressof(memory) // 64) * 64
    for mode in (TiledParams, Im2colParams, Im2colWideParams):
        for row in [row for row in golden() if type(row.params) is mode][::7]:
            result = driver.write_map(target, row.params)
            assert (result == 0, row.params) == (row.accepted, row.params)
            assert not row.accepted or ctypes.string_at(target, 128) == row.raw
            seen.add((mode, row.accepted))
    assert len(seen) == 6


def test_a_map_is_written_only_to_a_multiple_of_64(driver):
    memory = ctypes.create_string_buffer(128 + 64)
    row = next(row for row in golden() if row.accepted)
    aligned = -(-ctypes.addressof(memory) // 64) * 64
    assert [driver.write_map(aligned + offset, row.params) for offset in (0, 16, 32)] == [0, 1, 1]
