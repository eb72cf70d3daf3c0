"""The types of a kernel's parameters, from the description that the compiler writes into the module.

The driver returns the size of a parameter but not its type, so a driver would accept a Python int for a ``float``
parameter. The header ``signature.cuh`` computes a table of each kernel's types. The header ``kernel.cuh`` adds such a
table to a kernel that another program compiles. Without a table, the types are in a lowered C++ name, which the C++
runtime demangles.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Any, Literal

from .._budget import PARAMETER_BYTES
from .._errors import TensorMapError
from .._map_type import MapPointer, MapType
from .plain_names import demangled, plain_name

__all__ = ["ParameterType", "described_types", "types_in_table", "types_of_name"]

ParameterType = Literal["integer", "float", "bool", "pointer"] | MapType | MapPointer | None

# ---- the table of signature.cuh ----

_KINDS: tuple[ParameterType, ...] = (None, "integer", "float", "bool", "pointer")
_MODES: dict[int, Literal["tiled", "im2col"]] = {5: "tiled", 6: "im2col"}
_COUNT, _PARAMETER = Struct("<i"), Struct("<12i")
# The header kernel.cuh defines variables with the prefix cuda_tma_parameters_of_.
_OF_KERNEL = "cuda_tma_parameters_of_"
_MOST_BYTES = _COUNT.size + (PARAMETER_BYTES + 1) * _PARAMETER.size
_INITIAL = re.compile(r"\[(\d{1,9})\](?:\s*=\s*\{([\s0-9,]*)\})?;")


def described_types(ptx: str, entry: str, variable: str = "") -> tuple[ParameterType, ...] | None:
    """Return the types of a kernel's parameters from the table in the PTX of its module.

    If the PTX has no table, the types are from the kernel's name.

    Parameters
    ----------
    ptx : str
    entry : str
        The name of the kernel in the PTX.
    variable : str, optional
        The variable with the kernel's table (default: the variable that ``CUDA_TMA_KERNEL`` makes).

    Returns
    -------
    tuple of {"integer", "float", "bool", "pointer", MapType, MapPointer, None}, or None
        The type of each parameter, with None for any other type. The result is None if all types are unknown.
    """
    found = types_in_table(_initial_bytes(ptx, variable or _OF_KERNEL + plain_name(entry)))
    return types_of_name(entry) if found is None else found


def types_in_table(content: bytes) -> tuple[ParameterType, ...] | None:
    """Return the types in a table of ``signature.cuh``, or None if the bytes are not a table."""
    if len(content) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack_from(content)
    if count < 0 or len(content) != _COUNT.size + (count + 1) * _PARAMETER.size:
        return None
    return tuple(_type(*each) for each in _PARAMETER.iter_unpack(content[_COUNT.size : -_PARAMETER.size]))


def _initial_bytes(ptx: str, variable: str) -> bytes:
    """Return the initial bytes of a variable in the PTX without trailing zeros, or b"" without such a variable."""
    at = ptx.find(f" {variable}[")
    found = _INITIAL.match(ptx, at + 1 + len(variable)) if at >= 0 else None
    if found is None or int(found[1]) > _MOST_BYTES:
        return b""
    try:
        return bytes(int(each) for each in (found[2] or "0").split(",")).ljust(int(found[1]), b"\0")
    except ValueError:
        return b""


def _type(kind: int, is_pointer: int, rank: int, *values: int) -> ParameterType:
    if kind not in _MODES:
        return _KINDS[kind] if 0 <= kind < len(_KINDS) else None
    data_type, swizzle, oob_fill, l2_promotion, *extents = values
    found = _map_type(
        mode=_MODES[kind],
        rank=rank,
        tile_dim=tuple(extent for extent in extents if extent),
        data_type=data_type,
        swizzle=swizzle,
        oob_fill=oob_fill,
        l2_promotion=l2_promotion,
    )
    return _pointer_to(found) if is_pointer else found


def _pointer_to(map_type: MapType | None) -> ParameterType:
    return MapPointer(map_type) if map_type else "pointer"


def _map_type(**values: Any) -> MapType | None:
    try:
        return MapType(**values)
    except (TensorMapError, TypeError, ValueError):  # The table may describe a type that no kernel can have.
        return None


# ---- names ----

_INTEGERS = "char|signed char|unsigned char|wchar_t|short|unsigned short|int|unsigned int|long|unsigned long|long long"
_FLOATS = ("float", "double", "_Float16", "__half", "__nv_bfloat16")
_SPELLED: dict[str, ParameterType] = dict.fromkeys([*_INTEGERS.split("|"), "unsigned long long"], "integer")
_SPELLED |= dict.fromkeys(_FLOATS, "float")
_SPELLED["bool"] = "bool"
_MAP = re.compile(
    r"cuda_tma::(?P<map>TiledMap|Im2colMap)<cuda_tma::Tile<\(cuda_tma::DataType\)(?P<data_type>\d+), "
    r"cuda_tma::Box<(?P<tile_dim>[\d, ]+)>, \(cuda_tma::Swizzle\)(?P<swizzle>\d+) ?>, (?:(?P<rank>\d+), )?"
    r"\(cuda_tma::OobFill\)(?P<oob_fill>\d+), \(cuda_tma::L2Promotion\)(?P<l2_promotion>\d+) ?>"
)


def types_of_name(name: str) -> tuple[ParameterType, ...] | None:
    """Return the types in a lowered C++ name, or None if the name does not contain them or they are unknown.

    Examples
    --------
    >>> types_of_name("_Z4axpyfPKfPfi")
    ('float', 'pointer', 'pointer', 'integer')
    >>> types_of_name("axpy") is None
    True
    """
    written = demangled(name.partition(".")[0])
    if written is None or not written.endswith(")"):
        return None
    parameters = _last_list(written)
    return None if parameters is None else tuple(map(_spelled, parameters))


def _last_list(written: str) -> list[str] | None:
    """Return the elements of the list in parentheses at the end of a text, or None if the brackets do not match."""
    # The statement replaces operators such as >> between the parentheses of template arguments.
    written = re.sub(r"\)(?:>>|<<|[<>]=?)\(", ") (", written)
    elements, depth, end = [], 0, len(written) - 1
    for at in range(len(written) - 1, -1, -1):
        letter = written[at]
        depth += (letter in ")>]}") - (letter in "(<[{")
        if depth == 0 or (depth == 1 and letter == ","):
            elements.append(written[at + 1 : end].strip())
            end = at
        if depth == 0:
            return [] if elements == [""] else elements[::-1]
    return None


def _spelled(written: str) -> ParameterType:
    written = written.removesuffix(" const")
    if found := _MAP.fullmatch(written.removesuffix("*").removesuffix(" const")):
        values = {key: int(value) for key, value in found.groupdict("0").items() if key not in ("map", "tile_dim")}
        extents = tuple(int(extent) for extent in found["tile_dim"].split(","))
        map_type = _map_type(mode="tiled" if found["map"] == "TiledMap" else "im2col", tile_dim=extents, **values)
        return _pointer_to(map_type) if written.endswith("*") else map_type
    # A pointer among the arguments of a template does not make the whole type a pointer.
    plain = re.sub(r"<.*>", "", written)
    if re.search(r"::\*\)?", plain) or plain.endswith("&"):
        return None
    return "pointer" if plain.endswith("*") or "(*)" in plain else _SPELLED.get(written)
