"""Tests of the command line's verdicts, exit statuses and JSON output for hex digits, files and shapes."""

import io
import json
import re
import struct
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import cuda_tma
from cuda_tma._command import cli
from cuda_tma._suggest import suggest
from cuda_tma.codec import encode
from tests._command._cli import FACTS, HEX, LEGAL_SHAPE, WRONG_SHAPE, run
from tests.support.descriptors import LEGAL, LEGAL_IM2COL


def test_check_accepts(capsys):
    assert run(capsys, "check", *LEGAL_SHAPE) == (0, "accepted: the driver accepts this map\n", "")


def test_check_explains_in_the_users_terms(capsys):
    status, out, _ = run(capsys, "check", *WRONG_SHAPE)
    assert status == 1
    assert "1. error: stride of dimension 0 is 6932 bytes (1733 float32 elements)" in out
    assert out.endswith("refused: 1 rule broken\n")


def test_check_warns_only_on_request(capsys):
    narrow = [*LEGAL_SHAPE[:5], "2x16x16", *LEGAL_SHAPE[6:]]
    assert run(capsys, "check", *narrow)[:2] == (0, "accepted: the driver accepts this map\n")
    status, out, _ = run(capsys, "check", "--warnings", *narrow)
    assert status == 0 and "1. warning: box_dim[2] is 16 (64 bytes)" in out


def test_check_uses_the_device(capsys):
    atoms = [*LEGAL_SHAPE[:7], "128B_ATOM_32B"]
    assert run(capsys, "check", *atoms)[0] == 1
    assert run(capsys, "check", "--compute-capability", "10.0", *atoms)[0] == 0


def test_check_json(capsys):
    status, out, _ = run(capsys, "check", "--json", *WRONG_SHAPE)
    answer = json.loads(out)
    assert status == 1 and answer["accepted"] is False and answer["unexplained"] == []
    (violation,) = answer["violations"]
    assert (violation["rule"], violation["value"], violation["nearest"]) == ("global_strides_alignment", 6932, 6944)


def test_decode_of_a_shape_prints_its_descriptor(capsys):
    status, out, _ = run(capsys, "decode", *LEGAL_SHAPE)
    assert status == 0 and out.split("\n")[-2] == HEX
    assert "global_strides[1]   12288 bytes" in out


@pytest.mark.parametrize("form", ["digits", "raw", "pairs", "lines", "words"])
def test_decode_reads_digits_and_files(capsys, tmp_path, form):
    path = tmp_path / "map"
    if form == "raw":
        path.write_bytes(encode(LEGAL))
    elif form == "words":
        path.write_text("\n".join(f"{word:08x}" for word in struct.unpack("<32I", encode(LEGAL))))
    elif form != "digits":
        size = 2 if form == "pairs" else 64
        path.write_text("\n".join(HEX[i : i + size] for i in range(0, 256, size)))
    status, out, _ = run(capsys, "decode", "--json", HEX if form == "digits" else path)
    answer = json.loads(out)
    assert status == 0 and answer["descriptor"] == HEX
    assert (answer["mode"], answer["box_dim"], answer["swizzle"]) == ("TiledParams", [32, 16, 2], 3)


def test_decode_reads_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(encode(LEGAL))))
    status, out, _ = run(capsys, "decode", "--json", "-")
    assert status == 0 and json.loads(out)["descriptor"] == HEX


def test_im2col_from_a_shape(capsys):
    options = "--shape 8x40x48x64 --dtype bfloat16 --lower-corner=-2x-1 --upper-corner=3x1 --channels 64 --pixels 100"
    status, out, _ = run(capsys, "decode", "--json", "--address", "0x1000", *options.split())
    assert status == 0 and json.loads(out)["descriptor"] == encode(LEGAL_IM2COL).hex()


def test_im2col_of_a_convolution(capsys):
    tensor = "--shape 8x40x48x64 --dtype bfloat16 --channels 64 --pixels 100 --swizzle 128B --oob-fill NAN"
    by_corners = "--lower-corner=-1x-2 --upper-corner=-3x0 --element-strides 1x2x1x1"
    for geometry in ("--kernel-size 3 --padding 1x2 --stride 2x1 --dilation 2x1", by_corners):
        status, out, _ = run(capsys, "decode", "--json", *tensor.split(), *geometry.split())
        answer = json.loads(out)
        assert status == 0 and answer["pixel_box_lower_corner"] == [-2, -1] and answer["oob_fill"] == 1
        assert (answer["pixel_box_upper_corner"], answer["element_strides"]) == ([0, -3], [1, 1, 2, 1])
    status, _, error = run(capsys, "check", *tensor.split())
    assert status == 2 and "pass --box; for im2col, pass --channels, --pixels, and --kernel-size or" in error
    status, out, _ = run(capsys, "check", *tensor.split(), "--kernel-size", "57x1")
    assert status == 1 and "The dilated kernel does not fit into the padded extent" in out


