"""Parsers of option values for the generated classes of ``_option_fields.py``."""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, SupportsIndex

from ._compilable import Compilable
from ._data_type import parse_data_type
from ._option_table import OPTIONS, SIZES, Option
from .enums import TensorMapDataType

__all__ = ["ROWS", "CheckedOptions", "Choice", "Integers", "described"]

# The types below describe accepted arguments, from which the constructors parse the values of the fields. A Choice is a
# member of an enum of the package or of cuda.core, a name, or an integer of the driver. A data type may also be a
# dtype.
Integers = Iterable[SupportsIndex]
Choice = str | SupportsIndex


def _int_tuple(values: Iterable[int], name: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise TypeError(
            f"{name}={values!r} is not a sequence of integers; pass one integer for each dimension"
        ) from None


def _int(value: int, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is not an integer") from None


def _data_type(value: Any, _: str) -> TensorMapDataType:
    return parse_data_type(value)


def _parser(option: Option) -> Callable[[Any, str], Any]:
    if option.type is TensorMapDataType:
        return _data_type
    if option.is_enum:
        return option.type.parse  # type: ignore[attr-defined, no-any-return]
    return _int_tuple if option.type is SIZES else _int


_PARSERS = {name: _parser(option) for name, option in OPTIONS.items()}
ROWS = {name: option._asdict() for name, option in OPTIONS.items()}  # Each row describes one field of the options.
_OPTIONAL = {name for name, option in OPTIONS.items() if option.default is None}  # An option in _OPTIONAL may be None.


class CheckedOptions(Compilable):
    """Options whose values are parsed once, on construction.

    The module _make.encode compiles the parsed values.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]  # The subclasses of CheckedOptions define the fields.

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the fields for pickle. Unpickling compiles the values again."""
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __post_init__(self) -> None:
        """Convert the user's values to tuples of ints and members of enums. Refuse other values."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, _PARSERS[name](value, name))


def described(options: Iterable[Option]) -> str:
    """Return the section "Parameters" for the docstring of a class with these options, without indentation."""
    return "".join(f"{option.name} : {_kind(option)}\n{_meaning(option)}\n" for option in options)


def _kind(option: Option) -> str:
    name = option.type.__name__
    words = "sequence of int" if option.type is SIZES else f"{name} or str" if option.is_enum else name
    words = words.replace(" or", ", dtype or") if option.type is TensorMapDataType else words
    return f"{words}, optional" if option.default is None else words


def _meaning(option: Option) -> str:
    since = "Compute capability {}.{} and later. ".format(*option.since) if option.since else ""
    return textwrap.fill(since + option.meaning, 110, initial_indent=" " * 4, subsequent_indent=" " * 4)
