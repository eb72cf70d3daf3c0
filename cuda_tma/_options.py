"""What the user asks for, in the tensor's own shape order; the type says which of the driver's encoders makes the map.

The names, order and defaults of the fields are cuda.core's: those of ``TensorMapDescriptorOptions``, which is accepted
wherever :class:`TensorMapOptions` is, and those of its im2col constructors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypedDict

from ._compilable import Compilable
from ._convolution import Convolution, OneOrEach, Padding
from ._data_type import ELEMENTS, parse_data_type
from ._swizzle_pattern import SPAN_BYTES
from .enums import (
    PARAMETER_ENUMS,
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from .params import Im2colParams, Params, TiledParams

__all__ = [
    "TensorMapDescriptorOptions",
    "TensorMapIm2colOptions",
    "TensorMapIm2colWideOptions",
    "TensorMapOptions",
    "TiledKeywords",
]

# What users may write; the fields hold what it is turned into. A choice is a member (ours or cuda.core's), its name or
# its driver value; a data type may be any dtype.
Integers = Iterable[SupportsIndex]
Choice = str | SupportsIndex


class TiledKeywords(TypedDict, total=False):
    """The fields of TensorMapOptions, as a function's keywords; None stands for the default."""

    box_dim: Integers | None
    element_strides: Integers | None
    data_type: Any
    interleave: Choice | None
    swizzle: Choice | None
    l2_promotion: Choice | None
    oob_fill: Choice | None
    allocation_class: Choice | None


_ENUMS = {name: PARAMETER_ENUMS[name] for name in ("interleave", "swizzle", "l2_promotion", "oob_fill")}
_OPTIONAL = ("element_strides", "data_type", "allocation_class")  # which may be None


def _int_tuple(values: Iterable[int], name: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise TypeError(f"{name}={values!r} is not a sequence of integers, one for each dimension") from None


def _int(value: int, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is not an integer") from None


# how each field is read, by its name
_PARSERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("box_dim", "element_strides", "pixel_box_lower_corner", "pixel_box_upper_corner"), _int_tuple),
    **dict.fromkeys(("channels_per_pixel", "pixels_per_column"), _int),
    **dict.fromkeys(("pixel_box_lower_corner_width", "pixel_box_upper_corner_width"), _int),
    "data_type": lambda value, _: parse_data_type(value),
    "mode": TensorMapIm2ColWideMode.parse,
    "allocation_class": TensorMapAllocationClass.parse,
    **{name: enum_type.parse for name, enum_type in _ENUMS.items()},
}


class _Checked(Compilable):
    """What all kinds of options share: their values are read once, and compiled by _make.encode."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the subclass

    def __reduce__(self):
        """By the fields: the compiled values are made again."""
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __post_init__(self):
        """Turn what the user wrote into tuples of ints and members of enums; refuse what is neither."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, _PARSERS[name](value, name))


@dataclass(frozen=True, slots=True)
class TensorMapOptions(_Checked):
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

    if TYPE_CHECKING:

        def __init__(
            self,
            box_dim: Integers,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            swizzle: Choice = TensorMapSwizzle.NONE,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...

    @classmethod
    def from_params(cls, params: TiledParams) -> TensorMapOptions:
        """The options, in tensor order, that would make these parameters."""
        return cls(params.box_dim[::-1], **_common(params))

    if TYPE_CHECKING:  # suggest.py, which makes options, adds it

        @classmethod
        def suggest(cls, shape: Iterable[SupportsIndex], dtype: Any, **keywords: Any) -> TensorMapOptions: ...


@dataclass(frozen=True, slots=True)
class TensorMapIm2colOptions(_Checked):
    """Options of an im2col tensor map of a channels-last tensor (NWC, NHWC or NDHWC), in its own order.

    :meth:`convolution` makes them from a convolution's geometry. A load delivers a column: `pixels_per_column` pixels
    in convolution order, of each `channels_per_pixel` channels.

    Parameters
    ----------
    pixel_box_lower_corner : sequence of int
        Where the box of pixels begins, from the tensor's first pixel: (W,), (H, W) or (D, H, W). Of a convolution, the
        negative padding.
    pixel_box_upper_corner : sequence of int
        Where it ends, from the tensor's last pixel. Of a convolution, ``padding - (kernel_size - 1) * dilation``.
    channels_per_pixel : int
        Elements of the innermost dimension that are loaded of each pixel.
    pixels_per_column : int
        Pixels of one load.
    element_strides : sequence of int, optional
        Steps in each dimension of the tensor; the convolution's stride in the spatial ones. All 1 if None.
    data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class
        As in :class:`TensorMapOptions`.

    Examples
    --------
    >>> TensorMapIm2colOptions((-1, -1), (-1, -1), channels_per_pixel=64, pixels_per_column=128, swizzle="128B").swizzle
    <TensorMapSwizzle.SWIZZLE_128B: 3>
    """

    pixel_box_lower_corner: tuple[int, ...]
    pixel_box_upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] | None = None
    data_type: TensorMapDataType | None = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE
    allocation_class: TensorMapAllocationClass | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            pixel_box_lower_corner: Integers,
            pixel_box_upper_corner: Integers,
            channels_per_pixel: SupportsIndex,
            pixels_per_column: SupportsIndex,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            swizzle: Choice = TensorMapSwizzle.NONE,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...

    @classmethod
    def convolution(
        cls,
        kernel_size: OneOrEach,
        *,
        padding: Padding = 0,
        stride: OneOrEach = 1,
        dilation: OneOrEach = 1,
        **options: Any,
    ) -> TensorMapIm2colOptions:
        """The options with which loads deliver a convolution's input, a column of output pixels at a time.

        Parameters
        ----------
        kernel_size, padding, stride, dilation
            As in :class:`cuda_tma.Convolution`, which also says what a kernel passes to the loads; 2-D if all are plain
            ints.
        **options
            As in :meth:`from_convolution`.

        Examples
        --------
        >>> options = TensorMapIm2colOptions.convolution(3, padding=2, dilation=2, data_type="bfloat16")
        >>> options.pixel_box_lower_corner, options.pixel_box_upper_corner, options.channels_per_pixel
        ((-2, -2), (-2, -2), 64)
        """
        return cls.from_convolution(Convolution(kernel_size, stride, padding, dilation), **options)

    @classmethod
    def from_convolution(
        cls,
        geometry: Convolution,
        *,
        channels_per_pixel: SupportsIndex | None = None,
        pixels_per_column: SupportsIndex = 128,
        data_type: Any = None,
        swizzle: Choice = "128B",
        l2_promotion: Choice = TensorMapL2Promotion.NONE,
        allocation_class: Choice | None = None,
    ) -> TensorMapIm2colOptions:
        """The same, of a geometry at hand. Padding arrives as zeros: hence there is no `oob_fill`.

        Parameters
        ----------
        geometry : Convolution
        channels_per_pixel : int, optional
            If None, as many elements of `data_type` as the swizzle spans; 128 bytes of them without a swizzle.
        pixels_per_column : int
            Output pixels of one load.
        data_type, swizzle, l2_promotion, allocation_class
            As in :class:`TensorMapOptions`, but for the default of `swizzle`: the one with which tensor cores read
            shared memory without bank conflicts.

        Examples
        --------
        >>> geometry = Convolution((3,), stride=2)
        >>> TensorMapIm2colOptions.from_convolution(geometry, channels_per_pixel=64).element_strides
        (1, 2, 1)
        """
        pattern: Any = TensorMapSwizzle.parse(swizzle, "swizzle")
        if channels_per_pixel is None:
            if data_type is None:
                raise TypeError("a convolution's options need channels_per_pixel, or data_type, from which it follows")
            channels_per_pixel = _elements_of_span(parse_data_type(data_type), pattern)
        return cls(
            geometry.pixel_box_lower_corner,
            geometry.pixel_box_upper_corner,
            channels_per_pixel,
            pixels_per_column,
            geometry.element_strides,
            data_type,
            swizzle=pattern,
            l2_promotion=l2_promotion,
            allocation_class=allocation_class,
        )

    @classmethod
    def from_params(cls, params: Im2colParams) -> TensorMapIm2colOptions:
        """The options, in tensor order, that would make these parameters."""
        corners = params.pixel_box_lower_corner[::-1], params.pixel_box_upper_corner[::-1]
        return cls(*corners, params.channels_per_pixel, params.pixels_per_column, **_common(params))


