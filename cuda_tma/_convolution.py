"""The box of pixels, the coordinates and the offsets of an im2col tensor map for a convolution.

An im2col load visits the pixels of the *pixel box* in the order of the convolution: along W, then H, then D, then in
the next image. Each step has the length of ``element_strides``. The box contains the positions of the filter's first
tap, so each step is one output pixel. The box begins ``padding`` pixels before the tensor. The box ends at the last
position where the dilated filter fits. Its last step is therefore the last output pixel, even if the stride does not
divide the extent. The *offsets* of a load move all its pixels from the first tap to another tap. Pixels outside the
tensor are then padding, and the load writes zeros for them.

All values are in tensor order (D, H, W), except the coordinates and offsets of a kernel, which are innermost first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, SupportsIndex

from ._errors import TensorMapError
from ._limits import CORNER_LIMIT, MAX_ELEMENT_STRIDE

__all__ = ["Convolution", "OneOrEach", "Padding"]

# An int applies to all spatial dimensions, and a collection contains one value for each spatial dimension.
OneOrEach = SupportsIndex | Collection[SupportsIndex]
Padding = str | OneOrEach | Collection[Collection[SupportsIndex]]

# The texts below are remedies in the errors about a refused convolution.
_SPLIT = (
    "or split the filter, with a map for each group of taps whose corners and coordinates are moved by the offset of "
    "the group's first tap"
)
PAD_LESS = f"Use less padding, {_SPLIT}"
REACH_LESS = f"Use a smaller kernel_size or dilation, {_SPLIT}"
LOAD_PATCHES = (
    "If it is the kernel_size (patches), reshape the tensor and load them with a tiled map; else use a stride that "
    "divides it, and skip output pixels"
)


@dataclass(frozen=True, slots=True, init=False)
class Convolution:
    """The geometry of a convolution over a channels-last tensor (NWC, NHWC or NDHWC).

    Parameters
    ----------
    kernel_size, stride, dilation : int or sequence of int
        One value for each spatial dimension, or one value for all dimensions, as for ``torch.nn.functional.conv2d``. An
        int is any value that ``operator.index`` accepts, such as an array without dimensions. If all arguments are
        ints, the convolution is 2-D. ``kernel_size=(3,)`` makes it 1-D, and ``(3, 3, 3)`` makes it 3-D.
    padding : int, sequence of int, sequence of (int, int), "valid" or "same"
        Pixels of zeros on both sides, or (before, after). ``"same"`` requires a stride of 1 and keeps the extents.

    Attributes
    ----------
    kernel_size, stride, dilation : tuple of int
    padding : tuple of (int, int)
        The pixels (before, after) of each spatial dimension.

    Raises
    ------
    TypeError
        If a value is not an int or a sequence of ints, or their lengths differ.
    TensorMapError
        If a value is out of range, or does not fit in an im2col map. A corner has 16 bits in a 1-D convolution, 8 bits
        in 2-D, and 5 bits in 3-D (CUDA driver API, cuTensorMapEncodeIm2col, pixelBoxLowerCorner). Also if `padding` is
        another text, or is ``"same"`` with a stride above 1.

    Examples
    --------
    >>> conv = Convolution(3, padding=1, stride=2)
    >>> conv.output_extents((56, 56))
    (28, 28)
    >>> conv.pixel_box_lower_corner, conv.pixel_box_upper_corner, conv.element_strides
    ((-1, -1), (-1, -1), (1, 2, 2, 1))
    >>> conv.coordinates((7, 0, 5), channel=64)  # of image 7, row 0, column 5 of the output
    (64, 9, -1, 7)
    >>> conv.offsets((0, 2))  # the filter's row 0, column 2
    (2, 0)
    """

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    def __init__(
        self,
        kernel_size: OneOrEach,
        stride: OneOrEach = 1,
        padding: Padding = 0,
        dilation: OneOrEach = 1,
    ):
        dims = _spatial_dims(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        for name, value in (("kernel_size", kernel_size), ("stride", stride), ("dilation", dilation)):
            object.__setattr__(self, name, _each(name, value, dims, least=1))
        object.__setattr__(self, "padding", _padding(self, padding, dims))
        _check(self)

    @property
    def reach(self) -> tuple[int, ...]:
        """The distance from the first to the last tap of the filter, which is ``(kernel_size - 1) * dilation``."""
        return tuple((k - 1) * d for k, d in zip(self.kernel_size, self.dilation, strict=True))

    @property
    def pixel_box_lower_corner(self) -> tuple[int, ...]:
        """The start of the box of pixels, relative to the tensor's first pixel; its value is ``-padding``."""
        return tuple(-before for before, _ in self.padding)

    @property
    def pixel_box_upper_corner(self) -> tuple[int, ...]:
        """The end of the box of pixels after the tensor's last pixel: ``padding - (kernel_size - 1) * dilation``."""
        return tuple(after - reach for (_, after), reach in zip(self.padding, self.reach, strict=True))

    @property
    def element_strides(self) -> tuple[int, ...]:
        """The step in each dimension of the tensor, which is 1 for images and channels and otherwise the stride."""
        return (1, *self.stride, 1)

    def output_extents(self, extents: Collection[SupportsIndex]) -> tuple[int, ...]:
        """Return the extents (D, H, W) of the output for the extents of an input.

        Raises
        ------
        TensorMapError
            If the dilated filter is larger than the padded input.

        Examples
        --------
        >>> Convolution(7, stride=2, padding=3).output_extents((224, 224))
        (112, 112)
        """
        counts = _each("extents", extents, len(self.kernel_size), least=1)
        found = []
        for i, (extent, (before, after), reach, step) in enumerate(
            zip(counts, self.padding, self.reach, self.stride, strict=True)
        ):
            last = extent + before + after - reach - 1
            if last < 0:
                raise TensorMapError(
                    f"extents[{i}]={extent} with a padding of {before} + {after} is {extent + before + after}, and the "
                    f"dilated filter spans {reach + 1}: there is no output pixel. Pad more, or use a smaller "
                    "kernel_size or dilation"
                )
            found.append(last // step + 1)
        return tuple(found)

    def output_pixel(self, index: SupportsIndex, extents: Collection[SupportsIndex]) -> tuple[int, ...]:
        """Return the output pixel (image, D, H, W) with number `index` in the order in which loads deliver pixels.

        Parameters
        ----------
        index : int
            Row of the im2col matrix. Each column of a map begins at a multiple of ``pixels_per_column``.
        extents : sequence of int
            Spatial extents (D, H, W) of the input.

        Raises
        ------
        TensorMapError
            If `index` is negative.

        Examples
        --------
        >>> conv = Convolution(3, padding=1)
        >>> conv.coordinates(conv.output_pixel(56 * 56 + 57, (56, 56)))  # image 1, row 1, column 1
        (0, 0, 0, 1)
        """
        image = _integer("index", index)
        if image < 0:
            raise TensorMapError(f"index={index} is negative; pass 0 or more, because output pixels are counted from 0")
        pixel = []
        for extent in reversed(self.output_extents(extents)):
            image, position = divmod(image, extent)
            pixel.append(position)
        return (image, *reversed(pixel))

    def coordinates(self, pixel: Collection[SupportsIndex], channel: SupportsIndex = 0) -> tuple[int, ...]:
        """Return the coordinates that a kernel passes to a load, innermost dimension first (C, W, H, D, image).

        Parameters
        ----------
        pixel : sequence of int
            The first output pixel of the column, (image, D, H, W), with one coordinate for each spatial dimension.
        channel : int
            The first channel, whose byte offset must be a multiple of 16.
        """
        image, *places = _each("pixel", pixel, len(self.kernel_size) + 1)
        steps = zip(places, self.stride, self.padding, strict=True)
        return (
            _integer("channel", channel),
            *reversed([place * step - before for place, step, (before, _) in steps]),
            image,
        )

    def offsets(self, tap: Collection[SupportsIndex]) -> tuple[int, ...]:
        """Return the offsets that a kernel passes to a load, with the innermost dimension first (W, H, D).

        Parameters
        ----------
        tap : sequence of int
            Position in the filter (D, H, W).

        Raises
        ------
        TensorMapError
            If the tap is outside the filter.
        """
        taps = _each("tap", tap, len(self.kernel_size), least=0)
        if any(place >= size for place, size in zip(taps, self.kernel_size, strict=True)):
            raise TensorMapError(f"tap={tap!r} is outside the filter of {self.kernel_size}; count from 0")
        return tuple(place * d for place, d in zip(reversed(taps), reversed(self.dilation), strict=True))


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is not an integer") from None


def _is_sequence(value: Any) -> bool:
    """Return whether a value has a length. An array without dimensions has no length, and counts as one value."""
    try:
        len(value)
    except TypeError:
        return False
    return True


def _spatial_dims(**arguments: Any) -> int:
    """Return the length of the arguments that are sequences, or 2 if no argument is a sequence."""
    lengths = {n: len(v) for n, v in arguments.items() if not isinstance(v, str) and _is_sequence(v)}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name}={arguments[name]!r}" for name in lengths)
        raise TypeError(
            f"{given} have different lengths; pass one value for each spatial dimension, or a single value for all "
            "dimensions"
        )
    dims = next(iter(lengths.values()), 2)
    if not 1 <= dims <= 3:
        raise TypeError(f"{next(iter(lengths))} has length {dims}; a convolution has 1 to 3 spatial dimensions")
    return dims


