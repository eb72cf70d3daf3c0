"""Generate the option dataclasses, keyword types, signatures and the reference page from the table of options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cuda_tma._option_table import KINDS, REQUIRED, SIZES, Option

_TILED = KINDS["TensorMapOptions"]
_NAMES = [option.name for option in _TILED]
_HEAD = "The tool tools/write_options.py writes this file from cuda_tma/_option_table.py."


def fields_module() -> str:
    """Return ``_option_fields.py``, which has the classes that hold the fields, and the keywords of functions."""
    enums = sorted({option.type.__name__ for kind in KINDS.values() for option in kind if option.is_enum})
    classes = "\n\n".join(_class(name.replace("TensorMap", "") + "Fields", options) for name, options in KINDS.items())
    keywords = "".join(f"    {option.name}: {_optional(_written_as(option))}\n" for option in _TILED)
    imports = "".join(f"    {name},\n" for name in enums)
    return _FIELDS_MODULE.format(head=_HEAD, enums=imports, classes=classes, keywords=keywords)


def _class(name: str, options: Iterable[Option]) -> str:
    fields = "".join(f"    {o.name}: {_held_as(o)}{_field(o)}\n" for o in options)
    arguments = "".join(f"            {o.name}: {_argument(o)}{_default(o)},\n" for o in options)
    return _CLASS.format(name=name, fields=fields, arguments=arguments)


def _held_as(option: Option) -> str:
    """Return the type that the class has for the field."""
    held = "tuple[int, ...]" if option.type is SIZES else option.type.__name__
    return f"{held} | None" if option.default is None else held


def _written_as(option: Option) -> str:
    """Return the type that users write for an option."""
    if option.name == "data_type":
        return "Any"
    return "Choice" if option.is_enum else "Integers" if option.type is SIZES else "SupportsIndex"


def _argument(option: Option) -> str:
    return _optional(_written_as(option)) if option.default is None else _written_as(option)


def _optional(written: str) -> str:
    return written if written == "Any" else f"{written} | None"


def _default(option: Option) -> str:
    return "" if option.default is REQUIRED else f" = {_value(option)}"


def _field(option: Option) -> str:
    return "" if option.default is REQUIRED else f' = field(default={_value(option)}, metadata=ROWS["{option.name}"])'


def _value(option: Option) -> str:
    return "None" if option.default is None else f"{option.type.__name__}.{option.default.name}"


def doors() -> str:
    """Return ``_make/doors.pxi``, which has the functions that take the options of tiled maps as keywords."""
    return _DOORS.format(
        head=_HEAD,
        count=len(_NAMES),
        keywords=", ".join(f"{name}=None" for name in _NAMES),
        others=", ".join(f"{name}=None" for name in _NAMES[1:]),
        names=", ".join(_NAMES),
        objects=", ".join(f"object {name}" for name in _NAMES),
        all_are="\n            is ".join(_NAMES),
        pointers="\n        ".join(f"keywords[{at}] = <PyObject*>{name}" for at, name in enumerate(_NAMES)),
    )


def stub() -> str:
    """Return ``_make/create.pyi``, which has the types of the same functions."""
    keywords = [f"{option.name}: {_keyword(option)} = None," for option in _TILED]
    lines = {indent: f"\n{indent}".join(keywords) for indent in (" " * 4, " " * 8)}
    others = f"\n{' ' * 4}".join(keywords[1:])
    return _STUB.format(head=_HEAD, first=keywords[0], others=others, function=lines[" " * 4], method=lines[" " * 8])


def _keyword(option: Option) -> str:
    return _optional(_written_as(option))


def options_page() -> str:
    """Return ``docs/options.md``, which has a row for every option."""
    options: dict[str, list[tuple[str, Option]]] = {}
    for kind, rows in KINDS.items():
        for option in rows:
            options.setdefault(option.name, []).append((kind, option))
    return _PAGE.format(rows="".join(map(_row, options.values())))


def _row(found: list[tuple[str, Option]]) -> str:
    option = found[0][1]
    kinds = "all" if len(found) == len(KINDS) else ", ".join(f"`{kind}`" for kind, _ in found)
    values = ", ".join(m.short_name for m in option.type) if option.is_enum else _range(option)  # type: ignore[attr-defined]
    defaults = {kind: _shown_default(each) for kind, each in found}
    default = defaults[found[0][0]]
    others = [f"{shown} in `{kind}`" for kind, shown in defaults.items() if shown != default]
    since = "{}.{}".format(*option.since) if option.since else ""
    pieces = [piece for bits in option.bits for piece in bits]
    places = ", ".join(f"word {w}: {low}" + f" to {low + width - 1}" * (width > 1) for w, low, width in pieces)
    cells = (f"`{option.name}`", kinds, values, "; ".join([default, *others]), f"`{option.c_type}`", places, since)
    return "| " + " | ".join(cells) + " |\n"


def _range(option: Option) -> str:
    number = "integers" if option.type is SIZES else "an integer"
    return f"{number}, {option.range[0]} to {option.range[1]}" if option.range else number


def _shown_default(option: Option) -> str:
    return "required" if option.default is REQUIRED else getattr(option.default, "short_name", str(option.default))


_FIELDS_MODULE = '''\
"""The fields of the three kinds of options.

