"""Allocations of the GPU's memory: whole, as the driver knows them, copied to this machine."""

from __future__ import annotations

import numpy as np
from cuda.bindings import driver

__all__ = ["Allocations"]


class Allocations:
    """Those that some addresses lie in."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(self._sizes.values())

    def add(self, address: int) -> None:
        """Note the allocation that an address lies in; one that lies in none is passed over."""
        error, base, size = driver.cuMemGetAddressRange(address)
        if error == driver.CUresult.CUDA_SUCCESS:
            self._sizes[int(base)] = int(size)

    def read(self, address: int) -> bytes:
        """What an allocation that was added holds from an address on."""
        base = max((base for base in self._sizes if base <= address), default=address)
        return _copy(address, max(0, base + self._sizes.get(base, 0) - address)).tobytes()

    def copies(self) -> dict[int, np.ndarray]:
        """Every allocation as it is once the GPU has done all that it was given, by where it begins."""
        _require(driver.cuCtxSynchronize())
        return {base: _copy(base, size) for base, size in self._sizes.items()}


def _copy(address: int, size: int) -> np.ndarray:
    data = np.empty(size, np.uint8)
    if size:
        _require(driver.cuMemcpyDtoH(data.ctypes.data, address, size))
    return data


def _require(result: tuple) -> None:
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {result[0].name}: an earlier launch may have failed")