def _each(name: str, value: Any, count: int, least: float = -math.inf) -> tuple[int, ...]:
    """Return one int for each of `count` dimensions. Refuse an int below `least`."""
    try:
        values = tuple(map(operator.index, value)) if _is_sequence(value) else (operator.index(value),) * count
    except TypeError:
        raise TypeError(f"{name}={value!r} is neither an integer nor a sequence of integers") from None
    if len(values) != count:
        raise TypeError(f"{name}={value!r} has length {len(values)}; it needs length {count}")
    if min(values) < least:
        raise TensorMapError(f"{name}={value!r} has a value below {least}; pass {least} or more")
    return values


def _padding(conv: Convolution, value: Any, dims: int) -> tuple[tuple[int, int], ...]:
    """Return the pair (before, after) of each dimension from any form of padding.

    For "same", an odd pixel of padding is after the tensor.
    """
    if isinstance(value, str):
        if value not in ("valid", "same"):
            raise TensorMapError(f'padding={value!r} is an unknown padding; pass "valid", "same" or numbers of pixels')
        if value == "same" and any(step != 1 for step in conv.stride):
            raise TensorMapError(
                f'padding="same" needs a stride of 1, but the stride is {conv.stride}; pass the padding as numbers of '
                "pixels"
            )
        return tuple((reach // 2, reach - reach // 2) if value == "same" else (0, 0) for reach in conv.reach)
    if _is_sequence(value) and any(map(_is_sequence, value)):
        before, after = zip(*(_each("padding", pair, 2, least=0) for pair in value), strict=True)
    else:
        before = after = _each("padding", value, dims, least=0)
    return tuple(zip(before, after, strict=True))


# --- limits of an im2col map ---


def _check(conv: Convolution) -> None:
    """Refuse a convolution that no im2col map can represent. The error contains all violations."""
    limit = CORNER_LIMIT[len(conv.kernel_size) + 2]
    broken = [
        f"{name}={value}; an im2col map of {len(conv.kernel_size)} spatial dimensions needs {low} to {high}. {remedy}"
        for i in range(len(conv.kernel_size))
        for name, value, low, high, remedy in _ranges(conv, i, limit)
        if not low <= value <= high
    ]
    if broken:
        raise TensorMapError("\n".join(broken))


def _ranges(conv: Convolution, i: int, limit: int) -> tuple[tuple[str, int, int, int, str], ...]:
    """Return (name, value, least, most, remedy) for each number of dimension `i`.

    Corners are in [-limit, limit).

    Offsets are unsigned, and have the same number of bits as a corner (PTX ISA 9.0, cp.async.bulk.tensor, im2colInfo).
    """
    before, after = conv.padding[i]
    reach, name = conv.reach[i], f"(kernel_size[{i}] - 1) * dilation[{i}]"
    upper = after - reach
    return (
        (f"stride[{i}]", conv.stride[i], 1, MAX_ELEMENT_STRIDE, LOAD_PATCHES),
        (f"padding[{i}], before,", before, 0, limit, PAD_LESS),
        (name, reach, 0, 2 * limit - 1, REACH_LESS),
        (f"padding[{i}], after, - {name}", upper, -limit, limit - 1, REACH_LESS if upper < 0 else PAD_LESS),
    )
