"""The kinds of a kernel's parameters, read off its mangled C++ name.

The driver knows the size of a parameter and not its type, so that a Python int for a ``float`` parameter would pass.
A lowered C++ name carries the types (Itanium C++ ABI, section 5.1, "External Names"); an ``extern "C"`` name does not.
"""

from __future__ import annotations

__all__ = ["parameter_kinds"]

# Builtin type codes of the Itanium C++ ABI, 5.1.5.2, by what may be passed for them.
_BUILTINS = {
    **dict.fromkeys("ahstijlmxycw", "integer"),
    **dict.fromkeys("fd", "float"),
    "b": "bool",
}


def parameter_kinds(name: str) -> tuple[str | None, ...] | None:
    """What each parameter of a kernel takes.

    Parameters
    ----------
    name : str
        The kernel's lowered name.

    Returns
    -------
    tuple of {"integer", "float", "bool", "pointer", None}, or None
        None for a parameter stands for any other type (a class, a half). None for all: the name does not say.

    Examples
    --------
    >>> parameter_kinds("_Z4axpyfPKfPfi")
    ('float', 'pointer', 'pointer', 'integer')
    >>> parameter_kinds("axpy") is None
    True
    """
    if not name.startswith("_Z"):
        return None
    try:
        after_name, is_template = _skip_encoding_name(name, 2)
        start = _skip_type(name, after_name) if is_template else after_name  # a template's name has its return type
        kinds = []
        while start < len(name):
            end = _skip_type(name, start)
            kinds.append(_kind(name[start:end]))
            start = end
    except (IndexError, ValueError):
        return None
    return () if name[after_name:] == "v" else tuple(kinds)


def _kind(code: str) -> str | None:
    code = code.lstrip("KV")
    return "pointer" if code[0] == "P" else _BUILTINS.get(code)


def _skip_encoding_name(text: str, at: int) -> tuple[int, bool]:
    """Past ``4axpy``, ``N2ns4axpyE`` or either with template arguments; whether the last part had some."""
    if text[at] != "N":
        at = _skip_source_name(text, at)
        is_template = text[at : at + 1] == "I"
        return (_skip_until_e(text, at + 1) if is_template else at), is_template
    at += 1
    is_template = False
    while text[at] != "E":
        is_template = text[at] == "I"
        at = _skip_until_e(text, at + 1) if is_template else _skip_name_part(text, at)
    return at + 1, is_template


def _skip_source_name(text: str, at: int) -> int:
    """Past ``4axpy``: a length and as many characters."""
    digits = at
    while text[digits].isdigit():
        digits += 1
    end = digits + int(text[at:digits])
    if end > len(text):
        raise ValueError(text)
    return end


def _skip_name_part(text: str, at: int) -> int:
    return _skip_substitution(text, at) if text[at] == "S" else _skip_source_name(text, at)


def _skip_substitution(text: str, at: int) -> int:
    """Past ``S_``, ``S0_`` or ``St`` (followed by a name)."""
    if text[at + 1] == "t":
        return _skip_source_name(text, at + 2)
    return text.index("_", at) + 1


def _skip_until_e(text: str, at: int) -> int:
    """Past template arguments (types and literals) up to and with their E."""
    while text[at] != "E":
        if text[at] == "L":
            at = text.index("E", _skip_type(text, at + 1)) + 1
        elif text[at] in "IJ":
            at = _skip_until_e(text, at + 1)
        else:
            at = _skip_type(text, at)
    return at + 1


def _skip_type(text: str, at: int) -> int:
    """Past one type. Raises ValueError or IndexError for what this does not read: then nothing is checked."""
    code = text[at]
    if code in "PKVRO":
        return _skip_type(text, at + 1)
    if code in _BUILTINS or code == "v":
        return at + 1
    if code == "D":  # two-letter builtins, such as DF16_ and Dn
        return text.index("_", at) + 1 if text[at + 1] == "F" else at + 2
    if code == "T":  # template parameter: T_, T0_
        return text.index("_", at) + 1
    if code == "A":  # array: A4_f
        return _skip_type(text, text.index("_", at) + 1)
    if code == "N":
        return _skip_encoding_name(text, at)[0]
    end = _skip_name_part(text, at)
    return _skip_until_e(text, end + 1) if text[end : end + 1] == "I" else end
