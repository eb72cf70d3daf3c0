"""The parser of the 128 bytes of a tensor map, which are in a file, or in hex digits from various tools."""

from __future__ import annotations

import os
import re
import sys

from .. import TensorMapError
from .._files import first_bytes
from .._limits import DESCRIPTOR_BYTES
from ..codec import decode

__all__ = ["parse_dump", "read_map"]

_HOW = (
    "Pass 256 hex digits in a row or in pairs, in the order of memory; or words, each with its most significant digit "
    'first, as C prints them: 16 of 16 digits ("0x%016llx") or 32 of 8 ("0x%08x")'
)
_MOST_BYTES = 1 << 16  # The limit on the size of a file is far above the size of a dump of 128 bytes.
_SEPARATORS = re.compile(r"[\s,;_(){}\[\]]+")
# The pattern matches an address at the start of a line. A pattern that crossed line ends would take quadratic time.
_ADDRESS = re.compile(r"^[ \t]*(?:0x)?[0-9a-f]+(?:[ \t]*<[^<>\n]*>)?:", re.IGNORECASE | re.MULTILINE)
# An integer constant in C may end in the letters u and l.
_GROUP = re.compile(r"(0x)?([0-9a-f]+?)u?l{0,2}", re.IGNORECASE)
# The number of words in a dump of 128 bytes determines the size of a word.
_WORD_BYTES = {DESCRIPTOR_BYTES // size: size for size in (1, 2, 4, 8)}
_DIGITS = re.compile(r"[\s,;_(){}\[\]0-9a-fxul]+", re.IGNORECASE)
_TEXT = re.compile(r"[\s!-~]+")  # The pattern matches printable ASCII text.
# A group of 4 digits without 0x is ambiguous: xxd prints bytes in order, but hexdump prints words.
_WORD_DIGITS = (2, 8, 16)
_LONGEST_WORD = 16


def parse_dump(text: str) -> bytes:
    """Return the bytes whose hex digits a text contains.

    Parameters
    ----------
    text : str
        The hex digits. 256 digits in a row (also in lines of more than 16 digits) or pairs of digits are bytes in the
        order of memory. Groups of 8 or 16 digits, all with or all without ``0x``, are little-endian words, as
        ``printf`` writes the words of ``uint64_t opaque[16]``. Groups with ``0x`` whose words are 128 bytes are also
        little-endian words. Words are refused if only the bytes in the order of the text are a map. Commas, brackets
        and addresses of a debugger may separate groups.

    Returns
    -------
    bytes
        The 128 bytes.

    Raises
    ------
    TensorMapError
        If the digits are not 128 bytes, or are ambiguous.

    Examples
    --------
    >>> parse_dump("0x0000001000000000 " * 16)[:8] == parse_dump("00000000 00000010 " * 16)[:8]
    True
    """
    matches = [_GROUP.fullmatch(group) for group in _SEPARATORS.split(_ADDRESS.sub(" ", text)) if group]
    groups = [(bool(match[1]), match[2]) for match in matches if match]
    if not groups or len(groups) < len(matches):
        raise _unreadable("it is not a sequence of hex digits")
    prefixes, digits = zip(*groups, strict=True)
    if all(prefixes):
        return _prefixed_words(digits)
    if any(prefixes):
        raise _unreadable("some of its groups begin with 0x, and some do not")
    return _plain_digits(digits)


def _prefixed_words(words: tuple[str, ...]) -> bytes:
    """Convert words with the prefix ``0x``; the number of words determines the size of each word.

    Leading zeros of a word may be missing, but at least one word must have more than half of its digits.
    """
    size = _WORD_BYTES.get(len(words), 0)
    longest = max(map(len, words))
    if not size < longest <= 2 * size:
        has = f"{longest} digit{'s' * (longest > 1)}"
        raise _unreadable(f"the longest of {_count(words)} with 0x has {has}, so they are not 128 bytes")
    return b"".join(int(word, 16).to_bytes(size, "little") for word in words)


def _plain_digits(groups: tuple[str, ...]) -> bytes:
    digits, lengths = "".join(groups), [len(group) for group in groups]
    if len(digits) != 2 * DESCRIPTOR_BYTES:
        raise _unreadable(f"it has {len(digits)} hex digits, but 128 bytes have 256")
    if len(set(lengths)) == 1 and lengths[0] in _WORD_DIGITS:
        words = b"".join(bytes.fromhex(group)[::-1] for group in groups)
        # Python's bytes.hex(" ", 8) and xxd -g 8 print groups of 16 digits, with the bytes in order.
        if _is_a_drivers(bytes.fromhex(digits)) and not _is_a_drivers(words):
            raise _unreadable(
                f"{_count(groups)} of {lengths[0]} digits are a map if read as bytes, but not if read as words"
            )
        return words
    # Only the last line of a dump may have fewer digits than the other lines.
    if min(lengths[:-1], default=lengths[0]) > _LONGEST_WORD:
        return bytes.fromhex(digits)
    raise _unreadable(f"{_count(groups)} of {min(lengths)} to {max(lengths)} digits could be bytes in order, or words")


def _is_a_drivers(raw: bytes) -> bool:
    """Return whether every code in the map has a meaning, as in a map that a driver has created."""
    try:
        return not decode(raw).unexplained
    except TensorMapError:
        return False


def _count(groups: tuple[str, ...]) -> str:
    return f"{len(groups)} group{'s' * (len(groups) > 1)}"


def _unreadable(why: str) -> TensorMapError:
    return TensorMapError(f"this is not a dump of 128 bytes: {why}. {_HOW}")


def read_map(source: str) -> bytes:
    """Return 128 bytes from the text of a dump, from a file of bytes or text, or from standard input (``-``).

    Raises
    ------
    TensorMapError
        If the argument does not contain a tensor map.
    OSError
        If the file cannot be read.
    """
    if source == "-":
        if sys.stdin is None:
            raise TensorMapError("standard input is closed; pass hex digits or a file")
        return _of_data("standard input", sys.stdin.buffer.read(_MOST_BYTES + 1))
    if _looks_like_digits(source) and not os.path.exists(source):
        return parse_dump(source)
    if not source.strip() or "\0" in source:
        raise TensorMapError(
            f"{source!r} does not name a file. {_HOW}; or pass a file with the digits or the 128 bytes"
        )
    return _of_data(source, first_bytes(source, _MOST_BYTES + 1))


def _looks_like_digits(text: str) -> bool:
    """Return whether a text is a complete or nearly complete dump, and not the name of a file."""
    return len(text) >= DESCRIPTOR_BYTES // 2 and bool(_DIGITS.fullmatch(_ADDRESS.sub(" ", text)))


def _of_data(name: str, data: bytes) -> bytes:
    """Return the tensor map in the data of a file.

    The function first reads the data as text. A text of 16 short words may have 128 characters, but no tensor map has
    the bytes of such a text.
    """
    if len(data) > _MOST_BYTES:
        raise _no_map(name, f"more than {_MOST_BYTES}")
    text = data.decode("ascii", "replace")
    try:
        return parse_dump(text)
    except TensorMapError as error:
        if len(data) == DESCRIPTOR_BYTES:
            return data
        if _TEXT.fullmatch(text):
            raise TensorMapError(f"{name}: {error}") from None
        raise _no_map(name, str(len(data))) from None


def _no_map(name: str, size: str) -> TensorMapError:
    return TensorMapError(f"{name} is not a tensor map: it has {size} bytes, and a tensor map has 128. {_HOW}")
