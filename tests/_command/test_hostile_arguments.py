"""Tests of commands whose arguments name devices, pipes, folders, large files or missing libraries. Each command ends
with an error of one sentence."""

from __future__ import annotations

import os
import resource
import sys

import numpy as np
import pytest

from cuda_tma._command import cli
from tests.support.forked import run_forked

PTX = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f(.param .b64 p)\n{\nret;\n}\n"
FAULTY = PTX.replace("ret;", ".reg .b64 %r<2>;\nmov.b64 %r1, 0;\nst.global.u8 [%r1], 1;\nret;")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "folder.ptx").mkdir()
    for suffix in ("ptx", "cu", "npy", "txt", "sarif", "svg"):
        os.mkfifo(f"pipe.{suffix}")
        os.symlink("/dev/zero", f"zero.{suffix}")
    for suffix in ("ptx", "cu", "txt"):
        with open(f"large.{suffix}", "wb") as file:
            file.truncate(2 << 30)
    return tmp_path


def limited(*arguments):
    """Run a command with at most 500 MiB of memory and a time limit of 20 seconds."""
    return run_forked(*arguments, limits={resource.RLIMIT_DATA: 500 << 20}, seconds=20)


LAUNCH = ["--kernel", "f", "--grid", "1", "--block", "1"]
FILES = {
    "a kernel without end": ([], "zero.ptx", "zero.ptx has more than 33554432 bytes"),
    "a large kernel": ([], "large.ptx", "large.ptx has more than 33554432 bytes"),
    "C++ without end": ([], "zero.cu", "zero.cu has more than 33554432 bytes"),
    "large C++": ([], "large.cu", "large.cu has more than 33554432 bytes"),
    "a kernel in a pipe": ([], "pipe.ptx", "the PTX has no kernel f"),
    "a folder": ([], "folder.ptx", "folder.ptx cannot be read: Is a directory"),
    "no file": ([], "absent.ptx", "absent.ptx cannot be read: No such file"),
    "an array without end": (["--arg", "zero.npy"], "k.ptx", "zero.npy is not a .npy file of numbers"),
    "an array in a pipe": (
        ["--arg", "pipe.npy"],
        "k.ptx",
        "pipe.npy is not a .npy file of numbers|pipe.npy cannot be read",
    ),
    "an array of 1 TiB": (["--arg", "float32[524288x524288]"], "k.ptx", "does not fit in this machine's memory"),
    "suppressions without end": (["--suppressions", "zero.txt"], "k.ptx", "zero.txt has more than 1048576 bytes"),
    "large suppressions": (["--suppressions", "large.txt"], "k.ptx", "large.txt has more than 1048576 bytes"),
    "suppressions in a folder": (["--suppressions", "folder.ptx"], "k.ptx", "cannot be read: Is a directory"),
    "a log in a pipe": (
        ["--arg", "0", "--sarif", "pipe.sarif"],
        "k.ptx",
        "pipe.sarif cannot be written: No such device",
    ),
    "a log in a folder": (["--arg", "0", "--sarif", "folder.ptx"], "k.ptx", "folder.ptx cannot be written: Is a dir"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_kind_is_read_or_written_within_limits(folder, name):
    options, file, sentence = FILES[name]
    done = limited("sanitize", file, *LAUNCH, *options)
    assert done.returncode == 2, done.stderr
    assert any(each in done.stderr for each in sentence.split("|")), done.stderr
    assert done.stderr.count("\n") == 1


def test_suppressions_in_a_pipe_without_a_writer_are_empty(folder):
    assert limited("sanitize", "k.ptx", *LAUNCH, "--arg", "0", "--suppressions", "pipe.txt").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ["run", "k.ptx", *LAUNCH, "--arg", "0", "--timeline", "pipe.svg"],
        ["layouts", "tile:f32:8x8", "tile:f32:8x8", "--output", "pipe.svg"],
    ],
)
def test_a_picture_in_a_pipe_without_a_reader(folder, command):
    done = limited(*command)
    assert done.returncode == 2 and "pipe.svg cannot be written: No such device" in done.stderr, done.stderr


