"""The command line: verdicts, exit statuses and JSON, from hex digits, files and shapes."""

import io
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cuda_tma import cli
from cuda_tma.codec import encode

from .descriptors import LEGAL, LEGAL_IM2COL

LEGAL_SHAPE = ["--shape", "40x48x64", "--dtype", "float32", "--box", "2x16x32", "--swizzle", "128B"]
LEGAL_SHAPE += ["--address", "4096"]
WRONG_SHAPE = ["--shape", "128x1733", "--dtype", "float32", "--box", "32x32", "--swizzle", "128B"]
HEX = encode(LEGAL).hex()


def run(capsys, *arguments):
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_check_accepts(capsys):
    assert run(capsys, "check", *LEGAL_SHAPE) == (0, "accepted: the driver takes this map\n", "")


def test_check_explains_in_the_users_terms(capsys):
    status, out, _ = run(capsys, "check", *WRONG_SHAPE)
    assert status == 1
    assert "1. error: stride of dimension 0 is 6932 bytes (1733 float32 elements)" in out
    assert out.endswith("refused: 1 rule broken\n")


def test_check_warns_only_when_asked(capsys):
    narrow = [*LEGAL_SHAPE[:5], "2x16x16", *LEGAL_SHAPE[6:]]
    assert run(capsys, "check", *narrow)[:2] == (0, "accepted: the driver takes this map\n")
    status, out, _ = run(capsys, "check", "--warnings", *narrow)
    assert status == 0 and "1. warning: box_dim[2] is 16 (64 bytes)" in out


def test_check_knows_the_device(capsys):
    atoms = [*LEGAL_SHAPE[:7], "128B_ATOM_32B"]
    assert run(capsys, "check", *atoms)[0] == 1
    assert run(capsys, "check", "--compute-capability", "10.0", *atoms)[0] == 0


def test_check_json(capsys):
    status, out, _ = run(capsys, "check", "--json", *WRONG_SHAPE)
    answer = json.loads(out)
    assert status == 1 and answer["accepted"] is False
    (violation,) = answer["violations"]
    assert (violation["rule"], violation["value"], violation["nearest"]) == ("global_strides_alignment", 6932, 6944)


def test_decode_of_a_shape_prints_its_descriptor(capsys):
    status, out, _ = run(capsys, "decode", *LEGAL_SHAPE)
    assert status == 0 and out.split("\n")[-2] == HEX
    assert "global_strides[1]   12288 bytes" in out


@pytest.mark.parametrize("form", ["digits", "raw", "text"])
def test_decode_reads_digits_and_files(capsys, tmp_path, form):
    path = tmp_path / "map"
    if form == "raw":
        path.write_bytes(encode(LEGAL))
    elif form == "text":
        path.write_text("\n".join(HEX[i : i + 8] for i in range(0, 256, 8)))
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


def test_strides_are_in_elements_and_tensor_order(capsys):
    status, out, _ = run(capsys, "decode", "--json", *WRONG_SHAPE, "--strides", "1736x1")
    assert status == 0 and json.loads(out)["global_strides"] == [6944]


def test_diff(capsys):
    other = encode(replace(LEGAL, l2_promotion=2)).hex()
    assert run(capsys, "diff", HEX, HEX) == (0, "equal\n", "")
    status, out, _ = run(capsys, "diff", HEX, other)
    assert status == 1 and "l2_promotion  NONE  128B  10" in out
    status, out, _ = run(capsys, "diff", "--json", HEX, other)
    assert status == 1 and [d["field"] for d in json.loads(out)] == ["l2_promotion"]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["decode", "/no/such/file"], "No such file"),
        (["decode", "ff" * 128], "rank"),
        (["check"], "give either a descriptor"),
        (["check", HEX, "--shape", "4"], "give either a descriptor"),
        (["check", "--shape", "4x4"], "give --box"),
        (["check", "--shape", "4x4", "--box", "4x4", "--strides", "1x4"], "end in 1"),
        (["check", "--shape", "4x4", "--box", "4x4", "--swizzle", "96B"], 'choose one of "NONE", "32B"'),
        (["check", "--shape", "4x4", "--box", "4x4", "--dtype", "complex128"], "has no tensor-map data type"),
    ],
)
def test_trouble_is_status_2_on_standard_error(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "") and err.startswith("cuda-tma: ") and message in err


def test_commands_elsewhere_get_their_arguments(monkeypatch):
    seen = []
    monkeypatch.setattr(
        cli.importlib, "import_module", lambda name: SimpleNamespace(main=lambda a: seen.append((name, a)))
    )
    assert cli.main(["demo", "--fast"]) == 0
    assert seen == [("cuda_tma.demo", ["--fast"])]


def test_rich_on_a_terminal_says_the_same(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = run(capsys, "decode", HEX)
    assert status == 0 and "global_dim[1]" in out and "│" in out
