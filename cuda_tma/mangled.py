"""The kinds of a kernel's parameters, read off its mangled C++ name.

The driver knows the size of a parameter and not its type, so that a Python int for a ``float`` parameter would pass.
A lowered C++ name carries the types; an ``extern "C"`` name does not.

Source: Itanium C++ ABI, section 5.1, "External Names". Only kinds are kept; what is not read is not guessed.
"""

from __future__ import annotations

__all__ = ["parameter_kinds"]

Kind = str | None

# 5.1.5.2, builtin types, by what may be passed for them; n, o, e and g (128 bits) are no kernel's scalars.
_BUILTINS: dict[str, Kind] = {
    **dict.fromkeys("ahstijlmxycw", "integer"),
    **dict.fromkeys("fd", "float"),
    "b": "bool",
    **dict.fromkeys("vnoeg", None),
}
_FLOAT_CLASSES = {"__half", "__nv_bfloat16"}  # CUDA's 16-bit floats are classes


def parameter_kinds(name: str) -> tuple[Kind, ...] | None:
    """What each parameter of a kernel takes.

    Parameters
    ----------
    name : str
        The kernel's lowered name.

    Returns
    -------
    tuple of {"integer", "float", "bool", "pointer", None}, or None
        None for a parameter stands for any other type. None for all: the name does not say.

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
        return _Reader(name.split(".")[0]).parameters()  # a compiler may add a suffix after a dot
    except (IndexError, ValueError, RecursionError):
        return None


class _Reader:
    """Reads a mangled name from left to right, with the table of substitutions that it builds on the way (5.1.8)."""

    def __init__(self, text: str):
        self.text = text
        self.at = 2
        self.substitutions: list[Kind] = []
        self.template_arguments: list[Kind] = []

    def parameters(self) -> tuple[Kind, ...]:
        if self.text[self.at] == "L":  # internal linkage
            self.at += 1
        if self.function_name():
            self.type()  # a template's name has its return type
        if self.text[self.at :] == "v":
            return ()
        kinds = []
        while self.at < len(self.text):
            kinds.append(self.type())
        return tuple(kinds)

    def function_name(self) -> bool:
        """``4axpy``, ``N2ns4axpyE`` or either with template arguments; True if it ends with some."""
        if self.text[self.at] != "N":
            self.source_name()
            return self.function_template()
        self.at += 1
        is_template = False
        while self.text[self.at] != "E":
            is_template = self.function_template() if self.text[self.at] == "I" else self.prefix()
        self.at += 1
        return is_template

    def prefix(self) -> bool:
        """One part of a nested function name; the last is a substitution only where template arguments follow."""
        is_substitution = self.text[self.at] == "S"
        self.substitution() if is_substitution else self.source_name()
        if not is_substitution and self.text[self.at] not in "IE":
            self.substitutions.append(None)
        return False

    def function_template(self) -> bool:
        if self.text[self.at : self.at + 1] != "I":
            return False
        self.substitutions.append(None)  # the template's name
        self.template_arguments = self.arguments()
        return True

    def type(self) -> Kind:
        code = self.text[self.at]
        if code in _BUILTINS:
            self.at += 1
            return _BUILTINS[code]
        if code.isdigit():
            return self.class_type()
        if code == "D":
            return self.extended_builtin()
        return {"S": self.substituted_type, "N": self.nested_type}.get(code, self.compound)()

    def compound(self) -> Kind:
        """What wraps another type; each is a substitution of its own."""
        code = self.text[self.at]
        self.at += 1
        if code in "rVK":
            while self.text[self.at] in "rVK":  # qualifiers count together
                self.at += 1
            kind = self.type()
        elif code in "PROC":
            self.type()
            kind = "pointer" if code == "P" else None
        elif code == "T":
            kind = self.template_arguments[self.number()]
        elif code == "A":
            if self.text[self.at] == "T":  # an extent that is a template argument: T0__
                self.at = self.text.index("_", self.at) + 1
            self.at = self.text.index("_", self.at) + 1
            self.type()
            kind = None
        elif code == "F":
            while self.text[self.at] != "E":
                self.type()
            self.at += 1
            kind = None
        else:
            raise ValueError(code)
        self.substitutions.append(kind)
        return kind

    def class_type(self) -> Kind:
        kind = "float" if self.source_name() in _FLOAT_CLASSES else None
        self.substitutions.append(kind)
        return self.with_arguments(kind)

    def nested_type(self) -> Kind:
        self.at += 1
        while self.text[self.at] != "E":
            if self.text[self.at] == "S":
                self.substitution()
            elif self.text[self.at] == "I":
                self.arguments()
                self.substitutions.append(None)
            else:
                self.source_name()
                self.substitutions.append(None)
        self.at += 1
        return None

    def substituted_type(self) -> Kind:
        if self.text[self.at + 1] == "t":  # std::
            self.at += 2
            return self.class_type()
        return self.with_arguments(self.substitution())

    def with_arguments(self, kind: Kind) -> Kind:
        if self.text[self.at : self.at + 1] != "I":
            return kind
        self.arguments()
        self.substitutions.append(None)
        return None

    def arguments(self) -> list[Kind]:
        """Template arguments, ``I...E``: types, and literals as ``Li4E``."""
        self.at += 1
        kinds = []
        while self.text[self.at] != "E":
            if self.text[self.at] == "L":
                self.at += 1
                kinds.append(self.type())
                self.at = self.text.index("E", self.at) + 1
            else:
                kinds.append(self.type())
        self.at += 1
        return kinds

    def substitution(self) -> Kind:
        """``S_`` is the first, ``S0_`` the second."""
        self.at += 1
        return self.substitutions[self.number()]

    def number(self) -> int:
        """``_`` is 0, ``0_`` is 1, ``Z_`` is 36."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return int(digits, 36) + 1 if digits else 0

    def extended_builtin(self) -> Kind:
        """``Dn`` and the like; ``DF16_`` is _Float16."""
        self.at += 2
        if self.text[self.at - 1] == "F":
            self.at = self.text.index("_", self.at) + 1
            return "float"
        if self.text[self.at - 1] not in "nsiu":
            raise ValueError(self.text)
        return None

    def source_name(self) -> str:
        """``4axpy``: a length and as many characters."""
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        length = int(self.text[start : self.at])
        name = self.text[self.at : self.at + length]
        if len(name) < length:
            raise ValueError(self.text)
        self.at += length
        return name
