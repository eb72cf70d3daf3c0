"""The options of a tensor map in tensor order.

The class of the options selects one of the driver's encoders.

The names, the order and the defaults of the fields are from cuda.core's ``TensorMapDescriptorOptions`` and its im2col
constructors. The package accepts ``TensorMapDescriptorOptions`` in place of :class:`TensorMapOptions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from ._convolution import Convolution, OneOrEach, Padding
from ._data_type import ELEMENTS, parse_data_type
from ._option_fields import Im2colOptionsFields, Im2colWideOptionsFields, OptionsFields, TiledKeywords
from ._option_table import COMMON, KINDS
from ._option_values import Choice, described
from ._swizzle_pattern import SPAN_BYTES
from .enums import TensorMapAllocationClass, TensorMapDataType, TensorMapSwizzle
from .params import Im2colParams, Params, TiledParams

__all__ = [
    "TensorMapDescriptorOptions",
    "TensorMapIm2colOptions",
    "TensorMapIm2colWideOptions",
    "TensorMapOptions",
    "TiledKeywords",
]


class TensorMapOptions(OptionsFields):
    """The options of a tiled tensor map, which are checked and normalized once, on construction.

    Parameters
    ----------
    <fields>

    Raises
    ------
    TypeError, ValueError
        If a value has the wrong type, or is not a member of its enum. A later check of the map tests the limits on
        sizes.

    Examples
    --------
    >>> TensorMapOptions(box_dim=(64, 64), swizzle="128B").swizzle
    <TensorMapSwizzle.SWIZZLE_128B: 3>
    """

    __slots__ = ()

    @classmethod
    def from_params(cls, params: TiledParams) -> TensorMapOptions:
        """Return the options, in tensor order, of a map with these parameters."""
        return cls(params.box_dim[::-1], **_common(params))

    if TYPE_CHECKING:  # The module _suggest.py adds the method `suggest` to the class.

        @classmethod
        def suggest(cls, shape: Iterable[SupportsIndex], dtype: Any, **keywords: Any) -> TensorMapOptions: ...


class TensorMapIm2colOptions(Im2colOptionsFields):
    """The options of an im2col tensor map of a channels-last tensor (NWC, NHWC or NDHWC), in tensor order.

    :meth:`convolution` returns these options for the geometry of a convolution. A load delivers one column:
    `pixels_per_column` pixels in convolution order, with `channels_per_pixel` channels each.

    Parameters
    ----------
    <fields>

    Examples
    --------
    >>> TensorMapIm2colOptions((-1, -1), (-1, -1), channels_per_pixel=64, pixels_per_column=128, swizzle="128B").swizzle
    <TensorMapSwizzle.SWIZZLE_128B: 3>
    """

    __slots__ = ()

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
        """Return the options for loads of a convolution's input, in which one load delivers a column of output pixels.

        Parameters
        ----------
        kernel_size, padding, stride, dilation
            The geometry, as in :class:`cuda_tma.Convolution`, which also returns the arguments of the kernel's loads.
            The convolution is 2-D if all values are ints.
        **options
            The other options, as in :meth:`from_convolution`.

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
        **options: Any,
    ) -> TensorMapIm2colOptions:
        """Return the options of :meth:`convolution` for a geometry.

        Loads write zeros as padding, so `oob_fill` is refused.

        Parameters
        ----------
        geometry : Convolution
        channels_per_pixel : int, optional
            Number of channels (default: the number of elements in the swizzle's span, or in 128 bytes without a
            swizzle).
        pixels_per_column : int
            Output pixels of one load.
        data_type, swizzle, **options
            The other options, as in :class:`TensorMapOptions`. With the default of `swizzle`, tensor cores read shared
            memory without bank conflicts.

        Examples
        --------
        >>> geometry = Convolution((3,), stride=2)
        >>> TensorMapIm2colOptions.from_convolution(geometry, channels_per_pixel=64).element_strides
        (1, 2, 1)
        """
        if "oob_fill" in options:
            raise TypeError("oob_fill was passed for a convolution, whose padding is always zeros; leave oob_fill out")
        pattern: Any = TensorMapSwizzle.parse(swizzle, "swizzle")
        if channels_per_pixel is None:
            if data_type is None:
                raise TypeError(
                    "neither channels_per_pixel nor data_type was passed for a convolution; pass channels_per_pixel, "
                    "or data_type to choose it automatically"
                )
            channels_per_pixel = _elements_of_span(parse_data_type(data_type), pattern)
        return cls(
            geometry.pixel_box_lower_corner,
            geometry.pixel_box_upper_corner,
            channels_per_pixel,
            pixels_per_column,
            geometry.element_strides,
            data_type,
            swizzle=pattern,
            **options,
        )

    @classmethod
    def from_params(cls, params: Im2colParams) -> TensorMapIm2colOptions:
        """Return the options, in tensor order, of a map with these parameters."""
        corners = params.pixel_box_lower_corner[::-1], params.pixel_box_upper_corner[::-1]
        return cls(*corners, params.channels_per_pixel, params.pixels_per_column, **_common(params))


class TensorMapIm2colWideOptions(Im2colWideOptionsFields):
    """The options of an im2col map along W.

    The options need compute capability 10.0 or later, and are not verified on hardware.

    Parameters
    ----------
    <fields>

    Examples
    --------
    >>> TensorMapIm2colWideOptions(-1, -1, channels_per_pixel=64, pixels_per_column=64, mode="W").mode
    <TensorMapIm2ColWideMode.W: 0>
    """

    __slots__ = ()


def options_of(params: Params) -> TensorMapOptions | TensorMapIm2colOptions:
    """Return the options, in tensor order, of decoded parameters."""
    if isinstance(params, TiledParams):
        return TensorMapOptions.from_params(params)
    assert isinstance(params, Im2colParams)  # The decoder returns Im2colParams for both kinds of im2col maps.
    return TensorMapIm2colOptions.from_params(params)


def _common(params: Params) -> dict[str, Any]:
    """Return the options that the maps of all modes have."""
    same = {option.name: getattr(params, option.name) for option in COMMON}
    # The default allocation class of every driver is SMALL.
    small = params.allocation_class == TensorMapAllocationClass.SMALL
    allocation_class = None if small else params.allocation_class
    return same | {"element_strides": params.element_strides[::-1], "allocation_class": allocation_class}


def _elements_of_span(data_type: TensorMapDataType, swizzle: TensorMapSwizzle) -> int:
    """Return the number of elements in one span of the swizzle.

    An ALIGN16B element and its share of the gap occupy one byte.
    """
    return SPAN_BYTES.get(swizzle, SPAN_BYTES[TensorMapSwizzle.SWIZZLE_128B]) * 8 // ELEMENTS[data_type].smem_bits


TensorMapDescriptorOptions = TensorMapOptions  # The library cuda.core uses the name TensorMapDescriptorOptions.
Options = TensorMapOptions | TensorMapIm2colOptions | TensorMapIm2colWideOptions

for _kind in (TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions):
    # Under python -OO, a class has no docstring, and Python 3.13 itself removes the indentation of docstrings.
    if _kind.__doc__:
        _kind.__doc__ = inspect.cleandoc(_kind.__doc__).replace("<fields>\n", described(KINDS[_kind.__name__]))
