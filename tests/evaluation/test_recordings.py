"""A test of the parameters that a row of a recording contains."""

import pytest

from evaluation.recordings.recordings import params_from_recording


def test_recorded_arrays_are_cut_and_padded_to_the_rank():
    recorded = {
        "kind": "tiled",
        "data_type": 7,
        "rank": 2,
        "global_offset": 32,
        "global_dim": [4, 5, 0, 0, 0],
        "global_strides": [16, 0, 0, 0],
        "box_dim": [4],
        "element_strides": [1, 1, 0, 0, 0],
        "interleave": 0,
        "swizzle": 0,
        "l2_promotion": 0,
        "oob_fill": 1,
    }
    params = params_from_recording(recorded)
    assert (params.global_address, params.global_dim, params.global_strides) == (32, (4, 5), (16,))
    assert (params.box_dim, params.element_strides, params.oob_fill) == ((4, 0), (1, 1), 1)


@pytest.mark.parametrize("kind", ["im2col", "im2col_wide"])
def test_recordings_of_every_mode(kind):
    recorded = {
        "kind": kind, "data_type": 9, "rank": 4, "global_dim": [64, 8, 8, 2, 9], "global_strides": [128, 1024, 8192, 7],
        "element_strides": [1, 1], "pixel_box_lower_corner": [-1, -2, -3], "pixel_box_upper_corner": [1],
        "pixel_box_lower_corner_width": -1, "pixel_box_upper_corner_width": 1, "channels_per_pixel": 64,
        "pixels_per_column": 32, "mode": 1, "swizzle": 3, "something_else": 5,
    }  # fmt: skip
    params = params_from_recording(recorded)
    assert params.global_address == 0 and params.global_strides == (128, 1024, 8192)
    assert params.element_strides == (1, 1, 0, 0) and params.rank == 4 and params.channels_per_pixel == 64
    if kind == "im2col":
        assert (params.pixel_box_lower_corner, params.pixel_box_upper_corner) == ((-1, -2), (1, 0))
    else:
        assert (params.pixel_box_lower_corner_width, params.mode) == (-1, 1)


def test_a_recording_of_a_low_rank_has_no_strides_and_corners():
    recorded = {"kind": "tiled", "data_type": 0, "rank": 1, "global_dim": [16, 1], "global_strides": [16, 16],
                "box_dim": [16], "element_strides": [1]}  # fmt: skip
    assert params_from_recording(recorded).global_strides == ()
    assert params_from_recording(recorded | {"rank": 0, "global_dim": [1]}).global_dim == ()
