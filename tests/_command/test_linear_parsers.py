"""Tests that the parsers of pasted texts need time that is linear in the length of the text."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import struct
import subprocess
import time

import pytest

from cuda_tma import layouts, simulate
from cuda_tma._command import cli
from cuda_tma._command.dump import parse_dump
from cuda_tma._command.launch import argument
from cuda_tma._command.posted import read_posted
from cuda_tma._errors import TensorMapError
from cuda_tma._files import first_bytes
from cuda_tma.codec import encode
from tests.support.descriptors import LEGAL
from tests.support.forked import run_forked

LENGTH = 32_000
# A parser whose time grows with the square of the length needs 15 seconds or more.
MOST_SECONDS = 1
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
    with pytest.raises(TensorMapError, match="this is not a dump of 128 bytes"):
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
def test_a_word_next_to_its_name_is_read(text):
    assert read_posted(text).barriers == (1,)


def limited(*arguments):
    """Run a command with at most 400 MiB of memory and a time limit of 90 seconds."""
    return run_forked(*arguments, limits={resource.RLIMIT_DATA: 400 << 20}, seconds=90)


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
    ("command", "sentence"), [("explain", "no known content"), ("decode", "this is not a dump|is not a tensor map")]
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


@pytest.mark.parametrize("dim", ["4", "99999999999999999999", "0", "-3"])
def test_a_map_of_scalars_and_of_a_huge_rank(dim):
    """The parser of tensor maps does not allocate memory in proportion to a huge rank, and reads a single number as a
    tuple with one element."""
    text = f"tmaFormat: 9 dim: {dim} gmem: 0x1000\nShape: 64 16 1 7\nStride: 128 2 4096\ntileShapes: 64 16 1 1\n"
    (found,) = read_posted(f"{text}tileStrides: 1").maps
    assert found.params.element_strides == (1,) and found.params.global_dim == (64, 16, 1, 7)


def test_a_complaint_has_an_end(capsys):
    assert cli.main(["check", "--shape", "1x1", "--box", "1x1", "x" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 40_000


# ---- PTX ----

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def of_ptx(text: str) -> None:
    with contextlib.suppress(ValueError, NotImplementedError):
        simulate.Device().load(HEAD + text, "f")


def declared_again(number: int) -> str:
    return "".join("{ .local .b8 x[1]; L: bra L; }\n" for _ in range(number))


def places(number: int) -> str:
    strings = f".section .debug_str {{ {'a: .b8 120,' + ','.join(['120'] * number)}\n.b8 0 }}\n"
    at = "".join(f".loc 1 {i} 1, function_name a+{number - 4}, inlined_at 1 1 1\nret;\n" for i in range(number // 4))
    return f".entry f()\n{{\n{at}}}\n{strings}"


GROWING = {
    "statements": lambda n: f".entry f()\n{{\n.reg .b32 %r<4>;\n{'add.u32 %r1, %r2, 1;' * n}\nret;\n}}",
    "registers": lambda n: f".entry f()\n{{\n{''.join(f'.reg .b32 %a{i}<2>;' for i in range(n))}\nret;\n}}",
    "names in scopes of their own": lambda n: f".entry f()\n{{\n{declared_again(n)}ret;\n}}",
    "functions": lambda n: "".join(f".func g{i}()\n{{\nret;\n}}\n" for i in range(n)) + ".entry f()\n{\nret;\n}",
    "kernels": lambda n: "".join(f".entry g{i}()\n{{\nret;\n}}\n" for i in range(n)),
    "names of functions": places,
    "labels of strings": lambda n: f".section .debug_str {{ {''.join(f'a{i}: .b8 1 ' for i in range(n))} }}",
    "targets": lambda n: f".target {','.join(['sm_90a'] * n)}\n",
    "an initializer": lambda n: f".global .b32 x[{n}] = {{{'1,' * n}}};",
    "an expression": lambda n: f".global .b64 x = 1{'<<63*9' * n};",
    "strings": lambda n: '.file 1 "a"' * n,
    "comments": lambda n: "/**/" * n,
    "an open comment": lambda n: "/*" * n,
    "an open string": lambda n: '"' + "\\" * n,
    "a name": lambda n: f".entry {'f' * n}()",
    "parts of a name": lambda n: f".entry f{'.a::b' * n}()",
    "parameters": lambda n: f".entry f({','.join(f'.param .b8 p{i}' for i in range(n))})\n{{\nret;\n}}",
    "a line of attributes": lambda n: f".entry f() .maxntid {','.join(['1'] * n)}\n{{\nret;\n}}",
}


def grows_too_fast(name: str) -> bool:
    """Return whether the time grows faster than linearly. If the text becomes four times as long, a parser may take
    eight times as long. A quadratic parser takes sixteen times as long."""
    seconds = []
    for number in (3000, 12_000):
        text = GROWING[name](number)
        begun = time.process_time()
        of_ptx(text)
        seconds.append(time.process_time() - begun)
    return seconds[1] >= max(0.3, 8 * seconds[0])


@pytest.mark.parametrize("name", GROWING)
def test_ptx(name):
    """The test of the parser's time fails only after three long measurements, because one measurement can be wrong on a
    busy machine."""
    assert not all(grows_too_fast(name) for _ in range(3))


@pytest.mark.parametrize("part", [":", " ", "race:", "*", "a:1:", "\\", "C:\\", "::", "\t"])
def test_a_suppression(part):
    begun = time.process_time()
    with contextlib.suppress(ValueError):
        simulate.Suppression.parse("race" + repeated(part))
    assert time.process_time() - begun < MOST_SECONDS


@pytest.mark.parametrize("part", ["@1", ",a=b", "9", "x1", "hex:00", "[", "random:", "9.", "e+", "@1,a=b"])
def test_an_argument(part):
    begun = time.process_time()
    with contextlib.suppress(argparse.ArgumentTypeError):
        argument("float32[4]" + repeated(part) + "!")
    with contextlib.suppress(argparse.ArgumentTypeError):
        argument(repeated(part) + "!")
    assert time.process_time() - begun < MOST_SECONDS


@pytest.mark.parametrize("part", ["(", "1,", "((1,1),", ":", "@", "1", "x", "(1:", ")", "-1,", " "])
@pytest.mark.parametrize(
    "form", ["cute:{}@16x8", "cute:({}):(1)@16x8", "tile:{}", "tile:bf16:{}", "{}", "tmem.d:f32:{}"]
)
def test_a_layout(form, part):
    begun = time.process_time()
    with contextlib.suppress(ValueError, ImportError):
        layouts.compare(form.format(repeated(part)), "tile:bf16:8x64:128B")
    assert time.process_time() - begun < MOST_SECONDS
