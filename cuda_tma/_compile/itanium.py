"""Reading mangled C++ names: what a name says of the types of a function's parameters and of a template's arguments.

Source: Itanium C++ ABI, section 5.1, "External Names"; and what NVRTC writes, which leaves out of an expanded pack of
constants the ``sp`` that the ABI has there (observed: NVRTC 13.5).
"""

from __future__ import annotations

from typing import Any

from .._budget import name_steps
from .constant_expression import worked_out
from .type_tree import Builtin, Function, Named, Node, Pointer, several

__all__ = ["read", "read_name"]

# 5.1.5.2, builtin types; n, o, e and g (128 bits) are no kernel's scalars.
_BUILTINS: dict[str, Node] = {
    **dict.fromkeys("ahstijlmxycw", Builtin("integer")),
    **dict.fromkeys("fd", Builtin("float")),
    "b": Builtin("bool"),
    **dict.fromkeys("vnoeg", None),
}
_TYPE_OPERATORS = {"cv", "st", "at", "ti"}  # in an expression, a type follows: casts, sizeof
_FILE_SCOPE = (
    "_INTERNAL_"  # NVRTC 12.0 and 12.4 begin so what C++ calls of internal linkage: no namespace of the source
)


def read(name: str) -> tuple[Named, tuple[Node, ...] | None]:
    """A mangled name: what it names, and a function's parameter types; None for a variable's.

    Raises
    ------
    ValueError, IndexError, RecursionError
        If it is no mangled name, or one with what is not read here.

    Examples
    --------
    >>> read("_Z4axpyPKfi")
    (Named(path=('axpy',), arguments=None), (Pointer(target=Builtin(kind='float')), Builtin(kind='integer')))
    """
    return _Reader(name).name()


def read_name(name: str) -> Named:
    """As :func:`read`, without the types of a function's parameters, which need not be readable."""
    return _Reader(name).named()