def test_strides_are_in_elements_and_tensor_order(capsys):
    status, out, _ = run(capsys, "decode", "--json", *WRONG_SHAPE, "--strides", "1736x1")
    assert status == 0 and json.loads(out)["global_strides"] == [6944]


def test_the_data_type_may_differ_from_the_dtype(capsys):
    status, out, _ = run(capsys, "decode", "--json", *LEGAL_SHAPE, "--data-type", "TFLOAT32")
    assert status == 0 and json.loads(out)["descriptor"] == encode(replace(LEGAL, data_type=11)).hex()
    status, out, _ = run(capsys, "decode", "--shape", "128x1024", "--box", "32x32", "--dtype", "int8")
    assert status == 0 and "data_type           UINT8" in out


def test_packed_elements_are_counted_as_the_package_counts_them(capsys):
    options = ["--shape", "4x64", "--dtype", "float4_e2m1fn_x2", "--data-type", "16U4_ALIGN8B", "--box", "4x32"]
    status, out, _ = run(capsys, "decode", "--json", *options)
    answer = json.loads(out)
    assert status == 0 and (answer["global_dim"], answer["global_strides"]) == ([128, 4], [64])


def test_the_allocation_class(capsys):
    status, out, _ = run(capsys, "decode", "--json", *LEGAL_SHAPE, "--allocation-class", "LARGE")
    assert status == 0 and json.loads(out)["descriptor"] == encode(replace(LEGAL, allocation_class=2)).hex()


def test_diff(capsys):
    other = encode(replace(LEGAL, l2_promotion=2)).hex()
    assert run(capsys, "diff", HEX, HEX) == (0, "equal\n", "")
    status, out, _ = run(capsys, "diff", HEX, other)
    assert status == 1 and "l2_promotion  NONE  128B  10" in out
    status, out, _ = run(capsys, "diff", "--json", HEX, other)
    assert status == 1 and [d["field"] for d in json.loads(out)] == ["l2_promotion"]


def test_maps_of_any_device_are_decoded_and_drawn(capsys, tmp_path):
    atoms = [*LEGAL_SHAPE[:7], "128B_ATOM_32B"]
    assert run(capsys, "decode", *atoms)[0] == 0
    assert run(capsys, "decode", *atoms, "--compute-capability", "9.0")[0] == 1
    pytest.importorskip("matplotlib")
    assert run(capsys, "plot", "tile", *atoms, "--output", tmp_path / "p.png")[0] == 0
    assert run(capsys, "plot", "tile", *atoms, "--compute-capability", "9.0", "--output", tmp_path / "q.png")[0] == 1


@pytest.mark.parametrize("spelling", ["90", "9.0", "9", "sm_90", "sm_90a"])
def test_every_spelling_of_the_device(capsys, spelling):
    atoms = [*LEGAL_SHAPE[:7], "128B_ATOM_32B"]
    assert run(capsys, "check", "--compute-capability", spelling, *atoms)[0] == 1


# --- suggest ---


def test_suggest(capsys):
    found = suggest((128, 128), "bfloat16")
    assert run(capsys, "suggest", "--shape", "128x128", "--dtype", "bf16") == (0, f"{found}\n", "")
    status, out, _ = run(capsys, "suggest", "--shape", "128x128", "--dtype", "bf16", "--json")
    assert status == 0 and json.loads(out) == {
        "box_dim": [128, 64],
        "data_type": "BFLOAT16",
        "swizzle": "128B",
        "loads": [1, 2],
        "reasons": list(found.reasons),
    }


def test_suggest_passes_its_arguments_on(capsys):
    options = ["--access", "row", "--smem-limit-bytes", "4096", "--compute-capability", "10.0"]
    found = suggest((64, 64), "float32", access="row", smem_limit_bytes=4096, compute_capability=(10, 0))
    assert found != suggest((64, 64), "float32")
    assert run(capsys, "suggest", "--shape", "64x64", *options) == (0, f"{found}\n", "")
    found = suggest((64, 64), "TFLOAT32")
    assert run(capsys, "suggest", "--shape", "64x64", "--data-type", "TFLOAT32") == (0, f"{found}\n", "")


def test_an_impossible_suggestion_is_refused(capsys):
    status, out, err = run(capsys, "suggest", "--shape", "0x4", "--json")
    answer = json.loads(out)
    assert status == 1 and answer["accepted"] is False and answer["error"] in err