@dataclass(frozen=True, slots=True)
class TensorMapIm2colWideOptions(_Checked):
    """Options of an im2col map along W alone (compute capability 10.0 and later; not verified on hardware).

    Parameters
    ----------
    pixel_box_lower_corner_width, pixel_box_upper_corner_width : int
        Where the row of pixels begins and ends, from the tensor's first and last pixel along W.
    channels_per_pixel, pixels_per_column, element_strides
        As in :class:`TensorMapIm2colOptions`.
    mode : TensorMapIm2ColWideMode or str
        ``"W"``, or ``"W128"``: 128 pixels, whatever `pixels_per_column` says.
    data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class
        As in :class:`TensorMapOptions`, but for the default of `swizzle`, since the driver takes no NONE here.

    Examples
    --------
    >>> TensorMapIm2colWideOptions(-1, -1, channels_per_pixel=64, pixels_per_column=64, mode="W").mode
    <TensorMapIm2ColWideMode.W: 0>
    """

    pixel_box_lower_corner_width: int
    pixel_box_upper_corner_width: int
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] | None = None
    data_type: TensorMapDataType | None = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    mode: TensorMapIm2ColWideMode = TensorMapIm2ColWideMode.W
    swizzle: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE
    allocation_class: TensorMapAllocationClass | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            pixel_box_lower_corner_width: SupportsIndex,
            pixel_box_upper_corner_width: SupportsIndex,
            channels_per_pixel: SupportsIndex,
            pixels_per_column: SupportsIndex,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            mode: Choice = TensorMapIm2ColWideMode.W,
            swizzle: Choice = TensorMapSwizzle.SWIZZLE_128B,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...


def options_of(params: Params) -> TensorMapOptions | TensorMapIm2colOptions:
    """The options, in tensor order, that would make parameters that were decoded."""
    if isinstance(params, TiledParams):
        return TensorMapOptions.from_params(params)
    assert isinstance(params, Im2colParams)  # as which a wide map is decoded, too
    return TensorMapIm2colOptions.from_params(params)


def _common(params: Params) -> dict[str, Any]:
    """The options that all modes have."""
    same = {name: getattr(params, name) for name in ("data_type", *_ENUMS)}
    small = params.allocation_class == TensorMapAllocationClass.SMALL  # what no driver has to be asked for
    allocation_class = None if small else params.allocation_class
    return {"element_strides": params.element_strides[::-1], "allocation_class": allocation_class, **same}


def _elements_of_span(data_type: TensorMapDataType, swizzle: TensorMapSwizzle) -> int:
    """Elements in one span of the swizzle. Of the ALIGN16B types each takes a byte of it, gaps included."""
    return SPAN_BYTES.get(swizzle, SPAN_BYTES[TensorMapSwizzle.SWIZZLE_128B]) * 8 // ELEMENTS[data_type].smem_bits


TensorMapDescriptorOptions = TensorMapOptions  # cuda.core's name of it
Options = TensorMapOptions | TensorMapIm2colOptions | TensorMapIm2colWideOptions
