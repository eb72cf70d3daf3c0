"""The hub: what a tensor map says, in the driver's names, order and units.

Every array is in driver order: index 0 is the innermost dimension. Strides are bytes, and there are ``rank - 1`` of
them, since the innermost one is an element. Values are plain ints, unchecked: :func:`cuda_tma.check` judges them,
:func:`cuda_tma.encode` writes them, :func:`cuda_tma.decode` returns them.

Source of names and order: CUDA driver API, ``cuTensorMapEncodeTiled``, ``...Im2col`` and ``...Im2colWide``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Im2colParams", "Im2colWideParams", "Params", "TiledParams"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What the three modes have in common.

    Attributes
    ----------
    data_type : int
        A ``TensorMapDataType`` value.
    global_address : int
        Address of the first element in global memory.
    global_dim : tuple of int
        Extents in elements, innermost first; its length is the rank.
    global_strides : tuple of int
        Bytes from one index to the next of dimensions 1, 2, ...; ``rank - 1`` values.
    element_strides : tuple of int
        Steps in elements between the elements that a load visits, for each dimension.
    interleave, swizzle, l2_promotion, oob_fill : int
        Values of the enums of those names.
    allocation_class : int
        A ``TensorMapAllocationClass`` value: 1 (SMALL) or 2 (LARGE), as ``cuTensorMapSetAllocationClass`` sets it after
        encoding. A map cannot hold 0 (AUTO), which is only asked for. Documented, not verified on hardware.
    unexplained : tuple of (int, int)
        (word index, XOR mask) of the 32-bit words in which decoded bytes differ from what these parameters encode to;
        empty for anything that the driver made.
    """

    data_type: int
    global_address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 0
    oob_fill: int = 0
    allocation_class: int = 1
    unexplained: tuple[tuple[int, int], ...] = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.global_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledParams(Params):
    """Parameters of ``cuTensorMapEncodeTiled``: a load delivers a box.

    Attributes
    ----------
    box_dim : tuple of int
        Extents of the box in elements of the tensor, innermost first.
    """

    box_dim: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colParams(Params):
    """Parameters of ``cuTensorMapEncodeIm2col``: a load delivers pixels in convolution order.

    Attributes
    ----------
    pixel_box_lower_corner, pixel_box_upper_corner : tuple of int
        Corners of the box of pixels, relative to the tensor's first and last pixel; ``rank - 2`` values
        (W, H, D: innermost spatial dimension first).
    channels_per_pixel : int
        Elements of dimension 0 delivered for each pixel.
    pixels_per_column : int
        Pixels delivered by one load.
    """

    pixel_box_lower_corner: tuple[int, ...]
    pixel_box_upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colWideParams(Params):
    """Parameters of ``cuTensorMapEncodeIm2colWide``: im2col along W alone (compute capability 10 and later).

    Attributes
    ----------
    pixel_box_lower_corner_width, pixel_box_upper_corner_width : int
        The box of pixels along W.
    channels_per_pixel, pixels_per_column : int
        As in :class:`Im2colParams`.
    mode : int
        A ``TensorMapIm2ColWideMode`` value.
    """

    pixel_box_lower_corner_width: int
    pixel_box_upper_corner_width: int
    channels_per_pixel: int
    pixels_per_column: int
    mode: int = 0
