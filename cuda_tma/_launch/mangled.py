"""The kinds of a kernel's parameters, read off its mangled C++ name.

The driver knows the size of a parameter and not its type, so that a Python int for a ``float`` parameter would pass.
A lowered C++ name carries the types; an ``extern "C"`` name does not.

Source: Itanium C++ ABI, section 5.1, "External Names". Only kinds are kept; what is not read is not guessed.
"""

from __future__ import annotations

from typing import Any

__all__ = ["parameter_kinds"]

Kind = str | None
Pack = tuple[Kind, ...]  # what a template's parameter pack stands for

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


_TYPE_OPERATORS = {"cv", "st", "at", "sr", "ti"}  # in an expression, a type follows: casts, sizeof, T::


def _several(kind: Kind | Pack) -> Pack:
    return kind if isinstance(kind, tuple) else (kind,)


class _Reader:
    """Reads a mangled name from left to right, with the table of substitutions that it builds on the way (5.1.8)."""

    def __init__(self, text: str):
        self.text = text
        self.at = 2
        self.substitutions: list[Kind | Pack] = []
        self.template_arguments: list[Kind | Pack] = []
        self.member: int | None = None  # of the pack that is being expanded, and how many it has
        self.members = 0

    def parameters(self) -> tuple[Kind, ...]:
        if self.text[self.at] == "L":  # internal linkage
            self.at += 1
        if self.function_name():
            self.type()  # a template's name has its return type
        if self.text[self.at :] == "v":
            return ()
        kinds: list[Kind] = []
        while self.at < len(self.text):
            kinds += _several(self.type())
        return tuple(kinds)

    def follows(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    # ---- names ----

    def function_name(self) -> bool:
        """``4axpy``, ``N2ns4axpyE`` or either with template arguments; True if it ends with some."""
        if not self.follows("N"):
            self.source_name()
            return self.function_template()
        self.at += 1
        is_template = False
        while not self.follows("E"):
            is_template = self.function_template() if self.follows("I") else self.prefix()
        self.at += 1
        return is_template

    def prefix(self) -> bool:
        """One part of a nested function name; the last is a substitution only where template arguments follow."""
        is_substitution = self.follows("S")
        self.substitution() if is_substitution else self.source_name()
        if not is_substitution and self.text[self.at] not in "IE":
            self.substitutions.append(None)
        return False

    def function_template(self) -> bool:
        if not self.follows("I"):
            return False
        self.substitutions.append(None)  # the template's name
        self.template_arguments = self.arguments()
        return True

    def source_name(self) -> str:
        """``4axpy``: a length and as many characters."""
        length = int(self.digits())
        name = self.text[self.at : self.at + length]
        if len(name) < length:
            raise ValueError(self.text)
        self.at += length
        return name

    def digits(self) -> str:
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        return self.text[start : self.at]

    # ---- types ----

    def type(self) -> Kind | Pack:
        code = self.text[self.at]
        if code in _BUILTINS:
            self.at += 1
            return _BUILTINS[code]
        if code.isdigit():
            return self.class_type()
        read = {"S": self.substituted_type, "N": self.nested_type, "D": self.extended_type}
        return read.get(code, self.compound)()

    def compound(self) -> Kind | Pack:
        """What wraps another type; each is a substitution of its own."""
        code = self.text[self.at]
        self.at += 1
        kind: Kind | Pack = None
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
            self.digits()
            self.expression("_")
            self.type()
        elif code == "F":
            self.types()
        elif code == "M":  # a member of a class, and its type
            self.type()
            self.type()
        else:
            raise ValueError(code)
        self.substitutions.append(kind)
        return self.one(kind)

    def types(self) -> None:
        """A function's, up to an ``E``."""
        while not self.follows("E"):
            self.type()
        self.at += 1

    def class_type(self) -> Kind | Pack:
        kind = "float" if self.source_name() in _FLOAT_CLASSES else None
        self.substitutions.append(kind)
        return self.with_arguments(kind)

    def nested_type(self) -> Kind:
        self.at += 1
        while not self.follows("E"):
            if self.follows("St"):
                self.at += 2
            elif self.follows("S"):
                self.substitution()
            elif self.follows("I"):
                self.arguments()
                self.substitutions.append(None)
            elif self.follows("T"):
                self.type()
            else:
                self.source_name()
                self.substitutions.append(None)
        self.at += 1
        return None

    def substituted_type(self) -> Kind | Pack:
        if self.follows("St"):  # std::
            self.at += 2
            return self.class_type()
        return self.with_arguments(self.one(self.substitution()))

    def with_arguments(self, kind: Kind | Pack) -> Kind | Pack:
        if not self.follows("I"):
            return kind
        self.arguments()
        self.substitutions.append(None)
        return None

    def extended_type(self) -> Kind | Pack:
        """``Dn`` and the like; ``DF16_`` is _Float16, ``DF16b`` std::bfloat16_t; the others wrap types."""
        code = self.text[self.at + 1]
        self.at += 2
        if code in "nsiu":
            return None
        if code == "F":
            self.digits()
            self.at += 1
            return "float"
        if code == "o":  # a function that throws nothing
            return self.type()
        kind: Kind | Pack = None
        if code == "v":  # a vector of so many
            self.digits()
            self.expression("_")
            self.type()
        elif code == "p":
            kind = self.expansion()
        elif code in "tT":  # decltype
            self.expression("E")
        else:
            raise ValueError(self.text)
        self.substitutions.append(kind)
        return kind

    # ---- templates ----

    def arguments(self) -> list[Kind | Pack]:
        """What stands between the letter at which the reader is and an ``E``: types, literals as ``Li4E``,
        expressions as ``XmlLi2ET_E``, and packs as ``JifE``."""
        self.at += 1
        kinds: list[Kind | Pack] = []
        while not self.follows("E"):
            if self.follows("L"):
                self.literal()
                kinds.append(None)
            elif self.follows("X"):
                self.at += 1
                self.expression("E")
                kinds.append(None)
            elif self.follows("J"):
                kinds.append(tuple(one for kind in self.arguments() for one in _several(kind)))
            else:
                kinds.append(self.type())
        self.at += 1
        return kinds

    def literal(self) -> None:
        """``Li4E``; ``L_Z3addffE`` is a function."""
        self.at += 1
        if self.follows("_Z"):
            self.at += 2
            self.function_name()
            self.types()
        else:
            self.type()
            self.at = self.text.index("E", self.at) + 1

    def expression(self, end: str) -> None:
        """Skips what the compiler left to be worked out, ``mlLi2ET_`` for ``2 * N``, and the letter behind it (5.1.6).

        Its parts are not substitutions, but for the types that it names.
        """
        while not self.follows(end):
            code = self.text[self.at : self.at + 2]
            if code[0] == "L":
                self.literal()
            elif code[0] == "T":
                self.at += 1
                self.one(self.template_arguments[self.number()])
            elif code[0] == "I":
                self.arguments()
            elif code[0].isdigit():
                self.source_name()
            elif code in ("cl", "il"):  # a call, a list in braces: up to an E of its own
                self.at += 2
                self.expression("E")
            elif code.islower():
                self.at += 2
                if code in _TYPE_OPERATORS:
                    self.type()
            else:
                raise ValueError(self.text)
        self.at += 1

    def expansion(self) -> Pack:
        """``DpPT_``: a type for each member of the pack, of which each is read from what is written once."""
        if self.member is not None:
            raise ValueError("a pack within the pattern of another")
        start, known = self.at, len(self.substitutions)
        kinds: list[Any] = []
        self.member, self.members = 0, 0
        while not kinds or self.member < self.members:
            self.at = start
            del self.substitutions[known:]
            kinds.append(self.type())
            self.member += 1
        self.member = None
        return tuple(kinds[: self.members])

    def one(self, kind: Kind | Pack) -> Kind | Pack:
        """A kind, or a pack whole; while it is expanded, the kind of the present member."""
        if self.member is None or not isinstance(kind, tuple):
            return kind
        self.members = len(kind)
        return kind[self.member] if self.member < len(kind) else None

    # ---- substitutions ----

    def substitution(self) -> Kind | Pack:
        """``S_`` is the first, ``S0_`` the second."""
        self.at += 1
        return self.substitutions[self.number()]

    def number(self) -> int:
        """``_`` is 0, ``0_`` is 1, ``Z_`` is 36."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return int(digits, 36) + 1 if digits else 0
