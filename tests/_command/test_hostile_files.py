"""Tests of files that an untrusted kernel names. The command opens only the user's files and files next to the
kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import cuda_tma
from cuda_tma._command import cli
from cuda_tma._command.sources import Sources

_opened: list[str] | None = None


def _note(event, arguments):
    if _opened is not None and event == "open" and isinstance(arguments[0], (str, bytes)):
        _opened.append(os.path.realpath(os.fsdecode(arguments[0])))


# Python has no function that removes an audit hook.
sys.addaudithook(_note)


PTX = """.version 8.0
.target sm_90a
.address_size 64
.file 1 "{name}"
.visible .entry f()
{{
.reg .b64 %rd<2>;
mov.u64 %rd1, 0;
.loc 1 1 1
st.global.u8 [%rd1], 1;
ret;
}}
"""
LAUNCH = ["--kernel", "f", "--grid", "1", "--block", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working directory, which is next to a folder of PTX and a folder of secrets."""
    for name in ("work", "work/src", "ptx", "ptx/below", "secret"):
        (tmp_path / name).mkdir()
    for name in ("work/src/a.cu", "ptx/a.cu", "ptx/below/a.cu", "secret/a.cu"):
        (tmp_path / name).write_text(f"shown {name}\n")
    os.symlink(tmp_path / "secret" / "a.cu", tmp_path / "work" / "link.cu")
    os.symlink(tmp_path / "secret", tmp_path / "work" / "linked")
    os.symlink(tmp_path / "work" / "src" / "a.cu", tmp_path / "secret" / "back.cu")
    os.mkfifo(tmp_path / "work" / "pipe.cu")
    (tmp_path / "work" / "large.cu").write_bytes(b"shown\n" + b"\n" * (4 << 20))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.fixture
def sanitize(folder, capsys):
    def sanitize(name, *more):
        global _opened
        (folder / "ptx" / "k.ptx").write_text(PTX.format(name=name))
        _opened = []
        try:
            status = cli.main(["sanitize", str(folder / "ptx" / "k.ptx"), *LAUNCH, *more])
        finally:
            opened, _opened = _opened, None
        return status, capsys.readouterr().out, opened

    return sanitize


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("src/a.cu", "work/src/a.cu"),
        ("{0}/work/src/a.cu", "work/src/a.cu"),
        ("./../work/./src/a.cu", "work/src/a.cu"),
        ("{0}/ptx/a.cu", "ptx/a.cu"),
        ("{0}/secret/back.cu", "work/src/a.cu"),
    ],
)
def test_a_line_of_a_file_that_the_user_named_is_shown(sanitize, folder, name, file):
    status, out, opened = sanitize(name.format(folder), "--sarif", "out.sarif")
    assert status == 1 and f"    1 | shown {file}\n" in out
    assert str(folder / file) in opened
    assert f"shown {file}" in (folder / "work" / "out.sarif").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../secret/a.cu",
        "/proc/self/fd/0",
        "/proc/thread-self/root{0}/secret/a.cu",
        "linked/../secret/a.cu",
        "linked/../../secret/a.cu",
        "./link.cu",
        "//etc//passwd",
        "{0}/secret/a.cu",
        "../secret/a.cu",
        "{0}/ptx/below/a.cu",
        "link.cu",
        "linked/a.cu",
        "pipe.cu",
        "large.cu",
        "src",
        "absent.cu",
        "src/../../secret/a.cu",
        "a/" * 100_000,
        "\\000",
        "",
    ],
)
def test_no_other_file_is_opened(sanitize, folder, name):
    status, out, opened = sanitize(name.format(folder), "--sarif", "out.sarif")
    assert status == 1 and "error[out-of-bounds]" in out
    assert "shown" not in out and "root:" not in out and "    1 | " not in out
    outside = [path for path in opened if path.startswith((str(folder / "secret"), "/etc/", "/dev/", "/proc/"))]
    assert outside == []
    (result,) = json.loads((folder / "work" / "out.sarif").read_text())["runs"][0]["results"]
    assert "snippet" not in result["locations"][0]["physicalLocation"].get("region", {})


def test_a_folder_of_headers_that_the_user_named_is_open(sanitize, folder):
    _, out, _ = sanitize(f"{folder}/secret/a.cu", "-I", str(folder / "secret"))
    assert "    1 | shown secret/a.cu\n" in out


def test_the_root_directory_contains_no_user_file(folder, monkeypatch):
    monkeypatch.chdir("/")
    sources = Sources(folder / "ptx" / "k.ptx")
    assert sources.lines(str(folder / "secret" / "a.cu")) == ()
    assert sources.lines(str(folder / "ptx" / "a.cu")) == ("shown ptx/a.cu", "")


def test_a_line_directive_of_cpp_opens_no_other_file(folder, capsys):
    source = 'extern "C" __global__ void f(int* p) {\n#line 1 "/etc/passwd"\n    p[1 << 20] = 1;\n}\n'
    (folder / "work" / "k.cu").write_text(source)
    assert cli.main(["sanitize", "k.cu", *LAUNCH, "--arg", "int32[1]"]) == 1
    out = capsys.readouterr().out
    assert "--> /etc/passwd:1" in out and "root:" not in out


def test_a_compiler_that_waits_for_a_pipe_reaches_the_time_limit(folder):
    """NVRTC opens the pipe and waits for data until the process reaches its time limit."""
    (folder / "work" / "waits.cu").write_text('#include "pipe.cu"\nextern "C" __global__ void f() {}\n')
    command = [sys.executable, "-m", "cuda_tma", "sanitize", "waits.cu", *LAUNCH, "--time-limit", "0.5"]
    root = os.path.dirname(os.path.dirname(cuda_tma.__file__))
    environment = {**os.environ, "PYTHONPATH": root}
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (found.returncode, found.stdout) == (3, "")
    assert found.stderr == "cuda-tma: the compilation of the kernel reached the time limit of 0.5 s\n"
