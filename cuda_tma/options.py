"""What the user asks for, in the tensor's own shape order.

The field names, order and defaults are those of cuda.core's ``TensorMapDescriptorOptions``, which is accepted wherever
:class:`TensorMapOptions` is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from ._arguments import Compilable
from .data_type import parse_data_type
from .enums import (
    PARAMETER_ENUMS,
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from .params import TiledParams

__all__ = ["TensorMapOptions"]

# The options that are always there; data_type and allocation_class may be None.
_ENUMS = {name: PARAMETER_ENUMS[name] for name in ("interleave", "swizzle", "l2_promotion", "oob_fill")}


@dataclass(frozen=True, slots=True)
class TensorMapOptions(Compilable):
    """Options of a tiled tensor map. Checked and normalised here, once, so that using them costs nothing.

    Parameters
    ----------
    box_dim : sequence of int
        Extent of the tile in each dimension, in elements (of a packed type: in packed elements), in tensor order.
    element_strides : sequence of int, optional
        Steps between the elements visited in each dimension, in tensor order; all 1 if None.
    data_type : TensorMapDataType, dtype or str, optional
        How the engine reads an element; follows from the tensor's dtype if None.
    interleave : TensorMapInterleave or str
    swizzle : TensorMapSwizzle or str
        ``"128B"`` is ``TensorMapSwizzle.SWIZZLE_128B``, and likewise for the others.
    l2_promotion : TensorMapL2Promotion or str
    oob_fill : TensorMapOOBFill or str
    allocation_class : TensorMapAllocationClass or str, optional
        Compute capability 10.0 and later, with a driver of CUDA 13.5 or later: how far beyond the tensor the engine may
        prefetch. If None, SMALL where the driver can set it. Documented, not verified on hardware.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or not a member of its enum. The limits on sizes are the driver's to judge.

    Examples
    --------
    >>> TensorMapOptions(box_dim=(64, 64), swizzle="128B").swizzle
    <TensorMapSwizzle.SWIZZLE_128B: 3>
    """

    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = None
    data_type: TensorMapDataType | None = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE
    allocation_class: TensorMapAllocationClass | None = None

    def __post_init__(self):
        put = object.__setattr__
        put(self, "box_dim", _int_tuple("box_dim", self.box_dim))
        if self.element_strides is not None:
            put(self, "element_strides", _int_tuple("element_strides", self.element_strides))
        if self.data_type is not None:
            put(self, "data_type", parse_data_type(self.data_type))
        if self.allocation_class is not None:
            put(self, "allocation_class", TensorMapAllocationClass.parse(self.allocation_class, "allocation_class"))
        for name, enum_type in _ENUMS.items():
            put(self, name, enum_type.parse(getattr(self, name), name))

    @classmethod
    def from_params(cls, params: TiledParams) -> TensorMapOptions:
        """The options, in tensor order, that would make these parameters."""
        names = ("data_type", *_ENUMS)
        return cls(
            params.box_dim[::-1], params.element_strides[::-1], **{name: getattr(params, name) for name in names}
        )

    @classmethod
    def suggest(cls, shape: Sequence[int], dtype: Any, **keywords: Any) -> TensorMapOptions:
        """The swizzle and the largest legal box for a tile: the options of :func:`cuda_tma.suggest`, without reasons.

        >>> TensorMapOptions.suggest((128, 128), "bfloat16").box_dim
        (128, 64)
        """
        from .suggest import suggest  # which makes options

        return suggest(shape, dtype, **keywords).options


_NAMES = tuple(f.name for f in fields(TensorMapOptions))


def as_options(box_dim=None, options=None, **keywords) -> TensorMapOptions:
    """Options from what ``as_tensor_map`` accepts: keywords, an options object (ours or cuda.core's), or a mapping.

    Parameters
    ----------
    box_dim : sequence of int, optional
    options : TensorMapOptions, cuda.core.TensorMapDescriptorOptions or mapping, optional
        Instead of `box_dim` and `keywords`, not beside them.
    **keywords
        Fields of :class:`TensorMapOptions`; None stands for the default.

    Raises
    ------
    TypeError
        If both are given, neither is, or a name is unknown.
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    if options is None:
        if box_dim is None:
            raise TypeError("a tensor map needs box_dim=(...), the tile's extents in tensor order, or options=")
        return TensorMapOptions(box_dim, **given)
    if box_dim is not None or given:
        extra = ", ".join([*(["box_dim"] if box_dim is not None else []), *given])
        raise TypeError(f"options= and {extra} were both given; put {extra} into the options")
    if isinstance(options, TensorMapOptions):
        return options
    if isinstance(options, Mapping):
        unknown = sorted(set(options) - set(_NAMES))
        if unknown:
            raise TypeError(f"options has no {', '.join(map(repr, unknown))}; its names are {', '.join(_NAMES)}")
        return as_options(**options)
    if not hasattr(options, "box_dim"):
        raise TypeError(
            f"options is a {type(options).__name__}; it takes a TensorMapOptions, cuda.core's "
            "TensorMapDescriptorOptions or a mapping"
        )
    return as_options(**{name: getattr(options, name, None) for name in _NAMES})


def options_from(options=None, box_dim=None, *others) -> TensorMapOptions:
    """:func:`as_options` with every keyword, in the order of the fields; the same values give the same object again.

    For the calls that make one descriptor each: checking keywords takes as long as ten of them.
    """
    if options is None and type(box_dim) is tuple:
        try:
            return _remembered(tuple(map(type, box_dim)), box_dim, *others)
        except TypeError:  # some value is not hashable, or not legal, which is said below
            pass
    return as_options(box_dim, options, **dict(zip(_NAMES[1:], others, strict=True)))


@lru_cache(maxsize=256, typed=True)
def _remembered(_types, box_dim, *others) -> TensorMapOptions:
    """`_types` are those of the extents: 64.0 == 64, but one of them is refused."""
    return as_options(box_dim, **dict(zip(_NAMES[1:], others, strict=True)))


def _int_tuple(name: str, values: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise TypeError(f"{name}={values!r} is not a sequence of integers, one for each dimension") from None
