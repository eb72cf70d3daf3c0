"""The C++ names of kernels as in the source, from the demangler of the C++ runtime.

A name may come from an untrusted file. With substitutions, a short name can expand to a text of any length. The module
therefore calls the demangler only if a bound on the length of that text is small.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache, partial
from math import prod

from .._budget import DEMANGLED_CHARACTERS, MANGLED_CHARACTERS

__all__ = ["demangled", "plain_name"]

_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")  # A reference stands for an earlier part of the name or a template argument.
_PACK = re.compile(r"Dp|sp")  # A parameter pack repeats a pattern for each of its arguments.
_LENGTH = re.compile(r"[1-9]\d{0,3}")
# The demangler of libstdc++ 12 does not end for some names with an expression (X ... E), so a separate process with a
# time limit demangles such names.
_EXPRESSION, _SECONDS = "X", 2.0
_CHILD = """import ctypes, sys
function = ctypes.CDLL(sys.argv[1]).__cxa_demangle
function.restype = ctypes.c_char_p
found = function(sys.argv[2].encode(), None, None, ctypes.byref(ctypes.c_int()))
sys.stdout.buffer.write(found or b"")
"""
_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")


@lru_cache(maxsize=4096)
def demangled(name: str) -> str | None:
    """Return a mangled name as C++ writes it.

    Return None without a demangler, for a name that is not mangled, and for a name that may be too long.

    Examples
    --------
    >>> demangled("_Z4axpyfPf")
    'axpy(float, float*)'
    """
    demangle = _demangler()
    if demangle is None or not name.startswith("_Z") or not name.isascii() or "\0" in name:
        return None
    return demangle(name) if _longest(name) <= DEMANGLED_CHARACTERS else None


def plain_name(name: str) -> str:
    """Return a lowered name as in the source, without template arguments. Return other names unchanged.

    Examples
    --------
    >>> plain_name("_ZN2ns4axpyIfEEvPT_"), plain_name("axpy")
    ('ns::axpy<...>', 'axpy')
    """
    own, is_template = _own_name(name)
    found = demangled(own) if own else None
    if found is None:
        return name
    return f"{found}<...>" if is_template else found


def _own_name(name: str) -> tuple[str, bool]:
    """Cut a mangled name before its template arguments or parameters.

    Also return whether the name is that of a template.
    """
    if not name.startswith("_Z") or len(name) > DEMANGLED_CHARACTERS:
        return "", False
    is_nested = name.startswith("_ZN")
    at = 3 if is_nested else 2
    while at < len(name) and name[at] not in "IE":
        length = _LENGTH.match(name, at)
        at = length.end() + int(length[0]) if length else at + 1
        if length and not is_nested:
            break
    own = name[:at] + "E" * is_nested
    return own, name[at : at + 1] == "I"


def _longest(name: str) -> float:
    """Return an upper bound on the number of characters of a demangled name.

    A reference expands to an earlier part of the name, and a pack repeats a pattern for each of its arguments. The
    bound is the number of characters of the name, times the number of repetitions of each earlier part.
    """
    if len(name) > MANGLED_CHARACTERS:
        return float("inf")
    references = Counter(_REFERENCE.findall(name)).values()
    return len(name) ** (1 + len(_PACK.findall(name))) * prod(1 + count for count in references)


@cache
def _demangler() -> Callable[[str], str | None] | None:
    """Return the function ``abi::__cxa_demangle`` of the C++ runtime, or None if it does not exist."""
    for library in _LIBRARIES:
        try:
            function = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        function.restype = ctypes.c_void_p
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = [ctypes.c_void_p], None
        return partial(_called_apart, library, partial(_called, function, free))
    return None


def _called_apart(library: str, called: Callable[[str], str | None], name: str) -> str | None:
    """Call the demangler. Use a separate process if the demangler may not return for this name."""
    if _EXPRESSION not in name:
        return called(name)
    command = [sys.executable, "-I", "-S", "-c", _CHILD, library, name]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.decode(errors="replace") or None


def _called(function: Callable[..., int | None], free: Callable[..., None], name: str) -> str | None:
    status = ctypes.c_int()
    address = function(name.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        free(address)
