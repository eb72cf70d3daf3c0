"""Reductions of shared memory into global memory by ``cp.reduce.async.bulk.tensor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._errors import TensorMapFault
from .._given import entry
from ..enums import TensorMapDataType as T
from ..params import Params
from ._memory import Window
from ._store import change, stored_rows, visit_stored

__all__ = ["REDUCTIONS", "reduce"]

# An _Operation computes the new values in global memory from the old values there and the values from shared memory.
_Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, 0, old + 1)


def _decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - 1)


def _nan_is_canonical(result: np.ndarray) -> np.ndarray:
    """Set all bits of each NaN except its sign bit."""
    bits = result.view(f"<u{result.itemsize}")
    return np.where(np.isnan(result), bits.dtype.type(np.iinfo(bits.dtype).max >> 1), bits).view(result.dtype)


def _add_float(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return _nan_is_canonical(old + new)


# The difference infinity - infinity is CUDART_NAN (CUDA 13.0, math_constants.h).
_FLOAT64_NAN = np.uint64(0xFFF8_0000_0000_0000)


def _add_float64(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return a sum of float64.

    If one operand is a NaN, the result is this NaN, even if it is a signaling NaN. If both operands are NaNs, the NaN
    from shared memory is returned.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = old.view("<f8") + new.view("<f8")
        nans = [np.isnan(x.view("<f8")) for x in (new, old)]
    return np.select([*nans, np.isnan(total)], [new, old, _FLOAT64_NAN], total.view("<u8"))


def _flushed(values: np.ndarray) -> np.ndarray:
    """Flush subnormal values to zeros of the same sign."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def _add_float_ftz(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return _flushed(_add_float(_flushed(old), _flushed(new))).astype(np.float32)


