"""Pictures show what the emulator says: labels, hatches, marks and titles."""

import dataclasses

import numpy as np
import pytest

from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.errors import TensorMapError
from cuda_tma.params import TiledParams
from cuda_tma.swizzle import smem_offset

matplotlib = pytest.importorskip("matplotlib")

from cuda_tma import plot  # noqa: E402

PARAMS = TiledParams(
    data_type=T.BFLOAT16,
    global_address=0,
    global_dim=(128, 60),
    global_strides=(256,),
    box_dim=(64, 8),
    element_strides=(1, 1),
    swizzle=3,
)


def texts(figure):
    return {tuple(map(int, t.get_position())): t.get_text() for t in figure.axes[0].texts}


def test_a_chunk_is_labelled_with_the_element_that_lies_there():
    labels = texts(plot.tile(PARAMS, (64, 10)))
    assert len(labels) == 64
    for column, row in ((0, 0), (8, 0), (0, 3), (56, 7)):
        line, byte = divmod(smem_offset(PARAMS, (column, row)), 128)
        assert labels[byte // 16, line] == f"{64 + column}, {10 + row}"


def test_out_of_bounds_is_hatched():
    figure = plot.tile(PARAMS, (64, 56))
    assert list(texts(figure).values()).count("fill") == 4 * 8
    assert sum(patch.get_hatch() == "////" for patch in figure.axes[0].patches) == 4 * 8


def test_large_tiles_say_what_they_show():
    large = dataclasses.replace(PARAMS, box_dim=(64, 256))
    assert plot.tile(large).axes[0].get_title() == "BFLOAT16 box 64 x 256, swizzle 128B (first 32 of 256 lines)"


def test_banks_mark_the_words_of_the_worst_read():
    figure = plot.banks(dataclasses.replace(PARAMS, box_dim=(64, 32)), "ldmatrix")
    assert [a.get_title() for a in figure.axes[:2]] == [
        "swizzle NONE: ldmatrix read is 8-way",
        "swizzle 128B: ldmatrix read is free of conflicts",
    ]
    for axes, banks in zip(figure.axes, (4, 32), strict=False):
        assert len(np.unique(axes.lines[0].get_xdata())) == banks
        assert len(axes.lines[0].get_xdata()) == 32


def test_box_counts_what_is_inside():
    strided = dataclasses.replace(PARAMS, element_strides=(1, 3))
    assert plot.box(strided, (96, -1)).axes[0].get_title().endswith("swizzle 128B: 64 of 192 elements inside")
    assert len(plot.box(strided, (96, -1)).axes[0].lines) == 2
    with pytest.raises(TensorMapError, match=r"plot\.box draws tiled tensor maps without interleave"):
        plot.box(dataclasses.replace(PARAMS, interleave=1))
