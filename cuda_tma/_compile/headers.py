"""The headers that a source includes, so that a kept kernel is not taken for another when one of them changes.

NVRTC cannot list what it read. So the text is scanned, and then every header that is found: conditions are not worked
out, and what stands in a comment counts too. That is more than the compiler reads, and never less, but for an include
whose file is a macro, for which nothing is kept, and ``__has_include`` of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from .._budget import KERNEL_BYTES
from .._files import first_bytes

__all__ = ["headers_of"]


class _Unknowable(Exception):
    """An include has no end or is too large for a header, or a text has too many comments within directives."""


# What may stand between the parts of a directive: blanks, ends of lines that go on, comments.
_BLANK = rb"(?:[ \t\f\v\r]|\\\r?\n|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*"
_PLACE = rb'(?:"([^"\n]+)"|<([^>\n]+)>'
# #include "a.h", <a.h> or A_MACRO; #embed is of C++26. Patterns that begin with one letter are searched fast.
_DIRECTIVE = re.compile(rb"#" + _BLANK + rb"(?:include|include_next|embed)\b" + _BLANK + _PLACE + rb"|(\w+))")
_BLANKS = b" \t\f\v\r"
# A comment within a directive: each may be looked through to the end of the text.
_COMMENTED = re.compile(rb"(?:#|\binclude|\binclude_next|\bembed|\b__has_(?:include|embed)[ \t]*\(?)[ \t]*/\*")
_MOST_COMMENTED = 64  # of a text: more is no header
_QUESTION = re.compile(rb"__has_(?:include|embed)" + _BLANK + rb"\(" + _BLANK + _PLACE + rb")()")
_FOLDER_OPTIONS = ("--include-path", "-I")
_FILE_OPTIONS = ("--pre-include", "-include")


def headers_of(source: str, file: str, options: Sequence[str]) -> dict[str, bytes] | None:
    """Each header that a source may include, directly or through others: its content by its path.

    Parameters
    ----------
    source : str
        CUDA C++.
    file : str
        Its path: headers in quotes are looked for beside it.
    options : sequence of str
        NVRTC's, of which those count that name folders and files.

    Returns
    -------
    dict of str to bytes, or None
        None: an include is a macro, or larger than any header (a device, say), so that it cannot be known.
    """
    try:
        return _included(source, file, options)
    except _Unknowable:
        return None


def _included(source: str, file: str, options: Sequence[str]) -> dict[str, bytes] | None:
    folders = [*_values(options, _FOLDER_OPTIONS)]
    found: dict[str, bytes] = {}
    waiting = [(source.encode("utf-8", "surrogateescape"), os.path.dirname(file))]
    waiting += _read(
        [os.path.join(folder, name) for name in _values(options, _FILE_OPTIONS) for folder in ("", *folders)], found
    )
    while waiting:
        text, own = waiting.pop()
        for quoted, angled, *macro in _asked_for(text):
            if any(macro):
                return None
            name = os.fsdecode(quoted or angled)
            waiting += _read([os.path.join(place, name) for place in ([own] if quoted else []) + folders], found)
    return found


def _asked_for(text: bytes) -> Iterator[tuple[bytes, ...]]:
    """Of each include, what stands in quotes, in angle brackets, or as a macro."""
    text = text.replace(b"\\\n", b"").replace(b"\\\r\n", b"")  # lines that go on, within names too: [lex.phases]
    if b"%:" in text:
        text = text.replace(b"%:", b"#")  # [lex.digraph]
    if sum(1 for _ in islice(_COMMENTED.finditer(text), _MOST_COMMENTED + 1)) > _MOST_COMMENTED:
        raise _Unknowable
    for found in _DIRECTIVE.finditer(text):
        if _begins(text, found.start()):
            yield found.groups(b"")
    yield from _QUESTION.findall(text)


def _begins(text: bytes, at: int) -> bool:
    """Whether a directive may begin here: only blanks stand before it on its line, or on both sides of a comment."""
    while at and text[at - 1] in _BLANKS:
        at -= 1
    return at == 0 or text[at - 1 : at] == b"\n" or text[at - 2 : at] == b"*/"


def _read(candidates: list[str], found: dict[str, bytes]) -> Iterator[tuple[bytes, str]]:
    """All of the candidates that are there and were not read before, each with its folder.

    All, and not the first alone: ``#include_next`` takes the second.
    """
    for path in candidates:
        if path in found:
            continue
        try:
            found[path] = first_bytes(path, KERNEL_BYTES + 1)
        except (OSError, ValueError):  # it is not there, or its name has a null character
            continue
        if len(found[path]) > KERNEL_BYTES:
            raise _Unknowable
        yield found[path], os.path.dirname(path)


def _values(options: Sequence[str], names: tuple[str, ...]) -> Iterator[str]:
    """What options of these names are given: as ``-Ia``, ``-I a``, ``-I=a`` or ``-I`` and ``a``."""
    for index, option in enumerate(options):
        for name in names:
            if option == name:
                yield from options[index + 1 : index + 2]
            elif option.startswith(name + "="):
                yield option[len(name) + 1 :]
            elif option.startswith(name) and name == "-I":
                yield option[len(name) :].lstrip()
