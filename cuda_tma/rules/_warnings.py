"""The warnings of ``check(params, warnings=True)`` about maps that the driver accepts, in a table like RULES."""

from __future__ import annotations

from dataclasses import replace

from .._errors import TensorMapError
from .._limits import MAX_DIM, MAX_DOCUMENTED_DIM, MAX_SMEM_BYTES, MAX_SMEM_BYTES_OF_MAJOR, TMA_EXTENDED_SINCE
from .._swizzle_pattern import SPAN_BYTES
from ..codec._fields import BEYOND_PARAMS, SWIZZLE_REPEAT_BYTES, TRANSFER_BYTES
from ..enums import TensorMapAllocationClass as A
from ..enums import TensorMapInterleave as I
from ..enums import TensorMapSwizzle as S
from ..smem import smem_bytes, tx_bytes
from ..smem._layout import bytes_along, tensor_bytes
from ._find import Finding, Findings, TensorMap
from ._rule import API, OBSERVED, PIXELS, TILED, UNVERIFIED, Rule

__all__ = ["WARNINGS"]

# With CU_TENSOR_MAP_ALLOC_CLASS_LARGE, a load may access addresses up to 128 KiB out of bounds.
_LARGE_CLASS_BYTES = 128 * 1024


def _has_rows(m: TensorMap) -> bool:
    """Return whether the size of dimension 0 in bytes is known.

    If the size is unknown, another rule reports the reason.
    """
    return bool(m.p.global_dim) and m.bits > 0 and m.p.interleave in range(len(I))


def _documented_dim(m: TensorMap) -> Findings:
    wrong = [(i, d) for i, d in enumerate(m.p.global_dim) if MAX_DOCUMENTED_DIM < d <= MAX_DIM]
    return [Finding(i, d, "at most 2^31, as CUDA 13.5 documents", MAX_DOCUMENTED_DIM) for i, d in wrong]


def _small_tensor(m: TensorMap) -> Findings:
    if m.compute_capability < TMA_EXTENDED_SINCE or not _has_rows(m):
        return ()
    extent = tensor_bytes(m.p)
    if extent >= _LARGE_CLASS_BYTES:
        return ()
    need = (
        f"in an allocation of {_LARGE_CLASS_BYTES} bytes or more (the tensor ends after {extent}), or a load may fault"
    )
    large = m.p.allocation_class == A.LARGE
    fix = "Use the SMALL allocation class" if large else "Have the driver set SMALL (CUDA 13.5; earlier ones choose)"
    return (Finding(None, m.p.global_address, need, fix=fix + ", or a larger allocation."),)


def _store_row(m: TensorMap) -> Findings:
    row_bits = m.p.global_dim[0] * m.bits if m.p.global_dim else 0
    if m.p.interleave or row_bits % 128 == 0:
        return ()
    need = "a whole number of 16 bytes for stores and reductions: they also overwrite the bytes after a row's end"
    return (Finding(0, m.p.global_dim[0], need),)


def _narrow_row(m: TensorMap) -> Findings:
    row = bytes_along(m.p, m.p.global_dim[0]) if _has_rows(m) else 16
    if row >= 16:
        return ()
    return (Finding(0, m.p.global_dim[0], f"16 bytes or more: a row is {row}, and the rest is fill"),)


def _overlap(m: TensorMap) -> Findings:
    """Find overlaps of a map's dimensions.

    In ascending order of strides, each dimension must begin after the end of the dimensions with smaller strides.
    """
    if not _has_rows(m):
        return ()
    end, found = bytes_along(m.p, m.p.global_dim[0]), []
    outer = zip(m.p.global_strides, m.p.global_dim[1:], range(len(m.p.global_strides)), strict=False)
    for stride, dim, i in sorted(outer):
        if dim > 1 and stride < end:
            found.append(Finding(i, stride, f"at least {end}, or indices share memory and stores race"))
        end += (dim - 1) * stride
    return found


def _box_beyond_tensor(m: TensorMap) -> Findings:
    return [
        Finding(i, box, f"at most the tensor's extent, {dim}: the rest of the box is fill")
        for i, (box, dim) in enumerate(zip(m.p.box_dim, m.p.global_dim, strict=False))
        if box > dim
    ]


def _wide_span(m: TensorMap) -> Findings:
    span = SPAN_BYTES.get(m.p.swizzle, 0)
    if m.p.interleave or m.bits < 8 or m.inner_bytes >= span:
        return ()
    need = f"{span * 8 // m.bits}: a row of {m.inner_bytes} bytes takes the whole span of {span} bytes in shared memory"
    return (Finding(0 if m.tiled else None, m.inner, need),)


