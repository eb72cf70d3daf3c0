"""The allocations of the GPU according to the driver, with their addresses and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver

__all__ = ["allocation", "copied", "synchronize", "variable_address"]

_MOST_ADDRESS = 1 << 57  # All addresses are below 2**57, because cuda.bindings accepts no larger address.
_ATTRIBUTE = driver.CUpointer_attribute


def allocation(address: int) -> tuple[int, int] | None:
    """Return the start and the size of the allocation that contains an address; None outside all allocations."""
    if not 0 < address < _MOST_ADDRESS:
        return None
    error, base, size = driver.cuMemGetAddressRange(address)
    # An error occurs if the memory is page-locked host memory, for example.
    if error != driver.CUresult.CUDA_SUCCESS:
        error, base = driver.cuPointerGetAttribute(_ATTRIBUTE.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address)
        if error == driver.CUresult.CUDA_SUCCESS:
            error, size = driver.cuPointerGetAttribute(_ATTRIBUTE.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address)
    if error != driver.CUresult.CUDA_SUCCESS or not int(size):
        return None
    return int(base), int(size)


def copied(address: int, size: int) -> np.ndarray:
    """Return a copy of `size` bytes at an address of the GPU."""
    data = np.empty(size, np.uint8)
    _require(driver.cuMemcpyDtoH(data.ctypes.data, address, size))
    return data


def synchronize() -> None:
    """Wait until the GPU has completed all its work."""
    _require(driver.cuCtxSynchronize())


def variable_address(kernel: Any, name: str) -> int | None:
    """Return the address of a module variable on the GPU; None if the driver does not find the variable."""
    error, library = driver.cuKernelGetLibrary(driver.CUkernel(int(kernel.handle)))
    if error != driver.CUresult.CUDA_SUCCESS:
        return None
    error, address, _ = driver.cuLibraryGetGlobal(library, name.encode())
    return int(address) if error == driver.CUresult.CUDA_SUCCESS else None


def _require(result: tuple) -> None:
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver returned {result[0].name}; check whether an earlier launch failed")
