"""Tests of the parser of dumped tensor maps. Each tool's format gives the same 128 bytes, and the parser refuses
ambiguous text."""

import io
import re
import struct
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma._command.dump import parse_dump, read_map
from cuda_tma._errors import TensorMapError
from cuda_tma.codec import encode
from tests.support.descriptors import LEGAL

RAW = encode(LEGAL)
DIGITS = RAW.hex()
HOW = "Pass 256 hex digits in a row or in pairs, in the order of memory; or words, each with its most significant digit"


def words(raw: bytes, kind: str) -> tuple[int, ...]:
    return struct.unpack(f"<{128 // struct.calcsize(kind)}{kind}", raw)


def lines(text: str, width: int, end: str = "\n") -> str:
    return end.join(text[i : i + width] for i in range(0, len(text), width))


def debugger(raw: bytes, per_line: int, form: str, kind: str) -> str:
    """Format memory as gdb's x/32xw and x/16xg do."""
    found = words(raw, kind)
    size = struct.calcsize(kind)
    return "\n".join(
        f"0x7ffe{size * i:04x} <map+{size * i}>:\t" + "\t".join(form.format(word) for word in found[i : i + per_line])
        for i in range(0, len(found), per_line)
    )


FORMS = {
    "digits": bytes.hex,
    "capitals": lambda raw: raw.hex().upper(),
    "pairs": lambda raw: raw.hex(" "),
    "commas": lambda raw: raw.hex(","),
    "0x pairs": lambda raw: ", ".join(f"0x{byte:02X}" for byte in raw),
    "0x bytes without zeros": lambda raw: " ".join(f"{byte:#x}" for byte in raw),
    "a list of Python": lambda raw: str([hex(byte) for byte in raw]).replace("'", ""),
    "lines of 64 digits": lambda raw: lines(raw.hex(), 64),
    "lines of 60 digits, as xxd -p": lambda raw: lines(raw.hex(), 60) + "\n",
    "lines of 18 digits": lambda raw: lines(raw.hex(), 18),
    "%016llx": lambda raw: " ".join(f"{word:016x}" for word in words(raw, "Q")),
    "0x%016llx": lambda raw: " ".join(f"0x{word:016x}" for word in words(raw, "Q")),
    "0x%llx": lambda raw: ",".join(f"0x{word:x}" for word in words(raw, "Q")),
    "%08x": lambda raw: "_".join(f"{word:08x}" for word in words(raw, "I")),
    "0x%08X": lambda raw: "\n".join(f"0x{word:08X}" for word in words(raw, "I")),
    "0X%x": lambda raw: " ".join(f"0X{word:x}" for word in words(raw, "I")),
    "0x%04hx": lambda raw: " ".join(f"0x{word:04x}" for word in words(raw, "H")),
    "C": lambda raw: "{" + ", ".join(f"0x{word:x}ull" for word in words(raw, "Q")) + "};",
    "C of 32 bits": lambda raw: "{" + ", ".join(f"0x{word:08x}U" for word in words(raw, "I")) + "}",
    "gdb x/32xw": lambda raw: debugger(raw, 4, "0x{:08x}", "I"),
    "gdb x/16xg": lambda raw: debugger(raw, 2, "0x{:016x}", "Q"),
    "gdb x/128xb": lambda raw: debugger(raw, 8, "0x{:02x}", "B"),
}


@pytest.mark.parametrize("form", FORMS)
@given(bits=st.binary(min_size=127, max_size=127))
def test_every_form_is_read_as_its_bytes(form, bits):
    # The last byte is 255, so no form omits a leading zero of the last number.
    raw = bits + b"\xff"
    assert parse_dump(FORMS[form](raw)) == raw


@pytest.mark.parametrize("form", FORMS)
def test_a_map_is_read_from_an_argument_and_from_a_file(form, tmp_path):
    text = FORMS[form](RAW)
    path = tmp_path / "dump"
    path.write_text(text)
    assert read_map(text) == RAW and read_map(str(path)) == RAW