# --- version and help ---


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"cuda-tma {cuda_tma.__version__}\n", "")


@pytest.mark.parametrize("command", ["check", "decode", "diff", "suggest", "plot", "info", "run", "demo"])
def test_every_argument_has_help(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "300")
    status, out, _ = run(capsys, command, "--help")
    # The help text of an option is on the line of the option, or on the next line.
    rows = re.findall(r"\n  (\S.*(?:\n   .*)*)", out)
    assert status == 0 and len(rows) >= 2
    assert all(re.fullmatch(r"\S.*?\s{2,}\w[^\n]+", row) for row in rows)
    assert command in run(capsys, "--help")[1]


def test_rich_on_a_terminal_prints_the_same(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = run(capsys, "decode", HEX)
    assert status == 0 and "global_dim[1]" in out and "│" in out


PICTURES = {
    "tile": "BFLOAT16 box 64 x 8",
    "banks": "column read is",
    "box": "512 of 512 elements inside",
    "tiles": "16 x 16 tiles",
}


@pytest.mark.parametrize("picture", PICTURES)
def test_plot_writes_a_picture(capsys, tmp_path, monkeypatch, picture):
    matplotlib = pytest.importorskip("matplotlib")
    # With the setting svg.fonttype, matplotlib writes characters into the SVG file, not shapes of glyphs.
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    path = tmp_path / "picture.svg"
    options = ["--shape", "128x1024", "--dtype", "bfloat16", "--box", "8x64", "--swizzle", "128B"]
    options += ["--at", "16x64"] if picture != "banks" else ["--access", "column"]
    assert run(capsys, "plot", picture, *options, "--output", path) == (0, f"wrote {path}\n", "")
    assert PICTURES[picture] in path.read_text()


def test_plot_starts_at_the_coordinates(capsys, tmp_path, monkeypatch):
    plot = pytest.importorskip("cuda_tma.plot")
    seen = []
    figure = SimpleNamespace(savefig=lambda *_, **__: None)
    monkeypatch.setattr(plot, "tile", lambda *arguments: seen.append(arguments) or figure)
    assert run(capsys, "plot", "tile", HEX, "--at=-1x2x32", "--output", tmp_path / "t.png")[0] == 0
    assert run(capsys, "plot", "tile", HEX, "--output", tmp_path / "t.png")[0] == 0
    assert seen == [(LEGAL, (32, 2, -1)), (LEGAL, (0, 0, 0))]


def test_plot_without_matplotlib_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, out, err = run(capsys, "plot", "tile", HEX, "--output", "no.png")
    assert (status, out) == (2, "") and err.count("drawing needs matplotlib") == 1 and "pip install matplotlib" in err


@pytest.mark.parametrize("picture", ["tile", "box"])
def test_plot_refuses_a_load_that_kills_the_context(capsys, tmp_path, picture):
    pytest.importorskip("matplotlib")
    options = ["--shape", "128x128", "--dtype", "bfloat16", "--box", "64x64", "--swizzle", "128B", "--at=-32x100"]
    status, out, err = run(capsys, "plot", picture, *options, "--output", tmp_path / "no.png")
    assert (status, out, list(tmp_path.iterdir())) == (1, "", [])
    assert "CUDA_ERROR_ILLEGAL_INSTRUCTION: coordinates[0]=100 is not a multiple of 8 elements of BFLOAT16" in err


def test_info_without_a_driver(capsys, monkeypatch):
    monkeypatch.setattr(cli, "facts", lambda: FACTS | {"driver": {"missing": "no libcuda"}, "devices": []})
    status, out, _ = run(capsys, "info")
    assert status == 0
    assert "cuda-tma       9.9" in out and "rich           not installed" in out and "device header  /inc" in out
    assert "driver         none: everything works but making and launching maps" in out and "no libcuda" in out


def test_info_with_devices(capsys, monkeypatch):
    monkeypatch.setattr(cli, "facts", lambda: FACTS)
    status, out, _ = run(capsys, "info")
    assert status == 0
    assert "driver            for CUDA 13.0" in out and "allocation class  no" in out
    assert "device 0          H200, compute capability 9.0: has TMA\n" in out
    assert "device 1          A100, compute capability 8.0: has no TMA, which came with 9.0\n" in out
    status, out, _ = run(capsys, "info", "--json")
    assert status == 0 and json.loads(out)["devices"][0] == {
        "name": "H200",
        "compute_capability": [9, 0],
        "has_tma": True,
    }


def test_the_help_states_that_kernels_run(capsys):
    assert cli.main(["--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "run kernels that use tensor maps without a GPU, and find their races and hangs" in words