def _bfloat16_as_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _bfloat16_from_float(values: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16, ties to even.

    The intermediate rounding to float32 does not change the sum of two bfloat16 values.
    """
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def _add_bfloat16(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return _bfloat16_from_float(_bfloat16_as_float(old) + _bfloat16_as_float(new))


def _pick_float16(infinity: int, pick: Callable) -> _Operation:
    """Return min or max of 16-bit floats by their bit patterns.

    The value -0 is less than +0, and a number has precedence over a NaN.
    """

    def operation(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        keys = [np.where(x >> 15, 0xFFFF - x.astype(np.int32), 0x8000 + x.astype(np.int32)) for x in (old, new)]
        is_nan = [(x & 0x7FFF) > infinity for x in (old, new)]
        chosen = np.where(pick(*keys) == keys[0], old, new)
        chosen = np.where(is_nan[0], new, np.where(is_nan[1], old, chosen))
        return np.where(is_nan[0] & is_nan[1], np.uint16(0x7FFF), chosen).astype(np.uint16)

    return operation


_BITS = {T.UINT32: "<u4", T.INT32: "<u4", T.UINT64: "<u8"}
_ORDERED = {T.UINT32: "<u4", T.INT32: "<i4", T.UINT64: "<u8", T.INT64: "<i8"}


def _each(types: dict[T, str], operation: _Operation) -> dict[T, tuple[str, _Operation]]:
    return {data_type: (dtype, operation) for data_type, dtype in types.items()}


_FLOAT16_INFINITY, _BFLOAT16_INFINITY = 0x7C00, 0x7F80

# REDUCTIONS maps an operation and a data type to (dtype of the computation, function). All pairs were executed on
# hardware, and each of the 71 pairs that REDUCTIONS omits caused a fault. Hardware adds TFLOAT32 values as FLOAT32
# values, and does not round the sums to TFLOAT32. TFLOAT32_FTZ flushes subnormal values to zero, as FLOAT32_FTZ does.
# These results were observed with driver 580 on sm_90.
REDUCTIONS: dict[str, dict[T, tuple[str, _Operation]]] = {
    "add": {
        **_each(_BITS, np.add),
        T.FLOAT16: ("<f2", _add_float),
        T.BFLOAT16: ("<u2", _add_bfloat16),
        T.FLOAT32: ("<f4", _add_float),
        T.FLOAT64: ("<u8", _add_float64),
        T.FLOAT32_FTZ: ("<f4", _add_float_ftz),
        T.TFLOAT32: ("<f4", _add_float),
        T.TFLOAT32_FTZ: ("<f4", _add_float_ftz),
    },
    "min": {
        **_each(_ORDERED, np.minimum),
        T.FLOAT16: ("<u2", _pick_float16(_FLOAT16_INFINITY, np.minimum)),
        T.BFLOAT16: ("<u2", _pick_float16(_BFLOAT16_INFINITY, np.minimum)),
    },
    "max": {
        **_each(_ORDERED, np.maximum),
        T.FLOAT16: ("<u2", _pick_float16(_FLOAT16_INFINITY, np.maximum)),
        T.BFLOAT16: ("<u2", _pick_float16(_BFLOAT16_INFINITY, np.maximum)),
    },
    "inc": {T.UINT32: ("<u4", _increment)},
    "dec": {T.UINT32: ("<u4", _decrement)},
    "and": _each(_BITS, np.bitwise_and),
    "or": _each(_BITS, np.bitwise_or),
    "xor": _each(_BITS, np.bitwise_xor),
}


def reduce(
    params: Params,
    memory: np.ndarray,
    smem: np.ndarray,
    coordinates: Sequence[int],
    op: str,
    base_address: int = 0,
    *,
    check: bool = True,
) -> int:
    """Emulate one TMA reduction, which combines shared memory with `memory`, in place.

    Parameters
    ----------
    params, memory, smem, coordinates, base_address, check
        The arguments of :func:`cuda_tma.emulate.store`.
    op : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}
        The operation, whose data types are the keys of ``REDUCTIONS[op]``. ``inc`` and ``dec`` count in the range from
        0 to the value in shared memory.

    Returns
    -------
    int
        The number of combined bytes.

    Raises
    ------
    TensorMapError
        If the operation does not exist. Otherwise as in :func:`cuda_tma.emulate.store`.
    TensorMapFault
        As in :func:`cuda_tma.emulate.store`. Also if the hardware has no such reduction for the data type.

    Notes
    -----
    Additions of floating-point values round to nearest even. Types of 16 and 32 bits have one NaN (all bits but the
    sign are set), which is also the result of infinity - infinity. The NaN was recorded for BFLOAT16, TFLOAT32 and its
    FTZ type, and is assumed for the other types. FLOAT64 returns the NaN of an operand, with its payload and signaling
    bit unchanged. Only the FTZ types flush subnormal operands and sums to zeros of the same sign. For ``min`` and
    ``max``, a number has precedence over a NaN, and -0 is less than +0. Elements outside the tensor do not change,
    except elements after a row's end in its last 16 bytes, as in :func:`cuda_tma.emulate.store` (all observed: driver
    580, sm_90). With two NaNs of FLOAT64, the result is the NaN from shared memory, as in the two recordings with such
    a pair. The FLOAT64 value of infinity - infinity was not recorded.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> params = TiledParams(data_type=T.INT32, global_address=0, global_dim=(4,), global_strides=(), box_dim=(4,),
    ...                      element_strides=(1,))
    >>> memory = np.array([1, -2, 3, -4], np.int32)
    >>> reduce(params, memory.view(np.uint8), np.zeros(4, np.int32).view(np.uint8), (0,), "max")
    16
    >>> memory.tolist()
    [1, 0, 3, 0]
    """
    layout = stored_rows(params, check)
    dtype, operation = _reduction(op, params.data_type)

    def combined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        result = operation(old.view(dtype), np.ascontiguousarray(new).view(dtype))
        return np.ascontiguousarray(result, dtype).view(np.uint8)

    def write(window: Window, values: np.ndarray) -> None:
        if not window.overlap():
            window.write(combined(window.read(), values))
            return
        # The loop combines one run at a time, because two runs may write elements of the same byte.
        for number, run in enumerate(values):
            place = window.alone(number)
            place[...] = combined(place.copy(), run)

    return change(params, layout, memory, smem, visit_stored(params, coordinates), base_address, write)


def _reduction(op: str, data_type: int) -> tuple[str, _Operation]:
    of_types = entry("op", op, REDUCTIONS)
    if data_type not in of_types:
        legal = ", ".join(t.short_name for t in of_types)
        raise TensorMapFault(
            f"op={op!r} is not a reduction of data_type {T(data_type).short_name}; use one of {legal}",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        )
    return of_types[T(data_type)]
