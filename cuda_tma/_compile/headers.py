"""The search for the headers of a source, so that the cache does not return a kernel with an outdated header.

NVRTC cannot list the files that it read. Therefore this module scans the text of a source, and of each header that it
finds. The scan does not evaluate conditions, and reads includes in comments too. The result may therefore contain more
files than the compiler reads. The result lacks files in two cases: ``__has_include`` of a macro, and ``#include`` of a
macro. For an ``#include`` of a macro, the package does not keep the kernel.
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
    """The error for a source whose included files are unknown.

    The cause is an include that does not name a file, a file that is too large, or directives with too many comments.
    """


# The pattern matches spaces, continued line ends and comments between the parts of a preprocessor directive.
_BLANK = rb"(?:[ \t\f\v\r]|\\\r?\n|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*"
_PLACE = rb'(?:"([^"\n]+)"|<([^>\n]+)>'
# The pattern matches #include "a.h", #include <a.h>, #include A_MACRO, and the directive #embed of C++26. Python
# searches fast for a pattern that begins with one fixed letter.
_DIRECTIVE = re.compile(rb"#" + _BLANK + rb"(?:include|include_next|embed)\b" + _BLANK + _PLACE + rb"|(\w+))")
_BLANKS = b" \t\f\v\r"
# The pattern matches a comment within a directive. The search for the end of each comment may read the rest of the
# text.
_COMMENTED = re.compile(rb"(?:#|\binclude|\binclude_next|\bembed|\b__has_(?:include|embed)[ \t]*\(?)[ \t]*/\*")
# The limit of 64 comments within directives keeps the total time of the search small. Headers have fewer.
_MOST_COMMENTED = 64
_QUESTION = re.compile(rb"__has_(?:include|embed)" + _BLANK + rb"\(" + _BLANK + _PLACE + rb")()")
_FOLDER_OPTIONS = ("--include-path", "-I")
_FILE_OPTIONS = ("--pre-include", "-include")


def headers_of(source: str, file: str, options: Sequence[str]) -> dict[str, bytes] | None:
    """Return each header that a source may include, directly or through other headers.

    The result maps the path of a header to its content.

    Parameters
    ----------
    source : str
        The source text in CUDA C++.
    file : str
        The path of the source. Headers in quotes are searched in the folder of this path.
    options : sequence of str
        The options of NVRTC. The search uses the options that name folders or files.

    Returns
    -------
    dict of str to bytes, or None
        The headers, or None if they are unknown. The headers are unknown if the file of an include is a macro, or is
        larger than any header (for example a device).
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
    """Yield the name in each include, which is in quotes, in angle brackets, or a macro."""
    # The compiler joins continued lines before it reads names (C++ standard, [lex.phases]).
    text = text.replace(b"\\\n", b"").replace(b"\\\r\n", b"")
    if b"%:" in text:
        text = text.replace(b"%:", b"#")  # The token %: is an alternative spelling of # (C++ standard, [lex.digraph]).
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
    """Yield all candidate files that exist and were not read before, each with its folder.

    The candidates after the first candidate are necessary, because ``#include_next`` reads the second candidate.
    """
    for path in candidates:
        if path in found:
            continue
        try:
            found[path] = first_bytes(path, KERNEL_BYTES + 1)
        except (OSError, ValueError):  # The file may not exist, or its name may contain a null character.
            continue
        if len(found[path]) > KERNEL_BYTES:
            raise _Unknowable
        yield found[path], os.path.dirname(path)


def _values(options: Sequence[str], names: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of options with these names, in the forms ``-Ia``, ``-I a``, ``-I=a``, and ``-I``, ``a``."""
    for index, option in enumerate(options):
        for name in names:
            if option == name:
                yield from options[index + 1 : index + 2]
            elif option.startswith(name + "="):
                yield option[len(name) + 1 :]
            elif option.startswith(name) and name == "-I":
                yield option[len(name) :].lstrip()
