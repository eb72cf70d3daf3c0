"""Tests of error texts in the user's terms, such as tensor order, elements, and the nearest legal value."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma._errors import TensorMapError
from cuda_tma._options import TensorMapOptions
from cuda_tma.rules import check
from cuda_tma.rules._explain import refusal
from tests._given import LARGE
from tests.support.descriptors import LEGAL, LEGAL_IM2COL, golden

PLAIN = replace(LEGAL, swizzle=0)


def lines(params, dtype_name="float32", capability=(9, 0), **keywords):
    return str(refusal(params, check(params, capability), dtype_name=dtype_name, **keywords)).split("\n")[1:]


def test_the_row_that_everybody_gets_wrong():
    matrix = replace(PLAIN, global_dim=(1733, 128), global_strides=(6932,), box_dim=(32, 32), element_strides=(1, 1))
    assert lines(matrix) == [
        "1. stride of dimension 0 is 6932 bytes (1733 float32 elements); TMA needs a multiple of 16. "
        "Pad the row to 1736 elements. [driver: global_strides[0]=6932]"
    ]


def test_a_violation_has_its_sentence_with_a_named_dtype():
    matrix = replace(PLAIN, global_dim=(1733, 128), global_strides=(6932,), box_dim=(32, 32), element_strides=(1, 1))
    (violation,) = check(matrix, dtype_name="float32")
    assert f"1. {violation.sentence}" == lines(matrix)[0]
    assert replace(violation, sentence="") == check(matrix)[0]


@pytest.mark.parametrize(
    "base,change,expected",
    [
        (PLAIN, {"global_strides": (256, 12296)}, "stride of dimension 0 is 12296 bytes (3074 float32 elements)"),
        (PLAIN, {"global_strides": (256, 12296)}, "Make the stride 12304 bytes (3076 float32 elements)."),
        (PLAIN, {"global_dim": (64, 0, 40)}, "extent of dimension 1 is 0; TMA needs 1 to 4294967296"),
        (PLAIN, {"box_dim": (30, 16, 2)}, "box_dim[2] is 30 (120 bytes)"),
        (PLAIN, {"box_dim": (30, 16, 2)}, "Use box_dim[2]=32 (128 bytes). [driver: box_dim[0]=30]"),
        (PLAIN, {"box_dim": (64, 32, 30)}, "box_dim is (30, 32, 64); TMA needs at most 233472 bytes in one load"),
        (PLAIN, {"element_strides": (1, 1, 9)}, "element_strides[0] is 9; TMA needs 1 to 8. Use element_strides[0]=8."),
        (PLAIN, {"global_address": 4104}, "the tensor begins at address 0x1008; TMA needs a multiple of 16"),
        (PLAIN, {"swizzle": 4}, 'swizzle is 4 ("128B_ATOM_32B"); TMA needs 0 to 3 before compute capability 10.0'),
        (LEGAL, {"box_dim": (64, 16, 2)}, "at most 32: a row is 256 bytes and the swizzle span 128. Use box_dim[2]=32"),
        (
            LEGAL_IM2COL,
            {"pixel_box_lower_corner": (-129, 0)},
            "pixel_box_lower_corner[1] is -129 (-padding along dimension 2, W); TMA needs -128 to 127. Use less",
        ),
        (
            LEGAL_IM2COL,
            {"pixel_box_upper_corner": (1, -140), "global_dim": (64, 48, 400, 8)},
            "pixel_box_upper_corner[0] is -140 (padding - (kernel_size - 1) * dilation along dimension 1, H); "
            "TMA needs -128 to 127. Use a smaller kernel_size or dilation, or split the filter",
        ),
        (
            LEGAL_IM2COL,
            {"pixel_box_upper_corner": (-49, 3)},
            "TMA needs at least -48, or the pixel box is empty (global_dim[1] 48 + upper -49 - lower -1 is not above "
            "0). The dilated kernel does not fit into the padded extent: pad more, or use a smaller kernel_size",
        ),
        (
            replace(LEGAL_IM2COL, interleave=1, global_dim=(48, 40, 8, 2)),
            {"pixel_box_upper_corner": (-49, 3)},
            "pixel_box_upper_corner[1] is -49 (padding - (kernel_size - 1) * dilation along dimension 3, W)",
        ),
        (
            LEGAL_IM2COL,
            {"element_strides": (1, 1, 14, 1)},
            "element_strides[1] is 14 (the convolution's stride along dimension 1, H); TMA needs 1 to 8. If it is the "
            "kernel_size (patches), reshape the tensor",
        ),
        (LEGAL_IM2COL, {"element_strides": (1, 1, 1, 9)}, "element_strides[0] is 9; TMA needs 1 to 8. Use"),
        (
            LEGAL_IM2COL,
            {"channels_per_pixel": 256, "swizzle": 3},
            "Use channels_per_pixel=64 (128 bytes), and load the other channels from another coordinate.",
        ),
        (LEGAL_IM2COL, {"channels_per_pixel": 9}, "channels_per_pixel is 9 (18 bytes)"),
        (PLAIN, {"allocation_class": 0}, 'allocation_class is 0 ("AUTO"); TMA needs one of 1 (SMALL), 2 (LARGE)'),
    ],
)
def test_sentences(base, change, expected):
    assert expected in "\n".join(lines(replace(base, **change)))


def test_all_violations_are_numbered_and_kept_on_the_error():
    wrong = replace(PLAIN, global_address=8, global_strides=(8, 12288), oob_fill=3)
    error = refusal(wrong, check(wrong), dtype_name="float32", options=TensorMapOptions(box_dim=(2, 16, 32)))
    head, *rest = str(error).split("\n")
    assert head == "no tensor map for a float32 tensor of shape (40, 48, 64) with TensorMapOptions; 3 rules are broken:"
    assert [line[:3] for line in rest] == ["1. ", "2. ", "3. "]
    assert isinstance(error, TensorMapError) and error.violations == check(wrong)


@pytest.mark.parametrize("violations", [None, "box_dim", [None], LARGE, LARGE.tolist(), {1: 2}])
def test_values_that_are_not_violations(violations):
    with pytest.raises(TensorMapError, match=r"^violations is .*; pass the result of cuda_tma.check\(\)$"):
        raise refusal(LEGAL, violations)


def test_an_unexplained_refusal_lists_all_arguments():
    text = str(refusal(LEGAL, (), dtype_name="float32"))
    assert "the driver refused" in text and "no known rule explains it" in text
    for argument in ("data_type=7", "global_strides=(256, 12288)", "box_dim=(32, 16, 2)", "swizzle=3", "oob_fill=0"):
        assert argument in text


@given(st.integers(0, 2**30))
def test_any_refused_recording_can_be_explained(seed):
    rows = [row.params for row in golden() if not row.accepted]
    params = rows[seed % len(rows)]
    violations = check(params, warnings=True)
    text = str(refusal(params, violations))
    assert text.count("[driver: ") == len(violations) == text.count("\n")
