"""Texts that people paste are read in time that grows as their length does: no part of a text is looked at again."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import time

import pytest

from cuda_tma._files import first_bytes
from cuda_tma.codec import encode
from cuda_tma.command.dump import parse_dump
from cuda_tma.command.posted import read_posted
from cuda_tma.errors import TensorMapError

from .descriptors import LEGAL

LENGTH = 32_000
MOST_SECONDS = 1  # quadratic time is 15 seconds and more
HEX_LIST, NUMBER_LIST = "[" + ",".join(["0x1"] * 16), "[" + ",".join(["1"] * 16)


def repeated(part: str) -> str:
    return part * (LENGTH // len(part))


@pytest.mark.parametrize(
    "text",
    [repeated(part) for part in ("\n", " \n", "\t\n ", "0<\n", "0 <", "0x0 <\n")]
    + ["0" + repeated("\n") + ":", "0" + repeated(" ") + "<", repeated("f") + "<"],
    ids=lambda text: ascii(text[:8]),
)
def test_a_dump(text):
    begun = time.process_time()
    with pytest.raises(TensorMapError, match="this is no dump of 128 bytes"):
        parse_dump(text)
    assert time.process_time() - begun < MOST_SECONDS


@pytest.mark.parametrize(
    ("begin", "part", "end"),
    [
        (HEX_LIST, " ", ""),
        (HEX_LIST, "\n", ","),
        (NUMBER_LIST, " ", ""),
        (NUMBER_LIST, "\t\n", ","),
        ("mbarrier", " ", "z"),
        ("mbarrier word", "\t", ":"),
        ("error", "\n", ""),
        ("error ", "[", ""),
        ("", "error[", ""),
        ("globalDim", "\n", ":"),
        ("", "boxDim (", ""),
        ("", "b'\\", ""),
        ("", "0 <", ""),
        ("", "a[1] ", ""),
    ],
)
def test_a_posted_text(begin, part, end):
    begun = time.process_time()
    posted = read_posted(begin + repeated(part) + end)
    assert time.process_time() - begun < MOST_SECONDS
    assert not any(posted)


@pytest.mark.parametrize("end", ["]", " ]", ",]", " , ]", "\n,\n]"])
@pytest.mark.parametrize("form", ["{}", "{:#x}"])
def test_a_list_that_ends_in_a_comma_and_blanks_is_read(form, end):
    words = struct.unpack("<16Q", encode(LEGAL))
    (found,) = read_posted(f"[{', '.join(map(form.format, words))}{end}").maps
    assert found.params == LEGAL


@pytest.mark.parametrize("text", ["mbarrier : 0x1", "mbarrier word=0x1", "mbarrier state 0x1", "mbarrier   0x1"])
def test_a_word_beside_its_name_is_read(text):
    assert read_posted(text).barriers == (1,)


def limited(*arguments):
    """A command that may have 400 MiB of memory, and 20 seconds."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (400 << 20,) * 2);"
        "from cuda_tma.command import cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


def file_without_end(folder):
    return "/dev/zero"


def pipe_without_a_writer(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def file_of_two_gigabytes(folder):
    with open(folder / "log", "wb") as file:
        file.truncate(2 << 30)
    return folder / "log"


@pytest.mark.parametrize("make", [file_without_end, pipe_without_a_writer, file_of_two_gigabytes])
@pytest.mark.parametrize(
    ("command", "sentence"), [("explain", "nothing in it is known"), ("decode", "this is no dump|is no tensor map")]
)
def test_a_file_is_read_up_to_a_bound(tmp_path, make, command, sentence):
    done = limited(command, make(tmp_path))
    assert done.returncode == 2, done.stderr
    assert re.search(sentence, done.stderr)


def test_a_pipe_with_a_writer_is_read(tmp_path):
    writer = f"sleep 0.2; echo error 715 of cuda > {tmp_path}/pipe"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["bash", "-c", f"exec 3<>{tmp_path}/pipe; ({writer}) & wait"]) as other:
        handle = os.open(tmp_path / "pipe", os.O_RDONLY)
        os.close(handle)
        assert first_bytes(str(tmp_path / "pipe"), 5) == b"error"
    assert other.returncode == 0