{head}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

from ._option_values import ROWS, CheckedOptions, Choice, Integers
from .enums import (
{enums})

__all__ = ["Im2colOptionsFields", "Im2colWideOptionsFields", "OptionsFields", "TiledKeywords"]


class TiledKeywords(TypedDict, total=False):
    """The fields of TensorMapOptions as keywords of a function. None selects the default."""

{keywords}

{classes}'''

_CLASS = """\
@dataclass(frozen=True, slots=True)
class {name}(CheckedOptions):
{fields}
    if TYPE_CHECKING:

        def __init__(
            self,
{arguments}        ) -> None: ...
"""

_DOORS = '''\
# {head}

cdef enum:
    KEYWORDS = {count}  # TensorMapOptions has this number of fields.


def create_tensor_map(
        tensor, options=None, *, {keywords}):
    """Make a descriptor of a tensor in the current CUDA context.

    Parameters
    ----------
    tensor : tensor or view
        A torch, CuPy, JAX or numba-cuda array, a cuda.core Buffer, or a ``StridedMemoryView`` (ours or cuda.core's),
        on the current device or in pinned or managed memory.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
        The options, whose type selects the mode: tiled, im2col or im2col wide.
    {names}
        Fields of :class:`TensorMapOptions`, instead of `options`.

    Returns
    -------
    TensorMapDescriptor

    Raises
    ------
    TensorMapError
        If no map can be made of the tensor with the options. The error contains every reason and its remedy.
    RuntimeError
        If there is no NVIDIA driver.
    """
    return _create(tensor, _options(
        options, {names}), ANY_DEVICE)


def as_tensor_map(
        self, box_dim=None, *, options=None, {others}):
    """Make a descriptor of this view, as :func:`create_tensor_map` does, with cuda.core's order of arguments."""
    return _create(self, _options(
        options, {names}), ANY_DEVICE)


class OnDevice:
    """The base class of Device, which contains its method for tensor maps."""

    def create_tensor_map(
            self, tensor, options=None, *, {keywords}):
        """Make a descriptor of a tensor on this device, which must be the current one.

        See :func:`cuda_tma.create_tensor_map`.
        """
        return _create(tensor, _options(
            options, {names}), read_property(<PyObject*>_ordinal, self))


cdef inline Compilable _options(
        object options, {objects}):
    """Return the package's options unchanged, and options made from any other arguments.

    A check of keywords takes as long as ten descriptors, and a look-up of them as long as one. The function therefore
    compares the keywords by identity with those of the last call, which a loop repeats.
    """
    cdef PyObject* keywords[KEYWORDS]
    if isinstance(options, Compilable) and (
            {all_are} is None):
        return <Compilable>options
    if options is None and not FREE_THREADED:
        # Without a GIL, the two variables below could belong to two calls.
        {pointers}
        if not memcmp(keywords, PySequence_Fast_ITEMS(<PyObject*>_last_keywords), sizeof(keywords)):
            return _last_options
    return options_by_keywords(options, (
        {names}))
'''

_STUB = """\
# {head}
from typing import Any

from .._device import Device
from .._option_values import Choice, Integers
from .._options import Options
from .._tensor_map import TensorMapDescriptor

def create_tensor_map(
    tensor: object,
    options: object = None,
    *,
    {function}
) -> TensorMapDescriptor: ...
def as_tensor_map(
    self: Any,
    {first}
    *,
    options: object = None,
    {others}
) -> TensorMapDescriptor: ...
def options_by_keywords(options: object, keywords: tuple[Any, ...]) -> Options: ...
def register_ordinal(device_type: type[Device]) -> None: ...

class OnDevice:
    def create_tensor_map(
        self,
        tensor: object,
        options: object = None,
        *,
        {method}
    ) -> TensorMapDescriptor: ...
"""

_PAGE = """# The options of tensor maps

Generated by `python tools/write_options.py` from the table in [`_option_table.py`](../cuda_tma/_option_table.py).

This table of options also defines the classes of options, the keywords of `create_tensor_map`, the flags of `cuda-tma`
and the fields of [the 128 bytes](fields.md). Tuples of integers are in the tensor's own order.

| option | kinds | values | default | C type | bits | since |
|---|---|---|---|---|---|---|
{rows}"""

FILES = {
    "cuda_tma/_option_fields.py": fields_module,
    "cuda_tma/_make/doors.pxi": doors,
    "cuda_tma/_make/create.pyi": stub,
}

if __name__ == "__main__":
    for path, text in {**FILES, "docs/options.md": options_page}.items():
        Path(__file__).parent.parent.joinpath(path).write_text(text(), encoding="utf-8")
