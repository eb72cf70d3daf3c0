"""A fake driver with one context in host memory, for the tests of the watchdog."""

from __future__ import annotations

import ctypes

import numpy as np
from cuda.bindings import driver as real

from cuda_tma._watchdog import memory
from cuda_tma.barrier import Barrier, encode_barrier

OK, BUSY = real.CUresult.CUDA_SUCCESS, real.CUresult.CUDA_ERROR_NOT_READY
WORD = encode_barrier(Barrier(0, 1, 2, 0))
STRUCT_BYTES = memory.NOTES_OFFSET + memory.NOTES * memory.NOTE.itemsize


class FakeDriver:
    """A fake driver with one context that uses host memory. Queries of streams return the values in `answers` in order,
    and then success."""

    CUresult, CUstream_flags, CUstream, CUkernel = real.CUresult, real.CUstream_flags, real.CUstream, real.CUkernel
    CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP = 1, 2

    def __init__(self):
        self.device = ctypes.create_string_buffer(STRUCT_BYTES)
        self.pinned, self.answers, self.waited = [], [], []
        self.found = OK
        self.context_ids = {1: 11}

    @property
    def notes(self):
        return np.frombuffer(self.device, np.uint8)[memory.NOTES_OFFSET :].view(memory.NOTE)

    @property
    def head(self):
        return np.frombuffer(self.device, np.uint64)[:3]

    def cuMemHostAlloc(self, size, flags):
        self.pinned.append(ctypes.create_string_buffer(b"\xff" * size, size))
        return OK, ctypes.addressof(self.pinned[-1])

    def cuStreamCreate(self, flags):
        return OK, 77

    def cuKernelGetLibrary(self, kernel):
        return OK, 5

    def cuLibraryGetGlobal(self, library, name):
        assert name == b"cuda_tma_watchdog"
        return self.found, ctypes.addressof(self.device), STRUCT_BYTES

    def cuCtxGetCurrent(self):
        return OK, real.CUcontext(1)

    def cuStreamGetCtx(self, stream):
        return OK, real.CUcontext(1)

    def cuCtxGetId(self, context):
        return OK, self.context_ids[int(context)]

    def cuMemcpyHtoDAsync(self, to, source, size, stream):
        ctypes.memmove(to, source, size)
        return (OK,)

    def cuMemcpyDtoHAsync(self, to, source, size, stream):
        if source < 1000:
            return (real.CUresult.CUDA_ERROR_INVALID_VALUE,)
        ctypes.memmove(to, source, size)
        return (OK,)

    def cuStreamSynchronize(self, stream):
        self.waited.append(int(stream))
        return (OK,)

    def cuStreamQuery(self, stream):
        return (self.answers.pop(0) if self.answers else OK,)


class FakeKernel:
    handle = 9
