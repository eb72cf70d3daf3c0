"""Tests of the command line with tensor maps of every dtype, of convolutions, and with bytes that no driver writes."""

import json
import re
import struct
from dataclasses import replace

import pytest

from cuda_tma.codec import encode
from tests._command._cli import HEX, run
from tests.support.descriptors import LEGAL

# --- bytes that no driver writes ---


def test_check_warns_of_bits_that_no_driver_writes(capsys):
    raw = encode(LEGAL)[:-4] + b"\xff\xff\xff\xff"
    status, out, _ = run(capsys, "check", raw.hex())
    assert status == 0 and out == (
        "1. warning: unknown bits of word 31: 0xffffffff, where the driver writes 0x0: no field is known there; its "
        "effect on a load is unknown\n"
        "accepted, with a warning: the driver accepts the parameters, but would write other bytes\n"
    )
    status, out, _ = run(capsys, "check", "--json", raw.hex())
    answer = json.loads(out)
    assert status == 0 and answer["accepted"] is True and answer["violations"] == []
    assert [(d["field"], d["a"], d["b"]) for d in answer["unexplained"]] == [
        ("unknown bits of word 31", "0xffffffff", "0x0")
    ]


def test_check_reports_unread_bits(capsys):
    raw = encode(LEGAL)
    status, out, _ = run(capsys, "check", (raw[:64] + bytes(4) + raw[68:]).hex())
    assert status == 0 and "1. warning: transfer_bytes: 0, where the driver writes 4096: " in out
    assert "a load does not read it" in out and "accepted, with a warning" in out


def test_check_refuses_in_spite_of_other_bits(capsys):
    raw = encode(replace(LEGAL, global_address=8))[:-4] + b"\xff\xff\xff\xff"
    status, out, _ = run(capsys, "check", raw.hex())
    assert status == 1 and out.startswith("1. error: the tensor begins at address 0x8;")
    assert "\n2. warning: unknown bits of word 31" in out and out.endswith("\nrefused: 1 rule broken\n")


def test_rules_are_counted(capsys):
    status, out, _ = run(capsys, "check", "--shape", "128x1733", "--box", "300x300")
    assert status == 1 and out.endswith("refused: 4 rules broken\n") and "\n4. error" in out


def test_diff_of_bytes_that_are_not_a_map_compares_stored_values(capsys):
    raw = encode(LEGAL)
    broken = bytearray(raw)
    # The descriptor then contains the rank 8, which no tensor map has.
    broken[8] |= 0x70
    broken[127] = 0xFF
    status, out, err = run(capsys, "diff", raw.hex(), broken.hex())
    assert status == 1 and err.startswith("cuda-tma: rank 8 cannot be encoded in a tensor map")
    assert err.endswith("The numbers in its fields are compared as they are stored\n")
    lines = [line.split()[:4] for line in out.splitlines()[1:]]
    assert lines[0] == ["rank", "2", "7", "8"] and lines[1][:3] == ["unknown", "bits", "of"]
    status, out, _ = run(capsys, "diff", "--json", raw.hex(), broken.hex())
    assert status == 1 and [(d["field"], d["a"], d["b"], d["byte_offsets"]) for d in json.loads(out)] == [
        ("rank", "2", "7", [8]),
        ("unknown bits of word 31", "0x0", "0xff000000", [127]),
    ]
    assert run(capsys, "diff", broken.hex(), broken.hex())[:2] == (0, "equal\n")


# --- words ---


@pytest.mark.parametrize("form", ["0x%016x", "%016x", "0x%x"])
def test_words_of_64_bits_are_little_endian(capsys, form):
    text = " ".join(form % word for word in struct.unpack("<16Q", encode(LEGAL)))
    status, out, _ = run(capsys, "decode", "--json", text)
    assert status == 0 and json.loads(out)["descriptor"] == HEX
    assert run(capsys, "diff", text, HEX) == (0, "equal\n", "")


def test_elements_have_the_users_name(capsys):
    narrow = ["--shape", "8x24", "--box", "8x8"]
    assert "(24 int8 elements)" in run(capsys, "check", *narrow, "--dtype", "int8")[1]
    assert "(25 float32 elements)" in run(capsys, "check", "--shape", "8x25", "--box", "8x8")[1]
    raw = encode(replace(LEGAL, box_dim=(9, 16, 2)))
    assert "box_dim[2] is 9 (36 bytes)" in run(capsys, "check", raw.hex())[1]


@pytest.mark.parametrize("name", ["bfloat16", "torch.bfloat16", "BFLOAT16", "bf16", "BF16"])
def test_every_name_of_a_dtype(capsys, name):
    status, out, _ = run(capsys, "decode", "--json", "--shape", "64x64", "--box", "8x8", "--dtype", name)
    assert status == 0 and json.loads(out)["data_type"] == 9


