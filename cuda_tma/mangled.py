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
        after_name, template_arguments = _skip_encoding_name(name, 2)
        start = _skip_type(name, after_name) if template_arguments else after_name  # a template names its return type
        codes = []
        while start < len(name):
            end = _skip_type(name, start)
            codes.append(name[start:end])
            start = end
    except (IndexError, ValueError):
        return None
    return () if codes == ["v"] else tuple(_kind(code, template_arguments) for code in codes)


def _kind(code: str, template_arguments: tuple[str, ...]) -> str | None:
    code = code.lstrip("KV")
    if code[0] == "T":  # T_ is the first template argument, T0_ the second
        number = code[1:-1]
        index = int(number, 36) + 1 if number else 0
        return _kind(template_arguments[index], ()) if index < len(template_arguments) else None
    return "pointer" if code[0] == "P" else _BUILTINS.get(code)


def _skip_encoding_name(text: str, at: int) -> tuple[int, tuple[str, ...]]:
    """Past ``4axpy``, ``N2ns4axpyE`` or either with template arguments; and those of the last part."""
    if text[at] != "N":
        at = _skip_source_name(text, at)
        return _template_arguments(text, at) if text[at : at + 1] == "I" else (at, ())
    at += 1
    arguments: tuple[str, ...] = ()
    while text[at] != "E":
        at, arguments = _template_arguments(text, at) if text[at] == "I" else (_skip_name_part(text, at), ())
    return at + 1, arguments


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


def _template_arguments(text: str, at: int) -> tuple[int, tuple[str, ...]]:
    """Past ``I...E`` (a pack is ``J...E``), and the codes in between: types, and literals as ``Li4E``."""
    at += 1
    codes = []
    while text[at] != "E":
        start = at
        if text[at] == "L":
            at = text.index("E", _skip_type(text, at + 1)) + 1
        elif text[at] == "J":
            at, _ = _template_arguments(text, at)
        else:
            at = _skip_type(text, at)
        codes.append(text[start:at])
    return at + 1, tuple(codes)


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
    return _template_arguments(text, end)[0] if text[end : end + 1] == "I" else end
