"""Tests of the division of CuTe layouts into tiles. The tests compare the tiles with offsets that are computed for each
element."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import layouts
from cuda_tma._command import cli

cute = pytest.importorskip("tensor_layouts")

LAYOUT, TILER = "(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>"
SIZES = st.integers(1, 6)


def test_the_tutorial_s_thread_value_layout():
    assert layouts.make_ordered_layout((4, 32), order=(1, 0)) == cute.Layout((4, 32), (32, 1))
    tiler, layout = layouts.make_layout_tv("(4,32):(32,1)", "(4,4):(4,1)")
    assert tiler == (16, 128) and layout == cute.Layout(((32, 4), (4, 4)), ((64, 4), (16, 1)))


def test_the_tutorial_s_divisions():
    assert layouts.logical_divide(LAYOUT, TILER) == cute.Layout(
        ((3, 3), ((2, 4), (2, 2))), ((177, 59), ((13, 2), (26, 1)))
    )
    assert layouts.zipped_divide(LAYOUT, TILER) == cute.Layout(
        ((3, (2, 4)), (3, (2, 2))), ((177, (13, 2)), (59, (26, 1)))
    )


@given(st.lists(SIZES, min_size=1, max_size=4).flatmap(lambda s: st.tuples(st.just(s), st.permutations(range(len(s))))))
def test_an_ordered_layout_is_a_transposed_array(case):
    shape, order = case
    layout = layouts.make_ordered_layout(shape, order)
    slowest_first = sorted(range(len(shape)), key=order.__getitem__, reverse=True)
    offsets = np.arange(np.prod(shape)).reshape([shape[mode] for mode in slowest_first])
    offsets = offsets.transpose([slowest_first.index(mode) for mode in range(len(shape))])
    for at in itertools.product(*map(range, shape)):
        assert layout(*at) == offsets[at]


@given(SIZES, SIZES, SIZES, SIZES)
def test_each_thread_has_a_block_of_the_tile(down, across, rows, columns):
    threads, values = f"({down},{across}):({across},1)", f"({rows},{columns}):({columns},1)"
    tiler, layout = layouts.make_layout_tv(threads, values)
    assert tiler == (down * rows, across * columns)
    for thread, value in itertools.product(range(down * across), range(rows * columns)):
        row = thread // across * rows + value // columns
        column = thread % across * columns + value % columns
        assert layout(thread, value) == row + column * tiler[0]


@given(SIZES, SIZES, SIZES, SIZES)
def test_contiguous_tiles_of_a_matrix(rows, columns, down, across):
    """In a row-major matrix, the number of a tile and the number of an element in the tile determine the element's row
    and column."""
    matrix = np.arange(rows * down * columns * across).reshape(rows * down, columns * across)
    divided = layouts.zipped_divide(f"{matrix.shape}:({matrix.shape[1]},1)".replace(" ", ""), f"<{rows},{columns}>")
    for element, tile in itertools.product(range(rows * columns), range(down * across)):
        row, column = element % rows + tile % down * rows, element // rows + tile // down * columns
        assert divided(element, tile) == matrix[row, column]


@pytest.mark.parametrize(
    ("layout", "tiler", "words"),
    [
        ("(4,4)", "2", "is not a layout"),
        ("(4,4):(1,4)+32", "2", "has the base 32; pass a layout without a base"),
        ("(4,0):(1,4)", "2", "has an extent of 0"),
        ("9" * 2000, "2", "has 2000 characters"),
        (LAYOUT, "<>", "is not a tiler"),
        (LAYOUT, "<0,4>", "is not a tiler"),
        (LAYOUT, "<3:3,2,2,2>", "tiler has more modes"),
        (LAYOUT, "<7:5,3:1>", "does not divide"),
        (LAYOUT, "<" + "(" * 500 + ">", "nested parentheses"),
    ],
)
def test_refusals(layout, tiler, words):
    with pytest.raises(ValueError, match=words):
        layouts.logical_divide(layout, tiler)


def test_refusals_of_orders_and_of_modes():
    with pytest.raises(ValueError, match=r"order=\(0, 2\) is not a permutation of the 2 modes; pass each of 0 to 1"):
        layouts.make_ordered_layout((4, 32), order=(0, 2))
    with pytest.raises(ValueError, match="have 2 modes, but the values .* have 1"):
        layouts.make_layout_tv("(4,32):(32,1)", "4:1")


def test_the_command_divides(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "tiles.svg"
    assert cli.main(["layouts", LAYOUT, "--divide", TILER, "--json", "--output", str(picture)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "layout": LAYOUT,
        "tiler": TILER,
        "logical_divide": "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))",
        "zipped_divide": "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
    }
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_the_command_combines_threads_and_values(capsys):
    assert cli.main(["layouts", "(4,32):(32,1)", "--values", "(4,4):(4,1)"]) == 0
    words = capsys.readouterr().out
    assert "(16,128)" in words and "((32,4),(4,4)):((64,4),(16,1))" in words


@pytest.mark.parametrize(
    "given_arguments", [["--divide", "3"], ["4:1", "4:1", "--divide", "3"], ["4:1", "--divide", "<"]]
)
def test_the_command_refuses(capsys, given_arguments):
    assert cli.main(["layouts", *given_arguments]) == 2
    assert capsys.readouterr().err.startswith("cuda-tma: ")


def test_the_command_draws_no_large_picture(capsys, tmp_path):
    assert cli.main(["layouts", "(999,999):(1,999)", "--divide", "<3,3>", "--output", str(tmp_path / "a.svg")]) == 2
    assert "has 998001 elements, but a picture has at most 4096" in capsys.readouterr().err