@pytest.mark.parametrize("name,data_type", [("f4", 7), ("FLOAT32", 7), ("torch.float32", 7), ("float32", 7), ("i1", 0)])
def test_the_names_that_the_package_takes(capsys, name, data_type):
    status, out, _ = run(capsys, "decode", "--json", "--shape", "64x64", "--box", "16x16", "--dtype", name)
    assert status == 0 and json.loads(out)["data_type"] == data_type


# --- im2col ---

IMAGES = ["--shape", "8x40x48x64", "--dtype", "bfloat16", "--channels", "64", "--pixels", "100"]


@pytest.mark.parametrize(
    "geometry,lower,upper",
    [
        ("--kernel-size 3", [0, 0], [-2, -2]),
        ("--kernel-size 3 --padding valid", [0, 0], [-2, -2]),
        ("--kernel-size 4x3 --padding same", [-1, -1], [-1, -1]),
        ("--kernel-size 3 --padding 0:1", [0, 0], [-1, -1]),
        ("--kernel-size 3 --padding 0:1x2:3", [-2, 0], [1, -1]),
        ("--kernel-size 3 --padding 1x0:2", [0, -1], [0, -1]),
        ("--kernel-size 3 --padding 1x2 --dilation 2x1", [-2, -1], [0, -3]),
    ],
)
def test_padding_of_a_convolution(capsys, geometry, lower, upper):
    """The corners of an im2col map are in driver order, in which W precedes H."""
    status, out, _ = run(capsys, "decode", "--json", *IMAGES, *geometry.split())
    answer = json.loads(out)
    assert status == 0 and answer["mode"] == "Im2colParams"
    assert (answer["pixel_box_lower_corner"], answer["pixel_box_upper_corner"]) == (lower, upper)


def test_a_convolution_of_every_rank(capsys):
    for shape, count in (("8x48x64", 1), ("8x9x9x48x64", 3)):
        options = f"--shape {shape} --channels 16 --pixels 8 --kernel-size 3 --stride 2".split()
        status, out, _ = run(capsys, "decode", "--json", *options)
        answer = json.loads(out)
        assert status == 0 and answer["pixel_box_upper_corner"] == [-2] * count
        assert answer["element_strides"] == [1, *[2] * count, 1]


def test_arguments_of_a_convolution_that_do_not_fit_each_other(capsys):
    status, _, err = run(capsys, "check", *IMAGES, "--kernel-size", "3x3", "--stride", "1x2x3")
    assert status == 2 and "have different lengths" in err


WIDE = ["--wide", "W128", "--lower-corner=-3", "--upper-corner", "4"]


def test_im2col_wide(capsys):
    status, out, _ = run(capsys, "decode", "--json", *IMAGES, *WIDE, "--swizzle", "64B")
    assert status == 1 and [v["rule"] for v in json.loads(out)["violations"]] == ["channels_per_pixel_span"]
    status, out, _ = run(capsys, "decode", "--json", *IMAGES, *WIDE, "--element-strides", "1x1x2x1")
    answer = json.loads(out)
    assert (status, answer["mode"], answer["wide_mode"], answer["swizzle"]) == (0, "Im2colWideParams", 1, 3)
    corners = answer["pixel_box_lower_corner_width"], answer["pixel_box_upper_corner_width"]
    assert corners == (-3, 4) and answer["element_strides"] == [1, 2, 1, 1]
    plain = json.loads(run(capsys, "decode", "--json", answer["descriptor"])[1])
    assert (plain["mode"], plain["pixel_box_lower_corner"], plain["pixel_box_upper_corner"]) == (
        "Im2colParams",
        [-3, 0],
        [4, 0],
    )
    status, out, _ = run(capsys, "decode", *IMAGES, *WIDE)
    assert status == 0 and re.search(r"\nmode +W128 +none that is known\n", out)
    status, out, _ = run(capsys, "check", *IMAGES, *WIDE)
    assert status == 1 and "compute capability 9.0" in out
    assert run(capsys, "check", *IMAGES, *WIDE, "--compute-capability", "10.0")[0] == 0


@pytest.mark.parametrize("corner", ["--lower-corner=-300", "--upper-corner=300"])
def test_a_wide_map_without_known_bytes_has_none(capsys, corner):
    """The driver documents 16 bits for each corner of an im2col wide map. A plain im2col map of rank 4 has only 8 bits
    for each corner."""
    options = [*IMAGES, "--wide", "W", "--lower-corner=-3", "--upper-corner=400", corner]
    assert run(capsys, "check", *options, "--compute-capability", "10.0")[0] == 0
    status, out, err = run(capsys, "decode", *options)
    assert (status, out) == (1, "") and err.startswith("cuda-tma: the 128 bytes of this map are unknown")


def test_wide_corners_have_one_value(capsys):
    for corners in (["--lower-corner=1x1", "--upper-corner=1"], ["--lower-corner=1", "--upper-corner=1x1"]):
        status, _, err = run(capsys, "check", *IMAGES, "--wide", "W", *corners)
        assert status == 2 and "have one value each, for dimension W; pass one value" in err
