"""Tests of the exit of a command after a refusal, a usage error, or output that no process reads."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cuda_tma._command import cli
from cuda_tma.codec import encode
from tests._command._cli import FACTS, LEGAL_SHAPE, WRONG_SHAPE, run
from tests.support.descriptors import LEGAL

HEX = encode(LEGAL).hex()
HUGE = "99999999999999999999"
TENSOR = ["--shape", "4x4", "--box", "4x4"]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["decode", "/no/such/file"], "/no/such/file cannot be read: No such file or directory"),
        (["decode", "/"], "/ cannot be read: Is a directory"),
        (["decode", "y" * 300], f"{'y' * 200} cannot be read: File name too long"),
        (["decode", ""], "'' does not name a file. Pass 256 hex digits"),
        (["decode", HEX[:-2]], "this is not a dump of 128 bytes: it has 254 hex digits, but 128 bytes have 256. Pass"),
        (["decode", HEX + "00"], "this is not a dump of 128 bytes: it has 258 hex digits"),
        (["decode", "ff" * 128], "rank"),
        (["check", "ff" * 128], "rank"),
        (
            ["check"],
            "pass a descriptor (hex digits, a file or -), or pass --shape with --box or with the options of im2col",
        ),
        (["check", "--box", "4x4"], "pass a descriptor"),
        (["check", HEX, "--shape", "4"], "determine all of its fields; leave out --shape, or the bytes"),
        (
            ["decode", HEX, "--box", "64x64", "--swizzle", "64B", "--dtype", "int8"],
            "leave out --dtype, --box, --swizzle,",
        ),
        (
            ["check", "--shape", "4x4"],
            "pass --box; for im2col, pass --channels, --pixels, and --kernel-size or both --lower-",
        ),
        (["check", "--shape", "4x4", "--channels", "4"], "pass --box; for im2col"),
        (
            ["check", *TENSOR, "--stride", "8x1"],
            "--stride does not fit --box, which makes the map tiled: leave one of",
        ),
        (
            ["check", *TENSOR, "--stride", "8x1"],
            "--stride is for im2col of a convolution: stride of the convolution (default: 1)",
        ),
        (
            ["check", *TENSOR, "--kernel-size", "3"],
            "--box does not fit --kernel-size, which makes the map im2col of a",
        ),
        (
            ["check", *TENSOR, "--lower-corner", "3"],
            "--box does not fit --lower-corner, which makes the map im2col:",
        ),
        (
            ["check", *TENSOR, "--upper-corner", "3"],
            "--box does not fit --upper-corner, which makes the map im2col:",
        ),
        (
            ["check", *TENSOR, "--wide", "W"],
            "--box does not fit --wide, which makes the map im2col wide: leave one",
        ),
        (
            ["check", *TENSOR, "--pixels", "8"],
            "--pixels is for im2col of a convolution and im2col and im2col wide: pixels",
        ),
        (
            ["check", "--shape", "1x8x8x8", "--kernel-size", "3"],
            "of a convolution (--kernel-size) also needs --channels,",
        ),
        (["check", "--shape", "1x8x8x8", "--lower-corner", "3x3"], "needs --upper-corner, --channels, --pixels"),
        (
            ["check", "--shape", "1x8x8x8", "--wide", "W", "--lower-corner", "1"],
            "needs --upper-corner, --channels, --pixels",
        ),
        (["check", *TENSOR, "--strid", "8x1"], "unrecognized arguments: --strid (see cuda-tma --help)"),
        (
            ["check", *TENSOR, "--swizzle", "96B"],
            "argument --swizzle: swizzle='96B' is not a TensorMapSwizzle; choose one",
        ),
        (["check", *TENSOR, "--allocation-class", "HUGE"], '"AUTO", "SMALL", "LARGE"'),
        (["check", *TENSOR, "--oob-fill", "ONE"], "argument --oob-fill: oob_fill='ONE' is not a TensorMapOOBFill"),
        (["check", *TENSOR, "--dtype", "TFLOAT32"], "dtype='TFLOAT32' is not a dtype"),
        (
            ["check", *TENSOR, "--dtype", "float33"],
            "argument --dtype: dtype='float33' is not a dtype; choose one of int8,",
        ),
        (
            ["check", *TENSOR, "--data-type", "float33"],
            "--data-type: data_type='float33' is neither a dtype nor a",
        ),
        (["check", *TENSOR, "--element-strides", "1;1"], "'1;1' is not a list of integers; write it as 128x1733"),
        (
            ["check", "--shape", "4xx4", "--box", "4x4"],
            "argument --shape: '4xx4' is not a list of integers; write it as",
        ),
        (["check", "--shape", "9" * 26, "--box", "4"], "is not a list of integers"),
        (["check", "--shape", "", "--box", "4"], "argument --shape: '' is not a list of integers"),
        (["check", "--shape", "4", "--channels", "x"], "argument --channels: 'x' is not an integer"),
        (["check", *TENSOR, "--address", "x"], "argument --address: 'x' is not an address; write it as 4096 or 0x1000"),
        (["check", *TENSOR, "--address", "0x"], "argument --address: '0x' is not an address"),
        (
            ["check", *TENSOR, "--padding", "1:2:3"],
            "'1:2:3' is not a padding; write it as 1x1, as 0:1x2:2 (before:after),",
        ),
        (["check", *TENSOR, "--compute-capability", "13"], "compute_capability is '13'; pass (major, minor)"),
        (["check", *TENSOR, "--compute-capability", "900"], "compute_capability is '900'; pass"),
        (["diff", "-", "-"], "standard input, which can be read only once; pass one of them as digits or as a file"),
        (["diff", HEX, "zz"], "zz cannot be read: No such file"),
        (["plot", "tile", HEX, "--at", "1x2", "--output", "no.png"], "--at has length 2, but the map has rank 3"),
        (["plot", "tile", HEX, "--access", "row", "--output", "no.png"], "--access applies only to banks"),
        (
            ["plot", "banks", HEX, "--at", "0x0x0", "--output", "no.png"],
            "--at is the start of a load and is only for tile and box;",
        ),
        (["plot", "tile", HEX, "--output", "/no/such/x.png"], "--output /no/such/x.png: [Errno 2] No such file"),
        (["plot", "tile", HEX, "--output", "no.xyz"], "--output no.xyz: Format 'xyz' is not supported"),
        (
            ["plot", "tile", HEX, "--output", "no"],
            "--output no has no suffix to select a format; end it with .png, .svg or .pdf",
        ),
        (["plot", "tile", HEX], "the following arguments are required: --output (see cuda-tma plot --help)"),
        (["suggest"], "the following arguments are required: --shape (see cuda-tma suggest --help)"),
        (["suggest", "--shape", "4x4", "--access", "diagonal"], "argument --access: invalid choice: 'diagonal'"),
        ([], "the following arguments are required: COMMAND (see cuda-tma --help)"),
        (["chek"], "invalid choice: 'chek'"),
        (["info", HEX], "unrecognized arguments: "),
    ],
)
def test_misuse_is_status_2_on_standard_error_and_in_json(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "") and err.startswith("cuda-tma: ") and err.endswith("\n") and message in err
    status, out, again = run(capsys, *arguments, "--json")
    assert status == 2 and list(json.loads(out)) == ["error"]
    if arguments not in ([], ["chek"]):
        assert message in json.loads(out)["error"] and (again == err or "unrecognized" in err)


REFUSED = [
    (["--shape", "4x4", "--box", "4x4", "--strides", "1x4"], "dimension 1, the innermost, has stride 4"),
    (["--shape", "4x4", "--box", "4x4", "--strides=-4x1"], "dimension 0 has stride -4 elements"),
    (["--shape", "4x4", "--box", "4x4", "--strides", "4"], "strides=(4,) has length 1, but shape=(4, 4) has length 2"),
    (["--shape", "0x4", "--box", "4x4"], "dimension 0 of shape (0, 4) has extent 0"),
    (["--shape", "1x1x1x1x4x4", "--box", "1x1x1x1x4x4"], "the tensor has rank 6"),
    (["--shape", "4x4", "--box", "4"], "box_dim=(4,) has length 1 for a tensor of rank 2"),
    (["--shape", "4x4", "--box=-4x4"], "box_dim[0]=-4 does not fit"),
    (["--shape", "4x4", "--box", "4x4", "--dtype", "complex128"], "the elements are complex128"),
    (["--shape", "4x4", "--box", "4x4", "--dtype", "float4_e2m1fn_x2"], "can be moved in three ways"),
    (["--shape", "4x4", "--box", "4x4", "--address=-16"], "address=-16 is not a 64-bit address"),
    (["--shape", "4x4", "--box", "4x4", "--address", HUGE], f"address={HUGE} is not a 64-bit address"),
    (["--shape", "4x4", "--box", "4x4", "--address", "0x10000000000000000"], "is not a 64-bit address"),
    (["--shape", f"{HUGE}x5", "--box", "4x4"], "does not fit in 64 bits"),
    (["--shape", "4x4", "--box", "4x4", "--strides", f"{HUGE}x1"], "does not fit in 64 bits"),
    (
        ["--shape", "4x4", "--box", "4x4", "--element-strides", "1x2"],
        "asks for steps of 2 elements along the innermost",
    ),
    (
        ["--shape", "8x256", "--kernel-size", "3", "--channels", "64", "--pixels", "8"],
        "--shape has 2 extents; a convol",
    ),
    (["--shape", "1x1x1x1x1x1", "--kernel-size", "3", "--channels", "64", "--pixels", "8"], "--shape has 6 extents"),
    (
        ["--shape", "1x9x9x64", "--kernel-size", "3", "--padding=-1", "--channels", "64", "--pixels", "8"],
        "has a value below 0",
    ),
    (
        [
            "--shape",
            "1x9x9x64",
            "--kernel-size",
            "3",
            "--padding",
            "same",
            "--stride",
            "2",
            "--channels",
            "64",
            "--pixels",
            "8",
        ],
        'padding="same" needs a stride of 1',
    ),
]


@pytest.mark.parametrize("command", ["check", "decode", "plot"])
@pytest.mark.parametrize("arguments,message", REFUSED)
def test_tensors_without_a_map_are_refused(capsys, tmp_path, command, arguments, message):
    command = ["plot", "tile", "--output", str(tmp_path / "p.png")] if command == "plot" else [command]
    status, out, err = run(capsys, *command, *arguments)
    assert (status, out) == (1, "") and err.startswith("cuda-tma: ") and message in err
    status, out, again = run(capsys, *command, "--json", *arguments)
    answer = json.loads(out)
    assert (status, again) == (1, err) and f"cuda-tma: {answer.pop('error')}\n" == err
    assert answer == {"accepted": False, "violations": []} and not (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    "options,rules",
    [
        (["--shape", "128x1733", "--box", "32x32"], ["global_strides_alignment"]),
        (["--shape", "128x128", "--box", "300x300"], ["box_dim_range", "box_dim_range", "box_dim_bytes"]),
        (["--shape", "128x128", "--box", "32x32", "--address", "8"], ["global_address_alignment"]),
        (["--shape", "128x128", "--box", "32x32", "--allocation-class", "AUTO"], ["allocation_class"]),
        (["--shape", "128x128", "--box", "32x32", "--swizzle", "128B_ATOM_32B"], ["swizzle"]),
    ],
)
def test_only_legal_maps_have_bytes_and_pictures(capsys, tmp_path, options, rules):
    for command in (["decode"], ["plot", "box", "--output", str(tmp_path / "p.png")]):
        status, out, err = run(capsys, *command, *options, "--compute-capability", "90")
        assert (status, out) == (1, "") and err.startswith(
            "cuda-tma: no tensor map for a float32 tensor of shape (128, "
        )
        status, out, _ = run(capsys, *command, *options, "--json", "--compute-capability", "sm_90")
        answer = json.loads(out)
        assert status == 1 and not answer["accepted"] and [v["rule"] for v in answer["violations"]] == rules
        assert "must be" in answer["violations"][0]["message"] and f"cuda-tma: {answer['error']}\n" == err
    assert not (tmp_path / "p.png").exists()


# --- output that cannot be written ---


def outcome(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, close=(), **environment):
    """Return the exit status and the standard error of a separate process."""
    redirections = " ".join(f"{number}>&-" if number else "<&-" for number in close)
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-m", "cuda_tma", *arguments]
    found = subprocess.run(command, stdout=stdout, stderr=stderr, env=os.environ | environment)
    return found.returncode, found.stderr.decode() if found.stderr is not None else ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_reported(unbuffered):
    with open("/dev/full", "wb") as full:
        found = outcome("decode", HEX, stdout=full, PYTHONUNBUFFERED=unbuffered)
        assert found == (2, "cuda-tma: the output cannot be written: No space left on device\n")
        assert outcome("decode", "zz", stderr=full, PYTHONUNBUFFERED=unbuffered)[0] == 2


def test_closed_streams():
    assert outcome("check", *LEGAL_SHAPE, close=(1,)) == (0, "")
    assert outcome("check", *WRONG_SHAPE, close=(1,)) == (1, "")
    assert outcome("info", close=(1,)) == (0, "")
    assert outcome("decode", "-", close=(0,)) == (2, "cuda-tma: standard input is closed; pass hex digits or a file\n")
    assert outcome("decode", "zz", close=(2,)) == (2, "")


def test_complaints_do_not_appear_on_standard_output(capfd, monkeypatch):
    """The test closes standard error, because ``print()`` would then write the error message to standard output."""
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["decode", "zz"]) == 2
    assert capfd.readouterr().out == ""


def test_an_interrupt_prints_no_traceback(capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "facts", interrupt)
    assert run(capsys, "info") == (130, "", "")


def test_characters_absent_from_the_terminal_are_escaped(tmp_path):
    command = [sys.executable, "-m", "cuda_tma", "info"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.getcwd()}
    code = "import sys; from cuda_tma._command import cli; cli.facts = lambda: {FACTS!r}; sys.exit(cli.main(['info']))"
    facts = FACTS | {"include_path": "/\N{GREEK SMALL LETTER ALPHA}\udcff"}
    command = [sys.executable, "-c", code.replace("{FACTS!r}", ascii(facts))]
    found = subprocess.run(command, capture_output=True, env=environment)
    assert (found.returncode, found.stderr) == (0, b"") and rb"/\u03b1\udcff" in found.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_without_a_reader_ends_quietly(unbuffered):
    """The reader of the command's output closes the pipe early, as in ``cuda-tma decode ... | head -3``. The command
    then gets an error when it prints or flushes a line."""
    command = [sys.executable, "-m", "cuda_tma", "decode", HEX]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


def test_the_demo_ends_as_every_command_does(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((4, 4)))
    command = ["demo", "--emulate", "--input", str(tmp_path / "in.npy"), "--output", str(tmp_path / "o.png")]
    with open("/dev/full", "wb") as full:
        found = outcome(*command, stdout=full)
    assert found == (2, "cuda-tma: the output cannot be written: No space left on device\n")
    with subprocess.Popen(
        [sys.executable, "-m", "cuda_tma", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)
