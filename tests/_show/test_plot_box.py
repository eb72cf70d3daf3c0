"""Tests of the picture that shows a box in its tensor, with the elements that a copy reads."""

import pytest

from tests._given import refuses

pytest.importorskip("matplotlib")

from cuda_tma._errors import TensorMapError
from cuda_tma._show import plot
from tests._show._plot import IM2COL, INTERLEAVED, PARAMS, changed


def test_box_counts_the_elements_inside():
    strided = changed(element_strides=(1, 3))
    assert plot.box(strided, (96, -1)).axes[0].get_title().endswith("swizzle 128B: 64 of 192 elements inside")
    assert len(plot.box(strided, (96, -1)).axes[0].lines) == 2
    with pytest.raises(TensorMapError, match=r"only tiled tensor maps without interleave"):
        plot.box(changed(interleave=1))


def test_box_names_the_shown_slice():
    deep = changed(
        PARAMS, global_dim=(128, 60, 9, 9), global_strides=(256, 15360, 138240), box_dim=(64, 8, 2, 2), swizzle=0
    )
    deep = changed(deep, element_strides=(1, 1, 1, 1))
    title = plot.box(deep, (96, -1, 3, 2)).axes[0].get_title()
    assert title.endswith("\nslice at dimension 2 = 3, dimension 3 = 2: 224 of 512 elements inside")


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_box_names_only_existing_parts():
    assert legend(plot.box(PARAMS)) == ["tensor", "box", "visited, row by row"]
    assert legend(plot.box(PARAMS, (96, 0)))[0] == "fill"
    assert "visited, row by row" not in legend(plot.box(PARAMS, (128, 0)))


@pytest.mark.parametrize(
    ("start", "shown"), [((0, 0), (0, 288)), ((2048, 1024), (1824, 2336)), ((4032, 8), (3808, 4096))]
)
def test_box_shows_a_large_tensor_around_the_box(start, shown):
    large = changed(global_dim=(4096, 4096), global_strides=(8192,))
    low, high = plot.box(large, start).axes[0].get_xlim()
    margin = 0.05 * (shown[1] - shown[0]) + 0.5
    assert (low + margin, high - margin) == pytest.approx(shown)


def rectangles(figure):
    return {
        patch.get_label(): (patch.get_xy(), patch.get_width(), patch.get_height()) for patch in figure.axes[0].patches
    }


def test_box_draws_tensor_box_and_rows_in_place():
    figure = plot.box(changed(box_dim=(64, 9), element_strides=(1, 3)), (96, -1))
    axes = figure.axes[0]
    assert rectangles(figure) == {
        "fill": ((96, -1), 64, 9),
        "tensor": ((0, 0), 128, 60),
        "box": ((96, -1), 64, 9),
    }
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[96, 2.5], [128, 2.5]],
        [[96, 5.5], [128, 5.5]],
    ]
    assert [line.get_label() for line in axes.lines] == ["visited, row by row", "_child4"]
    assert [line.get_linewidth() for line in axes.lines] == [1, 1]
    assert axes.get_title() == "BFLOAT16 box 64 x 9, delivers 64 x 3, swizzle 128B: 64 of 192 elements inside"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dimension 0 (innermost), elements", "dimension 1, elements")
    assert axes.get_xlim() == pytest.approx((0 - 8.5, 160 + 8.5))
    assert axes.get_ylim() == pytest.approx((60 + 3.55, -1 - 3.55))


def test_many_rows_are_thin_lines():
    tall = plot.box(changed(global_dim=(128, 600), box_dim=(64, 48)))
    assert {line.get_linewidth() for line in tall.axes[0].lines} == {0.5}
    assert {line.get_linewidth() for line in plot.box(changed(box_dim=(64, 24))).axes[0].lines} == {1}


@pytest.mark.parametrize(
    ("start", "inside", "fill"),
    [
        ((0, 0), 512, False),
        ((64, 52), 512, False),
        ((64, 53), 448, True),
        ((72, 52), 448, True),
        ((-8, 0), 448, True),
        ((0, -1), 448, True),
        ((-64, 0), 0, True),
        ((128, 0), 0, True),
        ((0, 60), 0, True),
        ((0, -8), 0, True),
        ((0, -7), 64, True),
        ((-56, 59), 8, True),
    ],
)
def test_box_counts_at_every_edge(start, inside, fill):
    figure = plot.box(PARAMS, start)
    assert figure.axes[0].get_title().endswith(f": {inside} of 512 elements inside")
    assert ("fill" in rectangles(figure)) == fill
    drawn = sum(right - left for (left, _), (right, _) in (line.get_xydata() for line in figure.axes[0].lines))
    assert drawn == inside


def test_box_of_a_vector():
    vector = changed(global_dim=(128,), global_strides=(), box_dim=(64,), element_strides=(1,), swizzle=0)
    axes = plot.box(vector, (96,)).axes[0]
    assert axes.get_title() == "BFLOAT16 box 64, swizzle NONE: 32 of 64 elements inside"
    assert axes.get_ylabel() == "" and list(axes.get_yticks()) == []
    assert axes.lines[0].get_xydata().tolist() == [[96, 0.5], [128, 0.5]]


def test_interleaved_and_im2col_maps_have_no_box_picture():
    for params, given in ((INTERLEAVED, "TiledParams with interleave=2"), (IM2COL, "Im2colParams with interleave=0")):
        refuses(
            rf"plot\.box cannot draw a cuda_tma\.{given}, only tiled tensor maps",
            plot.box,
            params,
        )
