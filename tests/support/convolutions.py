"""Random convolutions, the matrix of the unfolded input, and its im2col loads, for tests on a GPU and without one."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cuda_tma._convolution import Convolution
from cuda_tma._options import TensorMapIm2colOptions

SPAN_BYTES = {"NONE": 128, "32B": 32, "64B": 64, "128B": 128}
DTYPES = ("uint8", "uint16", "uint32", "uint64")


class Load(NamedTuple):
    """An im2col load, with its part of the unfolded matrix, and with the operands of the instruction."""

    # The field contains the first output pixel of the load.
    row: int
    tap: int
    channel: int
    coordinates: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A convolution of a channels-last tensor, and the loads of its input."""

    geometry: Convolution
    # The array has the shape (N, spatial dimensions, C).
    elements: np.ndarray
    channels_per_pixel: int
    pixels_per_column: int
    swizzle: str

    @property
    def options(self):
        return TensorMapIm2colOptions.from_convolution(
            self.geometry, swizzle=self.swizzle, channels_per_pixel=self.channels_per_pixel,
            pixels_per_column=self.pixels_per_column,
        )  # fmt: skip

    @property
    def extents(self):
        return self.elements.shape[1:-1]

    @property
    def rows(self):
        """Return the number of output pixels."""
        return self.elements.shape[0] * int(np.prod(self.geometry.output_extents(self.extents)))

    def loads(self):
        """Return all im2col loads that fill the unfolded matrix, for each column of pixels, filter tap, and chunk of
        channels."""
        taps = [range(size) for size in self.geometry.kernel_size]
        for row in range(0, self.rows, self.pixels_per_column):
            pixel = self.geometry.output_pixel(row, self.extents)
            for tap, place in enumerate(itertools.product(*taps)):
                for channel in range(0, self.elements.shape[-1], self.channels_per_pixel):
                    at = self.geometry.coordinates(pixel, channel)
                    yield Load(row, tap, channel, at, self.geometry.offsets(place))

    def expected(self):
        """Return the unfolded matrix (output pixels, taps, channels), padded with zeros to whole columns and chunks."""
        matrix = unfold(self.elements, self.geometry)
        rows, channels = -matrix.shape[0] % self.pixels_per_column, -matrix.shape[2] % self.channels_per_pixel
        return np.pad(matrix, ((0, rows), (0, 0), (0, channels)))

    def smem_bytes(self):
        """Return the offset in shared memory of each byte of a column's pixels."""
        row_bytes = self.channels_per_pixel * self.elements.itemsize
        span = row_bytes if self.swizzle == "NONE" else SPAN_BYTES[self.swizzle]
        offset = np.arange(self.pixels_per_column)[:, None] * span + np.arange(row_bytes)
        if self.swizzle != "NONE":
            offset ^= ((offset >> 7) & (span // 16 - 1)) << 4
        return offset


def unfold(elements, geometry):
    """Return the operand of a convolution, (output pixels, taps, channels), from a channels-last tensor."""
    dims = len(geometry.kernel_size)
    axes = tuple(range(1, dims + 1))
    windows = sliding_window_view(
        np.pad(elements, ((0, 0), *geometry.padding, (0, 0))), [reach + 1 for reach in geometry.reach], axes
    )
    strided = [slice(None, None, step) for step in geometry.stride]
    dilated = [slice(None, None, step) for step in geometry.dilation]
    # The array has the shape (N, output dimensions, C, taps).
    windows = windows[(slice(None), *strided, slice(None), *dilated)]
    last = np.moveaxis(windows, dims + 1, -1)
    return last.reshape(-1, int(np.prod(geometry.kernel_size)), elements.shape[-1])


# The table contains the largest extent for each number of spatial dimensions.
_LARGEST = {1: 60, 2: 14, 3: 7}
_LARGEST_KERNEL = {1: 7, 2: 4, 3: 3}


def random_geometry(rng, dims):
    """Return extents and a convolution that has at least one output pixel."""

    def each(low, high):
        return tuple(int(n) for n in rng.integers(low, high + 1, dims))

    while True:
        extents, kernel = each(1, _LARGEST[dims]), each(1, _LARGEST_KERNEL[dims])
        stride, dilation, padding = each(1, 4), each(1, 3), each(0, 4)
        if rng.random() < 0.1:
            stride = each(1, 8)
        # The padding before the image differs from the padding after the image.
        if rng.random() < 0.2:
            padding = tuple(zip(padding, each(0, 4), strict=True))
        elif rng.random() < 0.1:
            stride, padding = 1, "same"
        geometry = Convolution(kernel, stride, padding, dilation)
        spans = [sum(pad) + extent for pad, extent in zip(geometry.padding, extents, strict=True)]
        if all(span > reach for span, reach in zip(spans, geometry.reach, strict=True)):
            return extents, geometry


def random_case(rng, dims, loads=60, column_bytes=32 * 1024):
    """Return a random convolution with about `loads` loads, each of at most `column_bytes` bytes of shared memory."""
    extents, geometry = random_geometry(rng, dims)
    dtype, swizzle = np.dtype(str(rng.choice(DTYPES))), str(rng.choice(list(SPAN_BYTES)))
    unit = 16 // dtype.itemsize
    per_pixel = unit * int(rng.integers(1, SPAN_BYTES[swizzle] // 16 + 1))
    channels = unit * int(rng.integers(1, 2 * per_pixel // unit + 1))
    shape = (int(rng.integers(1, 4)), *extents, channels)
    elements = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    most = min(1024, column_bytes // SPAN_BYTES[swizzle])
    rows = shape[0] * int(np.prod(geometry.output_extents(extents)))
    columns = max(1, loads // int(np.prod(geometry.kernel_size)) // -(-channels // per_pixel))
    least = min(most, -(-rows // columns))
    return Case(geometry, elements, per_pixel, int(rng.integers(least, min(most, 2 * least) + 1)), swizzle)
