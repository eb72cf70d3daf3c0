"""Tests of commands whose input cannot be read, whose output cannot be written, or whose memory does not suffice."""

from __future__ import annotations

import io
import os
import sys

import pytest

from cuda_tma._command import cli, console, sources

PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) { ret; }
"""
UNREAD, UNSUPPORTED = 141, 3


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    """Return a function that runs a command in an empty folder, and returns its status and its error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "program").touch(0o755)
    (tmp_path / "program").write_bytes(b"\x7fELF")

    def run(*arguments):
        return cli.main([*map(str, arguments)]), capsys.readouterr().err.removeprefix("cuda-tma: ").rstrip("\n")

    return run


LAUNCH = ("--kernel", "k", "--grid", "1", "--block", "32", "--arg", "0")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("explain", "folder"), "folder cannot be read: Is a directory"),
        (("layouts", "tcgen05.ld.32x32b:b32", "tcgen05.ld.16x64b:b32", "--output", "none/x.svg"),
         "--output none/x.svg cannot be written: No such file or directory"),
        (("layouts", "tcgen05.ld.32x32b:b32", "tcgen05.ld.16x64b:b32", "--output", "x.png"),
         "--output x.png is not the name of an SVG file; end the name in .svg"),
        (("run", "k.ptx", *LAUNCH, "--output", "k.ptx/out"),
         "--output k.ptx/out cannot be written: [Errno 20] Not a directory: 'k.ptx/out'"),
        (("sanitize", "k.ptx", *LAUNCH, "--record", "folder"), "--record folder cannot be written: Is a directory"),
        (("sanitize", "k.ptx", *LAUNCH, "--json", "folder.json"),
         "--json folder.json cannot be written: Is a directory"),
        (("sanitize", "k.ptx", *LAUNCH, "--html", "folder"), "--html folder cannot be written: Is a directory"),
        (("plot",), "argument {tile,banks,box,tiles}: invalid choice: none (see cuda-tma plot --help)"),
        (("plot", "tile"), "the following arguments are required: --output (see cuda-tma plot --help)"),
        (("sanitize", "--every", "2", "--", "true"), "--every is only for --on-gpu: leave it out, or add --on-gpu"),
        (("sanitize", "--on-gpu", "--every", "0", "--", "true"), "--every 0 is not a positive number of 31 bits"),
        (("sanitize", "--on-gpu", "--configurations", 1 << 31, "--", "true"),
         "--configurations 2147483648 is not a positive number of 31 bits"),
        (("sanitize", "--", "./program"), "./program cannot be run: Exec format error"),
        (("sanitize", "--", "./nothing"), "the program ./nothing does not exist"),
        (("sanitize", "--", "program"), "the program program does not exist; did you mean ./program?"),
        (("sanitize", "--"), "no program follows -- (see cuda-tma sanitize --help)"),
        (("sanitize", "k.ptx", "--", "true"), "k.ptx names a FILE, and a program follows --; leave one of them out"),
    ],
)  # fmt: skip
def test_a_file_or_an_argument_that_cannot_be_used(command, arguments, error):
    assert command(*arguments) == (2, error)


def test_explain_with_closed_standard_input(command, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert command("explain") == (2, "standard input is closed; pass the text or a file")


@pytest.mark.parametrize(
    ("argv", "what"), [(["info"], "this command"), (["run", "k.ptx", *LAUNCH], "this launch")], ids=["info", "run"]
)
def test_memory_that_does_not_suffice(command, monkeypatch, argv, what):
    def fail(*given):
        raise MemoryError

    monkeypatch.setattr(cli, "parser", fail)
    assert command(*argv) == (UNSUPPORTED, f"{what} needs more memory than this process may have")


class Output(io.StringIO):
    """An output stream whose method `flush` raises an error."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def flush(self):
        raise self.error

    def fileno(self):
        raise OSError


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (BrokenPipeError(), UNREAD, ""),
        (OSError(28, "No space left on device"), 2, "the output cannot be written: No space left on device"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["pipe", "space", "interrupt"],
)
def test_an_output_that_cannot_be_written(command, monkeypatch, error, status, text):
    monkeypatch.setattr(sys, "stdout", Output(error))
    assert command("--version") == (status, text)


def test_an_error_without_a_reader_is_dropped(monkeypatch):
    monkeypatch.setattr(console.sys, "stderr", Output(BrokenPipeError()))
    console.complain("a text")
    assert console.sys.stderr.getvalue() == "cuda-tma: a text\n"


# ---- the sources that a report may show ----


def test_a_source_that_is_a_pipe_or_too_large(tmp_path, monkeypatch):
    pipe, large = tmp_path / "pipe.cuh", tmp_path / "large.cuh"
    os.mkfifo(pipe)
    monkeypatch.setattr(sources, "SOURCE_BYTES", 8)
    large.write_text("12345678")
    shown = sources.Sources(tmp_path / "k.cu", [])
    assert shown.lines(str(pipe)) == () and shown.lines(str(large)) == ("12345678",)
    with pytest.raises(ValueError, match="pipe.cuh is not a regular file"):
        sources._small_file(str(pipe), 8)
    with pytest.raises(ValueError, match="large.cuh has more than 7 bytes"):
        sources._small_file(str(large), 7)


def test_the_working_directory_counts_while_it_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [*sources._working_directory()] == [str(tmp_path)]
    monkeypatch.chdir("/")
    assert [*sources._working_directory()] == []
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert [*sources._working_directory()] == []
