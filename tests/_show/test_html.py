"""Tests of the HTML of a tensor map, which is well-formed, and contains each parameter once."""

import dataclasses
import sys
import xml.etree.ElementTree as ET

import pytest

from cuda_tma import TensorMapError, TensorSpec, check, enums, params_of
from cuda_tma import params as parameters
from cuda_tma._show.html import descriptor_html
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import Im2colParams, Im2colWideParams, Params

TILED = params_of(
    TensorSpec((2, 48, 64), "float32", address=0x7F00), box_dim=(1, 16, 32), element_strides=(1, 2, 1), swizzle="128B"
)
IM2COL = Im2colParams(
    data_type=T.UINT8,
    global_address=0,
    global_dim=(64, 8, 8, 3),
    global_strides=(64, 512, 4096),
    pixel_box_lower_corner=(-1, 0),
    pixel_box_upper_corner=(1, 2),
    channels_per_pixel=32,
    pixels_per_column=16,
    element_strides=(1, 1, 1, 1),
)


@pytest.fixture(params=["with matplotlib", "without"])
def has_matplotlib(request, monkeypatch):
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    else:
        pytest.importorskip("matplotlib")
    return request.param == "with matplotlib"


def cells(text):
    """Return a dict from each parameter in the HTML to its values in driver order and in tensor order."""
    rows = ET.fromstring(text).findall("./table/tr")[1:]
    return {name: tuple(rest) for name, *rest in ([cell.text or "" for cell in row] for row in rows)}


def test_every_parameter_in_both_orders(has_matplotlib):
    found = cells(descriptor_html(TILED))
    needed = ["tx_bytes", "smem_bytes", "smem_alignment"]
    assert list(found) == [f.name for f in dataclasses.fields(TILED) if f.name != "unexplained"] + needed
    assert found["data_type"] == ("FLOAT32 (7)", "")
    assert found["global_address"] == ("0x7f00", "")
    assert found["global_strides"] == ("256, 12288 bytes", "12288, 256")
    assert found["element_strides"] == ("1, 2, 1", "1, 2, 1")
    assert found["box_dim"] == ("32, 16, 1 elements", "1, 16, 32")
    assert found["tx_bytes"] == (f"{32 * 8 * 4} bytes for expect_tx", "")
    assert ("svg" in descriptor_html(TILED)) == has_matplotlib


def test_im2col_and_unexplained_bits():
    found = cells(descriptor_html(dataclasses.replace(IM2COL, unexplained=((2, 0x80),))))
    assert found["pixel_box_lower_corner"] == ("-1, 0", "0, -1")
    assert found["channels_per_pixel"] == ("32 elements", "")
    assert found["unexplained"] == ("word 2: bits 0x00000080", "")


def test_im2col_wide_names_its_mode():
    wide = Im2colWideParams(
        data_type=9, global_address=0, global_dim=(64, 8, 8, 3), global_strides=(128, 1024, 8192), swizzle=3,
        pixel_box_lower_corner_width=-1, pixel_box_upper_corner_width=1, channels_per_pixel=64, pixels_per_column=16,
        element_strides=(1,) * 4, mode=1, allocation_class=2,
    )  # fmt: skip
    found = cells(descriptor_html(wide))
    assert (found["mode"], found["allocation_class"]) == (("W128 (1)", ""), ("LARGE (2)", ""))
    assert found["pixel_box_lower_corner_width"] == ("-1", "") and "unexplained" not in found


def test_an_illegal_map_shows_its_broken_rules(has_matplotlib):
    illegal = dataclasses.replace(TILED, box_dim=(300, 0, 1), swizzle=9)
    text = descriptor_html(illegal)
    rows = [[cell.text or "" for cell in row] for row in ET.fromstring(text).findall("./table/tr")]
    broken = [["refused", str(violation), ""] for violation in check(illegal, (12, 0))]
    assert [row for row in rows if row[0] == "refused"] == broken and len(broken) == 3
    assert ["swizzle", "9", ""] in rows and "tx_bytes" not in text and "svg" not in text
    assert "refused" not in descriptor_html(TILED)
    packed = dataclasses.replace(TILED, data_type=13, global_dim=(128, 48, 2), box_dim=(128, 16, 1))
    # The page contains no refusal, because the compute capability is not given.
    assert "refused" not in descriptor_html(packed)


def test_a_wrong_argument_is_named():
    for params in (None, 3, Params):
        with pytest.raises(TensorMapError, match="pass TiledParams, Im2colParams or Im2colWideParams"):
            descriptor_html(params)
    with pytest.raises(TensorMapError, match="title is None; pass a str"):
        descriptor_html(TILED, None)


def test_a_notebook_shows_the_parameters(has_matplotlib):
    for params in (TILED, IM2COL):
        assert params._repr_html_() == descriptor_html(params)


@pytest.mark.parametrize("params", [TILED, IM2COL, dataclasses.replace(TILED, unexplained=((2, 1),), data_type=99)])
def test_the_repr_is_source_code(params):
    assert eval(repr(params), vars(enums) | vars(parameters)) == params
    assert repr(params).startswith(f"{type(params).__name__}(data_type=")
    assert "swizzle=TensorMapSwizzle." in repr(params) and f"global_address={params.global_address:#x}" in repr(params)
    assert ("data_type=TensorMapDataType." in repr(params)) == (params.data_type != 99)
    assert f"global_dim={params.global_dim}, " in repr(params)


def test_the_picture_is_inline_and_the_same_every_time(has_matplotlib):
    text = descriptor_html(TILED, "a <b> & c")
    assert "<caption>a &lt;b&gt; &amp; c</caption>" in text
    assert text == descriptor_html(TILED, "a <b> & c")
    assert "<?xml" not in text and "<!DOCTYPE" not in text
    if has_matplotlib:
        assert "swizzle NONE: column read is 8-way" in text
        assert "swizzle 128B: column read is free of conflicts" in text
