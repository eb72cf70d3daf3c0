"""The PTX of several inputs as one text, which replaces the machine code from a linker."""

from __future__ import annotations

import re
import struct

from .images import ptx_of

__all__ = ["joined", "linked_ptx"]

_ARCHIVE = b"!<arch>\n"
_SIZE = struct.Struct("<Q")
_HEADER = re.compile(r"^[ \t]*\.(?:version|target|address_size)\b.*\n?", re.MULTILINE)
_LINES = re.compile(r"^[ \t]*\.(?:file|loc)\b.*\n?", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*\.section\b[^{]*\{[^}]*\}\n?", re.MULTILINE)
_DECLARED = re.compile(r"^[ \t]*\.extern[ \t]+\.func\b([^;{]*);\n?", re.MULTILINE)
_DEFINED = re.compile(r"\.func\b[ \t\n]*(?:\([^;{}]*?\))?[ \t\n]*([\w$%]+)[ \t\n]*\(([^;{}]*)\)[^;{}]*\{")
_NAME = re.compile(r"^[ \t\n]*(?:\([^)]*\))?[ \t\n]*([\w$%]+)")


def linked_ptx(data: bytes, compute_capability: tuple[int, int]) -> str:
    """Return one PTX text for the inputs of a link.

    Parameters
    ----------
    data : bytes
        The size of each input as 8 bytes, followed by PTX or by a fat binary that contains PTX.
    compute_capability : tuple of int

    Raises
    ------
    ValueError
        If there is no input, or if an input has no PTX.
    """
    texts = [ptx_of(image, compute_capability) for image in _inputs(data) if not image.startswith(_ARCHIVE)]
    if not texts:
        raise ValueError("the linker was given no input")
    return texts[0] if len(texts) == 1 else joined(texts)


def _inputs(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        found.append(data[at : at + size])
        at += size
    return found


def joined(texts: list[str]) -> str:
    """Join PTX texts. The numbers of files start at the same value in each text, so only the first text keeps its
    lines.

    If another text defines a function, the function's declaration stays, because a call may precede the definition. The
    declaration is then no longer external.
    """
    first, *others = texts
    bare = (_SECTION.sub("", _LINES.sub("", _HEADER.sub("", text))) for text in others)
    defined = {match[1] for text in texts for match in _DEFINED.finditer(text)}

    def kept(match: re.Match[str]) -> str:
        name = _NAME.match(match[1])
        return match[0].replace(".extern", "", 1) if name is not None and name[1] in defined else match[0]

    return "\n".join(_DECLARED.sub(kept, text) for text in (first, *bare))
