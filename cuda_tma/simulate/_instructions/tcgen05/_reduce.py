"""The instruction ``tcgen05.ld.red``, which reduces the loaded registers of each thread (PTX ISA, "tcgen05.ld")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._warps.binder import Binder

__all__ = ["Reduce", "reducing"]

Rows = np.ndarray | slice
# A Reduce function takes an array of all registers, uint32 [register, lane], and the lanes of a warp.
Reduce = Callable[[np.ndarray, slice], None]
_TYPES = {"f32": np.float32, "u32": np.uint32, "s32": np.int32}
_OF_NUMBERS = {"min": np.fmin, "max": np.fmax}
_OF_NANS = {"min": np.minimum, "max": np.maximum}


def reducing(binder: Binder, rows: Rows, result: Rows) -> Reduce:
    """Return a function that reduces the registers of a load to their minimum or maximum."""
    words = binder.instruction.opcode
    operation = next((word for word in words if word in _OF_NUMBERS), None)
    dtype = next((_TYPES[word] for word in words if word in _TYPES), None)
    if operation is None or dtype is None or "pack::16b" in words:
        raise binder.unsupported("of this reduction")
    ufunc = (_OF_NANS if "NaN" in words else _OF_NUMBERS)[operation]

    def reduce(registers: np.ndarray, lanes: slice) -> None:
        values = registers[rows, lanes].view(dtype)
        values = np.abs(values) if "abs" in words else values
        registers[result, lanes] = ufunc.reduce(values, axis=0).view(np.uint32)

    return reduce