class _Reader:
    """Reads a mangled name from left to right, with the table of substitutions that it builds on the way (5.1.8)."""

    def __init__(self, name: str):
        if not name.startswith("_Z"):
            raise ValueError(name)
        self.text = name.split(".")[0]  # a compiler may add a suffix after a dot
        self.at = 2
        self.substitutions: list[Node] = []
        self.template_arguments: tuple[Node, ...] = ()
        self.member: int | None = None  # of the pack that is being expanded, and how many it has
        self.members = 0
        self.steps_left = name_steps(self.text)

    def spend(self, steps: int = 1) -> None:
        """Refuse a name that takes too long: a pack of packs doubles with every few characters."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise ValueError("the types of this name are too many")

    def members_of(self, node: Node) -> tuple[Node, ...]:
        """The members of a pack, or the node alone; each is a step."""
        found = several(node)
        self.spend(len(found))
        return found

    def named(self) -> Named:
        """What read_name() returns."""
        if self.text[self.at] == "L":  # internal linkage
            self.at += 1
        return self.function_name()

    def name(self) -> tuple[Named, tuple[Node, ...] | None]:
        """What read() returns."""
        named = self.named()
        if self.at == len(self.text):
            return named, None
        if named.arguments is not None:
            self.type()  # a template's name has its return type
        if self.text[self.at :] == "v":
            return named, ()
        parameters: list[Node] = []
        while self.at < len(self.text):
            parameters += self.members_of(self.type())
        return named, tuple(parameters)

    def follows(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    # ---- names ----

    def function_name(self) -> Named:
        """``4axpy``, ``N2ns4axpyE`` or either with template arguments; of a variable, too."""
        if not self.follows("N"):
            return self.function_template(Named((self.source_name(),)))
        self.at += 1
        named = Named(())
        while not self.follows("E"):
            named = self.function_template(named) if self.follows("I") else self.prefix(named)
        self.at += 1
        return named

    def prefix(self, outer: Named) -> Named:
        """One part of a nested function name; the last is a substitution only where template arguments follow."""
        if self.follows("S"):
            known = self.substitution()
            return known if isinstance(known, Named) else Named(("?",))
        name = self.source_name()
        named = outer if name.startswith(_FILE_SCOPE) else self.inside(outer, name)
        if self.text[self.at] not in "IE":
            self.substitutions.append(named)
        return named

    def inside(self, outer: Named, name: str) -> Named:
        """A name in a namespace or class."""
        self.spend(len(outer.path))
        return Named((*outer.path, name))

    def function_template(self, named: Named) -> Named:
        if not self.follows("I"):
            return named
        self.substitutions.append(named)  # the template's name
        self.template_arguments = self.arguments()
        return Named(named.path, self.template_arguments)

    def source_name(self) -> str:
        """``4axpy``: a length and as many characters."""
        self.spend()
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

    def type(self) -> Node:
        self.spend()
        code = self.text[self.at]
        if code in _BUILTINS:
            self.at += 1
            return _BUILTINS[code]
        if code.isdigit():
            return self.class_type(())
        read = {"S": self.substituted_type, "N": self.nested_type, "D": self.extended_type}
        return read.get(code, self.compound)()

    def compound(self) -> Node:
        """What wraps another type; each is a substitution of its own."""
        code = self.text[self.at]
        self.at += 1
        node: Node = None
        if code in "rVK":
            while self.text[self.at] in "rVK":  # qualifiers count together
                self.at += 1
            node = self.type()
        elif code == "P":
            node = Pointer(self.type())
        elif code in "ROC":
            self.type()
        elif code == "T":
            node = self.template_arguments[self.number()]
        elif code == "A":
            self.digits()
            self.expression("_")
            self.type()
        elif code == "F":
            node = self.function_type()
        elif code == "M":  # a member of a class, and its type
            self.type()
            self.type()
        else:
            raise ValueError(code)
        self.substitutions.append(node)
        return self.with_arguments(self.one(node)) if code == "T" else self.one(node)  # T_ may be a template: T_IiE

    def function_type(self) -> Function:
        """``FvifE``, of which the first is the return type; ``v`` alone is no parameter."""
        self.type()
        if self.follows("vE"):
            self.at += 2
            return Function(())
        parameters: list[Node] = []
        while not self.follows("E"):
            parameters += self.members_of(self.type())
        self.at += 1
        return Function(tuple(parameters))

    def class_type(self, outer: tuple[str, ...]) -> Node:
        named = Named((*outer, self.source_name()))
        self.substitutions.append(named)
        return self.with_arguments(named)

    def nested_type(self) -> Node:
        self.at += 1
        node: Node = Named(())
        while not self.follows("E"):
            if self.follows("St"):
                self.at += 2
                node = Named(("std",))
            elif self.follows("S"):
                node = self.substitution()
            elif self.follows("I"):
                node = self.with_arguments(node)
            elif self.follows("T"):
                self.type()
                node = None
            else:
                name = self.source_name()
                node = self.inside(node, name) if isinstance(node, Named) and node.arguments is None else None
                self.substitutions.append(node)
        self.at += 1
        return node

    def substituted_type(self) -> Node:
        if self.follows("St"):  # std::
            self.at += 2
            return self.class_type(("std",))
        return self.with_arguments(self.one(self.substitution()))

    def with_arguments(self, node: Node) -> Node:
        """A template with its arguments, if some follow."""
        if not self.follows("I"):
            return node
        arguments = self.arguments()
        node = Named(node.path, arguments) if isinstance(node, Named) else None
        self.substitutions.append(node)
        return node

    def extended_type(self) -> Node:
        """``Dn`` and the like; ``DF16_`` is _Float16, ``DF16b`` std::bfloat16_t; the others wrap types."""
        code = self.text[self.at + 1]
        self.at += 2
        if code in "nsiu":
            return None
        if code == "F":
            self.digits()
            self.at += 1
            return Builtin("float")
        if code == "o":  # a function that throws nothing
            return self.type()
        node: Node = None
        if code == "v":  # a vector of so many
            self.digits()
            self.expression("_")
            self.type()
        elif code == "p":
            node = self.expansion()
        elif code in "tT":  # decltype
            self.expression("E")
        else:
            raise ValueError(self.text)
        self.substitutions.append(node)
        return node

    # ---- templates ----

    def arguments(self) -> tuple[Node, ...]:
        """What stands between the letter at which the reader is and an ``E``: types, constants as ``Li4E``,
        expressions as ``XmlLi2ET_E``, and packs as ``JifE``."""
        self.at += 1
        nodes: list[Node] = []
        while not self.follows("E"):
            if self.follows("L"):
                nodes.append(self.constant())
            elif self.follows("X"):
                self.at += 1
                nodes.append(self.expression("E"))
            elif self.follows("J"):
                nodes.append(tuple(one for node in self.arguments() for one in self.members_of(node)))
            else:
                nodes.append(self.type())
        self.at += 1
        return tuple(nodes)

    def constant(self) -> Node:
        """``Li4E``, ``Lin4E`` for -4, ``LN1n1EE3E`` of an enumeration; ``L_Z3addffE`` is a function."""
        self.at += 1
        if self.follows("_Z"):
            self.at += 2
            self.function_name()
            while not self.follows("E"):
                self.type()
            self.at += 1
            return None
        self.type()
        end = self.text.index("E", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        negative = digits.startswith("n")
        number = digits[negative:]
        return (-int(number) if negative else int(number)) if number.isdecimal() else None  # a float's are hexadecimal

    def expression(self, end: str) -> Node:
        """What the compiler left to be worked out, ``mlLi2ET_`` for ``2 * N``, and the letter behind it (5.1.6).

        Its value, where that follows from constants alone. Its parts are not substitutions, but for the types that it
        names.
        """
        terms: list[Any] = []
        while not self.follows(end):
            self.spend()
            code = self.text[self.at : self.at + 2]
            if code[0] == "L":
                terms.append(self.constant())
            elif code[0] == "T":
                self.at += 1
                terms.append(self.one(self.template_arguments[self.number()]))
            elif code[0] == "I":
                terms.append(Named((), self.arguments()))
            elif code[0].isdigit():
                terms.append(Named((self.source_name(),)))
            elif code in ("cl", "il", "tl"):  # a call, a list in braces, that of a type: up to an E of its own
                self.at += 2
                if code == "tl":
                    self.type()
                terms += [code, self.expression("E")]
            elif code.islower():
                self.at += 2
                terms.append(code)
                if code == "sr":
                    self.scope()
                elif code in _TYPE_OPERATORS:
                    self.type()
            else:
                raise ValueError(self.text)
        self.at += 1
        return worked_out(terms)

    def scope(self) -> None:
        """What stands before the member behind ``sr``: ``T_``, ``NT_1AE``, or classes by name up to an ``E``, which
        are no substitutions; gcc leaves that ``E`` out."""
        start, known = self.at, list(self.substitutions)
        self.spend(len(known))
        try:
            if self.follows("N"):
                self.at += 1
                self.type()
            while not self.follows("E"):
                self.source_name()
                if self.follows("I"):
                    self.arguments()
            self.at += 1
            if self.text[self.at].isdigit():
                return
        except ValueError:
            pass
        self.at, self.substitutions = start, known
        self.type()

    def expansion(self) -> tuple[Node, ...]:
        """``DpPT_``: a type for each member of the pack, of which each is read from what is written once."""
        if self.member is not None:
            raise ValueError("a pack within the pattern of another")
        start, known = self.at, len(self.substitutions)
        nodes: list[Node] = []
        self.member, self.members = 0, 0
        while not nodes or self.member < self.members:
            self.at = start
            del self.substitutions[known:]
            nodes.append(self.type())
            self.member += 1
        self.member = None
        return tuple(nodes[: self.members])

    def one(self, node: Node) -> Node:
        """A node, or a pack whole; while it is expanded, its present member."""
        if self.member is None or not isinstance(node, tuple):
            return node
        self.members = len(node)
        return node[self.member] if self.member < len(node) else None

    # ---- substitutions ----

    def substitution(self) -> Node:
        """``S_`` is the first, ``S0_`` the second."""
        self.at += 1
        return self.substitutions[self.number()]

    def number(self) -> int:
        """``_`` is 0, ``0_`` is 1, ``Z_`` is 36."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return int(digits, 36) + 1 if digits else 0
