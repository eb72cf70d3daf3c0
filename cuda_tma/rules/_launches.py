"""The errors of a launch about arguments for typed maps and about shared memory, in the user's terms.

Shapes are in tensor order. The functions of this module are not on the hot path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._data_type import float_dtype
from .._enum_members import member_of
from .._errors import TensorMapError
from .._map_type import MapType
from ..codec import decode
from ..params import TiledParams

__all__ = [
    "foreign_tensor",
    "im2col_tensor",
    "other_elements",
    "other_map",
    "other_maps",
    "shared_memory_limit",
    "shared_memory_needed",
    "tensor",
]

KERNELS_OWN = (
    " (box_dim, data_type and swizzle are those of the kernel's type: change them there, or pass another tensor)"
)


def tensor(where: str, map_type: MapType, error: TensorMapError) -> TensorMapError:
    """Return the error of a launch for a tensor without a tensor map, from the error of create_tensor_map."""
    # The error contains box_dim and data_type as if the caller had passed these options.
    stated = any(f"{name}=" in str(error) for name in ("box_dim", "data_type"))
    return TensorMapError(f"{where}, {map_type}: {error}{KERNELS_OWN if stated else ''}", error.violations)


def other_elements(map_type: MapType, dtype: str) -> TensorMapError:
    """Refuse a tensor whose elements have another type.

    The package would accept a map of the tensor as a deliberate reinterpretation.
    """
    name, wanted = map_type.data_type.short_name, float_dtype(map_type.data_type)
    return TensorMapError(
        f"the tensor's elements are {dtype}, and the kernel's {name}, so that it would read their bits as other "
        f"numbers. Pass a tensor of {wanted}, or change the kernel's type; to reinterpret the bits, pass "
        f"tensor.view({wanted}) or a descriptor of data_type={name!r}"
    )


def im2col_tensor(where: str, map_type: MapType, given: object) -> TensorMapError:
    """Refuse a tensor as the argument for an im2col map.

    The map's corners follow from a convolution, not from the kernel's tile.
    """
    return TensorMapError(
        f"{where} is of type {map_type}, and a {type(given).__name__} was passed; an im2col map needs corners, "
        "which neither contains. Pass create_tensor_map(tensor, TensorMapIm2colOptions(lower_corner, upper_corner, "
        f"{_keywords(map_type.keywords)}))"
    )


def other_map(where: str, map_type: MapType, raw: bytes, is_wide: bool) -> TensorMapError:
    """Refuse a map that the kernel would misinterpret."""
    remedy = (
        f"pass the tensor itself, or make the map with {_keywords(map_type.keywords)}"
        if map_type.mode == "tiled"
        else f"make it with TensorMapIm2colOptions(lower_corner, upper_corner, {_keywords(map_type.keywords)})"
    )
    return TensorMapError(
        f"{where} is of type {map_type}, and the map that was passed is of another: "
        f"{_differences(map_type, raw, is_wide)}. Either {remedy}; or change the kernel's type"
    )


def other_maps(where: str, map_type: MapType, raw: bytes, is_wide: bool) -> TensorMapError:
    """Refuse maps in memory as other_map() does. The error shows one of the maps."""
    corners = "lower_corner, upper_corner, " if map_type.mode == "im2col" else ""
    return TensorMapError(
        f"{where} points to maps of type {map_type}, and a map of the uploaded array is of another: "
        f"{_differences(map_type, raw, is_wide)}. Either make the array with "
        f"{'TensorMapIm2colOptions' if corners else 'TensorMapOptions'}({corners}{_keywords(map_type.keywords)}); or "
        "change the kernel's type"
    )


def _differences(map_type: MapType, raw: bytes, is_wide: bool) -> str:
    try:
        found = [*_different(map_type, raw, is_wide)]
    except TensorMapError as error:
        return f"its bytes are not a tensor map ({error})"
    return "; ".join(f"its {name} is {given}, the kernel's {wanted}" for name, given, wanted in found)


def _different(map_type: MapType, raw: bytes, is_wide: bool) -> Iterator[tuple[str, object, object]]:
    """Yield the name and both values of each difference.

    If the mode or the rank differs, yield only that difference.
    """
    params: Any = decode(raw)
    given = "im2col wide" if is_wide else "tiled" if isinstance(params, TiledParams) else "im2col"
    for name, one, other in (("mode", given, map_type.mode), ("rank", params.rank, map_type.rank)):
        if one != other:
            yield name, one, other
            return
    for name, wanted in stated(map_type).items():
        value = getattr(params, name)
        if value != wanted:
            yield name, _shown(name, value), _shown(name, wanted)


def stated(map_type: MapType) -> dict[str, Any]:
    """Return the parameters that a type determines, in driver order. Omit fill and promotion with default values.

    A default that is written in C++ cannot be distinguished from an omitted argument.
    """
    names = {"interleave": 0, "data_type": map_type.data_type, "swizzle": map_type.swizzle}
    names |= {name: getattr(map_type, name) for name in ("oob_fill", "l2_promotion") if getattr(map_type, name)}
    if map_type.mode == "tiled":
        return {"box_dim": map_type.box_dim[::-1], "element_strides": (1,) * map_type.rank, **names}
    return {name: map_type.keywords[name] for name in ("pixels_per_column", "channels_per_pixel")} | names


def _shown(name: str, value: Any) -> object:
    if isinstance(value, tuple):
        return value[::-1]
    member = member_of(name, value)
    return value if member is None else member.short_name


def _keywords(keywords: dict[str, Any]) -> str:
    """Return the text of keywords as in a call, without defaults."""
    return ", ".join(
        f"{name}={_shown(name, value)!r}" if member_of(name, value) else f"{name}={value}"
        for name, value in keywords.items()
        if value or name == "data_type"
    )


def foreign_tensor(argument: int, own: tuple[int, int], launch: tuple[int, int]) -> TensorMapError:
    """Refuse a launch in a device or context other than the map's."""
    return TensorMapError(
        f"argument {argument}: a tensor's map is made in the current context, which is {own[1]:#x} on device {own[0]}, "
        f"and the launch is on device {launch[0]} in context {launch[1]:#x}; make that one current first: "
        f"Device({launch[0]}).set_current()"
    )


def shared_memory_limit(kernel: str, dynamic: int, static: int, limit: int, device_id: int) -> ValueError:
    """Refuse more shared memory than CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN."""
    own = f" in addition to its static {static}" if static else ""
    return ValueError(
        f"kernel {kernel} is launched with {dynamic} bytes of dynamic shared memory{own}, and device {device_id} has "
        f"{limit} for a thread block; use fewer stages or smaller tiles"
    )


def shared_memory_needed(kernel: str, given: int, needed: int) -> ValueError:
    """Refuse less dynamic shared memory than the kernel declares, as its compilation reports."""
    return ValueError(
        f"shmem_size={given} is less than the {needed} bytes of dynamic shared memory that kernel {kernel} uses; leave "
        "shmem_size out, and the launch allocates them"
    )