def test_a_launch_beyond_the_memory_of_its_process(folder):
    """The kernel needs 512 MiB, because each of its 2,048 threads has local memory of 256 KiB."""
    local = PTX.replace("ret;", ".local .b8 x[200000];\nst.local.u8 [x], 1;\nret;").replace(".param .b64 p", "")
    (folder / "local.ptx").write_text(local)
    done = limited("sanitize", "local.ptx", "--kernel", "f", "--grid", "2", "--block", "1024")
    assert done.returncode == 3, done.stderr
    assert done.stderr == "cuda-tma: this launch needs more memory than this process may have\n"


@pytest.mark.parametrize("argument", ["bfloat16[3]", "random:float8_e4m3fn[2x2]", "bfloat16[8x64]@8x32"])
def test_a_dtype_of_a_package_that_is_missing(folder, monkeypatch, capsys, argument):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert cli.main(["sanitize", "k.ptx", *LAUNCH, "--arg", argument]) == 2
    assert "a dtype of ml_dtypes, which is not installed: pip install ml_dtypes" in capsys.readouterr().err


def test_a_dtype_is_read_twice(folder, capsys):
    two = ["--arg", "bfloat16[3]"] * 2
    assert cli.main(["sanitize", "k.ptx", *LAUNCH, *two]) == 2
    assert "kernel f takes 1 argument, and 2 were given" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["finfo", "real", "ml_dtypes", "__doc__", "uint3", "float8_nonsense", "Ω"])
def test_an_invalid_dtype(folder, capsys, name):
    assert cli.main(["sanitize", "k.ptx", *LAUNCH, "--arg", f"{name}[3]"]) == 2
    assert "is not a dtype of NumPy or ml_dtypes" in capsys.readouterr().err


@pytest.mark.parametrize("given", [np.array(["text"]), np.array([{}], object), np.zeros(2, "i4,f4"), None])
def test_an_npy_file_without_numbers(folder, capsys, given):
    if given is None:
        np.savez(folder / "a.npz", np.zeros(4))
        os.rename("a.npz", "a.npy")
    else:
        np.save(folder / "a.npy", given, allow_pickle=True)
    assert cli.main(["sanitize", "k.ptx", *LAUNCH, "--arg", "a.npy"]) == 2
    assert "a.npy is not a .npy file of numbers" in capsys.readouterr().err


@pytest.mark.parametrize("descr", ["(" * 2000, "'<f4" + "(" * 300, "1" * 5000, "\0", "'" + "9" * 4000 + "'", "{" * 90])
def test_an_npy_file_with_a_wrong_header(folder, capsys, descr):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (4,), }}".encode()
    (folder / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16))
    assert cli.main(["sanitize", "k.ptx", *LAUNCH, "--arg", "a.npy"]) == 2
    assert "a.npy is not a .npy file of numbers" in capsys.readouterr().err


def test_a_capability_without_tma(folder, capsys):
    for command in ("sanitize", "run"):
        assert cli.main([command, "k.ptx", *LAUNCH, "--arg", "0", "--compute-capability", "8.0"]) == 2
        assert "has no TMA; pass (9, 0) or a later" in capsys.readouterr().err


def test_control_characters_of_a_kernel_reach_no_terminal(folder, capsys):
    name = "a\x1b[31m\u202eb.cu"
    text = FAULTY.replace(".visible", f'.file 1 "{name}"\n.visible').replace("st.global", ".loc 1 1 1\nst.global")
    (folder / "esc.ptx").write_text(text)
    for command in ("sanitize", "run"):
        assert cli.main([command, "esc.ptx", *LAUNCH, "--arg", "0"]) == 1
        out = capsys.readouterr().out
        assert r"a\x1b[31m\u202eb.cu:1" in out and "\x1b" not in out and "\u202e" not in out
    assert cli.main(["sanitize", "\x1b[31m.ptx", *LAUNCH]) == 2
    assert r"\x1b[31m.ptx cannot be read" in capsys.readouterr().err