def _transfer_size(m: TensorMap) -> Findings:
    steps = m.p.element_strides
    try:
        delivered, whole = tx_bytes(m.p), tx_bytes(replace(m.p, element_strides=(1,) * len(steps)))
    except TensorMapError:  # The map describes no valid box, and another rule reports the reason.
        return ()
    if delivered == whole:
        return ()
    need = f"accounted for in expect_tx: a load delivers {delivered} bytes, not the {whole} of the whole box"
    return (Finding(None, steps, need),)


def _ignored_element_stride(m: TensorMap) -> Findings:
    steps = m.p.element_strides
    if m.p.interleave or not steps or steps[0] == 1:
        return ()
    return (Finding(0, steps[0], "1 without an interleaved layout: a load ignores it", 1),)


def _interleave_swizzle(m: TensorMap) -> Findings:
    if m.p.interleave != I.INTERLEAVE_32B or m.p.swizzle == S.SWIZZLE_32B:
        return ()
    return (Finding(None, m.p.swizzle, "1 (32B) with INTERLEAVE_32B", int(S.SWIZZLE_32B)),)


def _smem(m: TensorMap) -> Findings:
    most = MAX_SMEM_BYTES_OF_MAJOR.get(m.compute_capability[0], MAX_SMEM_BYTES)
    try:
        size = smem_bytes(m.p)
    except TensorMapError:  # The map describes no valid box, and another rule reports the reason.
        return ()
    if size <= most:
        return ()
    value, fix = (m.p.box_dim, "Shrink the box.") if m.tiled else (m.p.pixels_per_column, "Take fewer pixels.")
    return (
        Finding(None, value, f"within the {most} bytes of shared memory that a block has: it takes {size}", fix=fix),
    )


def _unexplained(m: TensorMap) -> Findings:
    found = []
    for word, mask in m.p.unexplained:
        effect = "their effect is unknown" if mask << 32 * word & ~_UNREAD else "no load reads them"
        need = f"none: bits {mask:#x} of word {word} differ from the driver's encoding, and {effect}"
        found.append(Finding(None, (word, mask), need, fix="Encode the params without them."))
    return found


_UNREAD = sum(field.mask for field in (TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES, *BEYOND_PARAMS))

_SMEM = "CUDA C++ Programming Guide 13.0, technical specifications per compute capability"

# fmt: off
WARNINGS = (
    Rule("small_tensor", "global_address",
         "from compute capability 10.0 on: its memory is 128 KiB or more, unless the driver set the class SMALL",
         "CUDA 13.5 driver API, cuTensorMapSetAllocationClass" + UNVERIFIED, _small_tensor,
         severity="warning"),
    Rule("global_dim_documented", "global_dim",
         "each at most 2^31", API + "globalDim", _documented_dim, severity="warning"),
    Rule("global_dim_store", "global_dim",
         "the innermost is a whole number of 16 bytes without an interleaved layout, if the map is used for stores or "
         "reductions: these write whole chunks of 16 bytes, past the end of a row", OBSERVED, _store_row,
         severity="warning"),
    Rule("global_dim_narrow", "global_dim",
         "the innermost is 16 bytes or more", OBSERVED, _narrow_row, severity="warning"),
    Rule("global_strides_overlap", "global_strides",
         "no two indices share memory (a stride of 0 repeats a row on purpose)", API + "globalStrides", _overlap,
         severity="warning"),
    Rule("box_dim_beyond_tensor", "box_dim",
         "each at most the tensor's extent", OBSERVED, _box_beyond_tensor, TILED, "warning"),
    Rule("box_dim_narrow", "box_dim",
         "the innermost fills the swizzle span, or shared memory has gaps", OBSERVED, _wide_span, TILED, "warning"),
    Rule("box_dim_smem", "box_dim",
         "the box, with the gaps between its rows, fits into the shared memory of a block: 227 KiB, 99 KiB on 12.x",
         _SMEM, _smem, TILED, "warning"),
    Rule("channels_per_pixel_narrow", "channels_per_pixel",
         "fills the swizzle span, or shared memory has gaps", OBSERVED, _wide_span, PIXELS, "warning"),
    Rule("pixels_per_column_smem", "pixels_per_column",
         "the column, with the gaps between its pixels, fits into the shared memory of a block", _SMEM, _smem, PIXELS,
         "warning"),
    Rule("element_strides_transfer", "element_strides",
         "a load delivers ceil(box_dim / element_strides) elements: pass that product to expect_tx", OBSERVED,
         _transfer_size, TILED, "warning"),
    Rule("element_strides_ignored", "element_strides",
         "the innermost is 1 without an interleaved layout", API + "elementStrides", _ignored_element_stride,
         severity="warning"),
    Rule("interleave_swizzle", "swizzle",
         "32B with INTERLEAVE_32B", API + "swizzle; the driver accepts others (" + OBSERVED + ")",
         _interleave_swizzle, severity="warning"),
    Rule("unexplained", "unexplained",
         "empty: the bytes contain only bits that the driver was seen to write", OBSERVED, _unexplained,
         severity="warning"),
)
# fmt: on
