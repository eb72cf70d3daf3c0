"""Texts that people paste are read in time that grows as their length does: no part of a text is looked at again."""

from __future__ import annotations

import struct
import time

import pytest

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
