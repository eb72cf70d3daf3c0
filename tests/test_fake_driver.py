"""The stand-in for the driver answers as the driver was recorded to."""

import ctypes

from cuda_tma import Im2colParams, Im2colWideParams, TiledParams

from .descriptors import golden


def test_the_encoders_answer_as_recorded(driver):
    """All three modes, a sample of the recorded calls: the verdict, and every byte."""
    target, seen = ctypes.create_string_buffer(128), set()
    for mode in (TiledParams, Im2colParams, Im2colWideParams):
        for row in [row for row in golden() if type(row.params) is mode][::7]:
            result = driver.write_map(ctypes.addressof(target), row.params)
            assert (result == 0, row.params) == (row.accepted, row.params)
            assert not row.accepted or target.raw[:128] == row.raw
            seen.add((mode, row.accepted))
    assert len(seen) == 6
