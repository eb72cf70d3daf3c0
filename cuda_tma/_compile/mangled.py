"""The types of a kernel's parameters, read off its mangled C++ name, or off that of its signature.

The driver knows the size of a parameter and not its type, so that a Python int for a ``float`` parameter would pass. A
lowered C++ name carries the types; an ``extern "C"`` name does not, but the name of ``cuda_tma::signature`` of any
kernel's type does (cuda_tma/signature.cuh). What is not read is not guessed.
"""

from __future__ import annotations

from typing import Any, Literal

from .._errors import TensorMapError
from .._map_type import MapPointer, MapType
from .itanium import read, read_name
from .type_tree import Builtin, Function, Named, Node, Pointer

__all__ = ["MapPointer", "ParameterType", "parameter_types", "plain_name"]


ParameterType = Literal["integer", "float", "bool", "pointer"] | MapType | MapPointer | None

_FLOAT_CLASSES = (Named(("__half",)), Named(("__nv_bfloat16",)))  # CUDA's 16-bit floats are classes
_SIGNATURE, _TILED, _IM2COL, _TILE, _BOX = (
    ("cuda_tma", name) for name in ("signature", "TiledMap", "Im2colMap", "Tile", "Box")
)


def parameter_types(name: str) -> tuple[ParameterType, ...] | None:
    """What each parameter of a kernel takes.

    Parameters
    ----------
    name : str
        The kernel's lowered name, or that of ``cuda_tma::signature<decltype(&kernel)>``.

    Returns
    -------
    tuple of {"integer", "float", "bool", "pointer", MapType, MapPointer, None}, or None
        None for a parameter stands for any other type. None for all: the name does not say.

    Examples
    --------
    >>> parameter_types("_Z4axpyfPKfPfi")
    ('float', 'pointer', 'pointer', 'integer')
    >>> parameter_types("_ZN8cuda_tma9signatureIPFvfPKfEEE")
    ('float', 'pointer')
    >>> parameter_types("axpy") is None
    True
    """
    try:
        named, parameters = read(name)
    except (IndexError, ValueError, RecursionError):
        return None
    if named.path == _SIGNATURE:
        parameters = _of_signature(named)
    return None if parameters is None else tuple(map(_parameter_type, parameters))


def plain_name(name: str) -> str:
    """A lowered name as people write it, without a template's arguments, which may be long; others as they are.

    >>> plain_name("_ZN2ns4axpyIfEEvPT_"), plain_name("axpy")
    ('ns::axpy<...>', 'axpy')
    """
    try:
        named = read_name(name)
    except (IndexError, ValueError, RecursionError):
        return name
    return "::".join(named.path) + "<...>" * (named.arguments is not None)


def _of_signature(signature: Named) -> tuple[Node, ...] | None:
    """The parameters of the function that it has as its argument, or a pointer to which."""
    function = signature.arguments[0] if signature.arguments and len(signature.arguments) == 1 else None
    if isinstance(function, Pointer):
        function = function.target
    return function.parameters if isinstance(function, Function) else None


def _parameter_type(node: Node) -> ParameterType:
    if isinstance(node, Builtin):
        return node.kind
    if isinstance(node, Pointer):
        target = _map_type(node.target)
        return "pointer" if target is None else MapPointer(target)
    return "float" if node in _FLOAT_CLASSES else _map_type(node)


def _map_type(node: Node) -> MapType | None:
    """``TiledMap<Tile<data type, Box<extents>, swizzle>, fill, promotion>``; of ``Im2colMap``, the rank after the tile.

    None where it is another type, or not all of it is known.
    """
    match node:
        case Named(path, (tile, fill, promotion)) if path == _TILED:
            return _with_tile("tiled", tile, oob_fill=fill, l2_promotion=promotion)
        case Named(path, (tile, rank, fill, promotion)) if path == _IM2COL:
            return _with_tile("im2col", tile, rank=rank, oob_fill=fill, l2_promotion=promotion)
    return None


def _with_tile(mode: Literal["tiled", "im2col"], tile: Node, **others: Any) -> MapType | None:
    match tile:
        case Named(path, (data_type, Named(box, (extents,)), swizzle)) if (path, box) == (_TILE, _BOX):
            if not isinstance(extents, tuple) or not all(isinstance(each, int) for each in extents):
                return None
            others |= {"tile_dim": extents, "data_type": data_type, "swizzle": swizzle}
            try:
                return MapType(mode=mode, **others)
            except (TensorMapError, TypeError, ValueError):  # what is not known of it, or no kernel can use
                return None
    return None
