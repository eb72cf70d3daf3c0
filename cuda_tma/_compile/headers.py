"""The search for the headers of a source, so that the cache returns no kernel with an outdated header.

NVRTC cannot list the files that it read. Therefore this module scans the text, and each header that it finds. It does
not evaluate conditions, and includes in comments count too. So the result may have more files than the compiler reads.
It has fewer files in two cases: ``__has_include`` of a macro, and an include of a macro, for which no kernel is kept.
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
    """The included files are unknown: an include is not a file or too large, or directives have too many comments."""


# The text between the parts of a directive: spaces, continued line ends, comments.
_BLANK = rb"(?:[ \t\f\v\r]|\\\r?\n|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*"
_PLACE = rb'(?:"([^"\n]+)"|<([^>\n]+)>'
# #include "a.h", <a.h> or A_MACRO; #embed is C++26. Patterns that begin with one letter are searched fast.
_DIRECTIVE = re.compile(rb"#" + _BLANK + rb"(?:include|include_next|embed)\b" + _BLANK + _PLACE + rb"|(\w+))")
_BLANKS = b" \t\f\v\r"
# A comment within a directive; for each, the search may go to the end of the text.
_COMMENTED = re.compile(rb"(?:#|\binclude|\binclude_next|\bembed|\b__has_(?:include|embed)[ \t]*\(?)[ \t]*/\*")
_MOST_COMMENTED = 64  # of a text; a header has fewer
_QUESTION = re.compile(rb"__has_(?:include|embed)" + _BLANK + rb"\(" + _BLANK + _PLACE + rb")()")
_FOLDER_OPTIONS = ("--include-path", "-I")
_FILE_OPTIONS = ("--pre-include", "-include")


def headers_of(source: str, file: str, options: Sequence[str]) -> dict[str, bytes] | None:
    """Return each header that a source may include, directly or through others: its content by its path.

    Parameters
    ----------
    source : str
        CUDA C++.
    file : str
        Its path: headers in quotes are searched in its folder.
    options : sequence of str
        NVRTC's options, of which those with folders and files are used.

    Returns
    -------
    dict of str to bytes, or None
        None if the headers are unknown, because an include is a macro, or larger than any header (for example a
        device).
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
    """Yield the name in each include: in quotes, in angle brackets, or as a macro."""
    text = text.replace(b"\\\n", b"").replace(b"\\\r\n", b"")  # continued lines, also within names: [lex.phases]
    if b"%:" in text:
        text = text.replace(b"%:", b"#")  # [lex.digraph]
    if sum(1 for _ in islice(_COMMENTED.finditer(text), _MOST_COMMENTED + 1)) > _MOST_COMMENTED:
        raise _Unknowable
    for found in _DIRECTIVE.finditer(text):
        if _begins(text, found.start()):
            yield found.groups(b"")
    yield from _QUESTION.findall(text)


def _begins(text: bytes, at: int) -> bool:
    """Return whether a directive may begin here, because only spaces and comments precede it on its line."""
    while at and text[at - 1] in _BLANKS:
        at -= 1
    return at == 0 or text[at - 1 : at] == b"\n" or text[at - 2 : at] == b"*/"


def _read(candidates: list[str], found: dict[str, bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield all candidates that exist and were not read before, each with its folder.

    Candidates after the first are necessary because ``#include_next`` reads the second.
    """
    for path in candidates:
        if path in found:
            continue
        try:
            found[path] = first_bytes(path, KERNEL_BYTES + 1)
        except (OSError, ValueError):  # it does not exist, or its name has a null character
            continue
        if len(found[path]) > KERNEL_BYTES:
            raise _Unknowable
        yield found[path], os.path.dirname(path)


def _values(options: Sequence[str], names: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of options with these names: ``-Ia``, ``-I a``, ``-I=a``, or ``-I`` before ``a``."""
    for index, option in enumerate(options):
        for name in names:
            if option == name:
                yield from options[index + 1 : index + 2]
            elif option.startswith(name + "="):
                yield option[len(name) + 1 :]
            elif option.startswith(name) and name == "-I":
                yield option[len(name) :].lstrip()