REFUSED = {
    "127 bytes with 0x": (
        " ".join(f"0x{b:02x}" for b in RAW[1:]),
        "the longest of 127 groups with 0x has 2 digits, so",
    ),
    "groups of 4, which are words to hexdump": (lines(DIGITS, 4, " "), "64 groups of 4 to 4 digits could be bytes in"),
    "groups of 6": (lines(DIGITS, 6, " "), "43 groups of 4 to 6 digits could be bytes"),
    "groups of 32 but for a short one": (DIGITS[:8] + " " + lines(DIGITS[8:], 32), "of 8 to 32 digits could be"),
    "lines, two of them short": (f"{DIGITS[:200]} {DIGITS[200:210]} {DIGITS[210:]}", "3 groups of 10 to 200 digits"),
    "words of 4 bytes in order": (
        lines(DIGITS, 8, " "),
        "32 groups of 8 digits are a map if read as bytes, but not if",
    ),
    "words of 8 bytes in order": (
        lines(DIGITS, 16, " "),
        "16 groups of 16 digits are a map if read as bytes, but not if",
    ),
    "8 and 16": (lines(DIGITS[:128], 8) + " " + lines(DIGITS[128:], 16), "24 groups of 8 to 16 digits could be"),
    "one long number": ("0x" + DIGITS, "the longest of 1 group with 0x has 256 digits, so they are not 128 bytes"),
    "numbers of 128 bits": (" 0x".join(["", *lines(DIGITS, 32).split()]), "longest of 8 groups with 0x has 32 digits"),
    "half with 0x": ("0x" + lines(DIGITS, 16, " "), "some of its groups begin with 0x, and some do not"),
    "one digit less": (DIGITS[:-1], "it has 255 hex digits, but 128 bytes have 256"),
    "one digit more": (DIGITS + "0", "it has 257 hex digits"),
    "one pair less": (RAW[:-1].hex(" "), "it has 254 hex digits"),
    "a word less": (" ".join(f"0x{w:08x}" for w in words(RAW, "I")[:-1]), "longest of 31 groups with 0x has 8 digits"),
    "half of the words": (" ".join(f"0x{w:08x}" for w in words(RAW, "I")[:16]), "longest of 16 groups with 0x has 8"),
    "a byte too large": (" ".join(["0x100", *(f"0x{b:02x}" for b in RAW[1:])]), "longest of 128 groups with 0x has 3"),
    "a word too long": (" ".join(["0x" + "1" * 17] * 16), "longest of 16 groups with 0x has 17 digits"),
    "decimal numbers": (str(list(RAW)), "hex digits, but 128 bytes have 256"),
    "another letter": (DIGITS[:-1] + "g", "it is not a sequence of hex digits"),
    "words of two dumps": (DIGITS * 2, "it has 512 hex digits"),
    "signs": (" ".join(["-0x1"] * 16), "it is not a sequence of hex digits"),
    "digits of another script": (DIGITS[:-1] + "\N{ARABIC-INDIC DIGIT ONE}", "it is not a sequence of hex"),
    "an 0x without digits": ("0x " * 16, "it is not a sequence of hex digits"),
    "nothing": ("", "it is not a sequence of hex digits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_dump_is_refused_with_the_ways_to_write_one(case):
    text, why = REFUSED[case]
    with pytest.raises(TensorMapError, match="this is not a dump of 128 bytes: ") as error:
        parse_dump(text)
    assert re.search(why, str(error.value)) and HOW in str(error.value)


@pytest.mark.parametrize(("count", "most"), [(16, 16), (32, 8), (64, 4), (128, 2)])
def test_the_longest_word_shows_that_no_digits_are_missing(count, most):
    """The parser refuses hex numbers of half the full length, because such numbers could come from half of a dump."""
    size = 128 // count
    for digits in range(most // 2 + 1, most + 1):
        text = "0x1 " * (count - 1) + "0x" + "f" * digits
        assert parse_dump(text) == (b"\1" + bytes(size - 1)) * (count - 1) + (16**digits - 1).to_bytes(size, "little")
    for digits in (most // 2, most + 1):
        with pytest.raises(TensorMapError, match=f"the longest of {count} groups with 0x has {digits} digit"):
            parse_dump("0x1 " * (count - 1) + "0x" + "f" * digits)


# --- files ---


def test_a_file_of_128_bytes_is_the_map(tmp_path):
    (tmp_path / "map").write_bytes(RAW)
    assert read_map(str(tmp_path / "map")) == RAW


def test_a_text_of_128_characters_is_a_text(tmp_path):
    text = "0x123456789 " + "0x12345 " * 14 + "0x0"
    assert len(text) <= 128
    (tmp_path / "map").write_text(text.ljust(128))
    assert read_map(str(tmp_path / "map")) == parse_dump(text) != text.ljust(128).encode()


@pytest.mark.parametrize("size", [0, 64, 127, 129, 256, 1 << 16])
def test_a_file_of_another_size_is_named_with_its_size(tmp_path, size):
    path = tmp_path / "map"
    path.write_bytes(b"\xff" * size)
    with pytest.raises(TensorMapError) as error:
        read_map(str(path))
    assert str(error.value).startswith(
        f"{path} is not a tensor map: it has {size} bytes, and a tensor map has 128. {HOW}"
    )


def test_a_text_that_is_not_a_dump_is_named_with_its_file(tmp_path):
    path = tmp_path / "map"
    path.write_text(DIGITS[:-2])
    with pytest.raises(TensorMapError) as error:
        read_map(str(path))
    assert str(error.value).startswith(f"{path}: this is not a dump of 128 bytes: it has 254 hex digits")


def test_no_more_of_a_file_is_read_than_shows_that_it_is_too_large():
    asked = []

    class Endless(io.RawIOBase):
        def read(self, size):
            asked.append(size)
            return bytes(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=Endless()))
        with pytest.raises(
            TensorMapError, match="standard input is not a tensor map: it has more than 65536 bytes, and a"
        ):
            read_map("-")
    assert asked == [65537]
    with pytest.raises(TensorMapError, match="/dev/zero is not a tensor map: it has more than 65536 bytes"):
        read_map("/dev/zero")


def test_standard_input(monkeypatch):
    for data in (RAW, DIGITS.encode()):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert read_map("-") == RAW
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TensorMapError, match="standard input is closed; pass hex digits or a file"):
        read_map("-")


def test_a_file_that_has_the_name_of_digits_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ("0" * 128)).write_bytes(RAW)
    assert read_map("0" * 128) == RAW
    # The name of a file cannot contain as many digits as a descriptor has.
    assert read_map(DIGITS) == RAW


def test_64_digits_are_an_unfinished_dump_not_a_missing_file():
    with pytest.raises(TensorMapError, match="it has 64 hex digits"):
        read_map("0" * 64)
    with pytest.raises(FileNotFoundError):
        read_map("0" * 63)


@pytest.mark.parametrize("source", ["", "  ", "a\0b"])
def test_arguments_that_name_no_file(source):
    with pytest.raises(TensorMapError) as error:
        read_map(source)
    assert str(error.value).startswith(f"{source!r} does not name a file. {HOW}")


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_map(str(tmp_path))
