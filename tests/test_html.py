"""The HTML of a tensor map: every parameter once, escaped, well-formed, with the bank picture if it can be drawn."""

import dataclasses
import sys
import xml.etree.ElementTree as ET

import pytest

from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.html import descriptor_html
from cuda_tma.params import Im2colParams, TiledParams

TILED = TiledParams(
    data_type=T.FLOAT32,
    global_address=0x7F00,
    global_dim=(64, 48, 2),
    global_strides=(256, 12288),
    box_dim=(32, 16, 1),
    element_strides=(1, 2, 1),
    swizzle=3,
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
    """{parameter: (driver order, tensor order)}, of well-formed HTML."""
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


def test_the_picture_is_inline_and_the_same_every_time(has_matplotlib):
    text = descriptor_html(TILED, "a <b> & c")
    assert "<caption>a &lt;b&gt; &amp; c</caption>" in text
    assert text == descriptor_html(TILED, "a <b> & c")
    assert "<?xml" not in text and "<!DOCTYPE" not in text
    if has_matplotlib:
        assert "swizzle NONE: column read is 8-way" in text
        assert "swizzle 128B: column read is free of conflicts" in text
