"""Device memory for maps.

cuda.core allocates the memory in stream order. For a stream that captures a graph, the memory is outside the graph.

An allocation on a stream that captures is a node of the graph. The graph does not free the memory, and cannot then be
launched again (CUDA programming guide, Graph Memory Nodes). cuda.core refuses to allocate on such a stream. A plain
allocation is also refused during a capture, unless the thread selects CU_STREAM_CAPTURE_MODE_RELAXED, in which the
allocation is not captured.
"""

from libc.stdint cimport uint64_t, uintptr_t

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUresult, CUstream, driver, require_success
from .._read.stream cimport known_stream

from cuda.core import Buffer, Stream
from cuda.core import Device as CoreDevice

cdef enum:
    LEGACY_STREAM = 1  # The stream handle 0 means CU_STREAM_LEGACY.
    CAPTURE_MODE_RELAXED = 2


cdef object allocate(object stream, CUcontext context, int device_id, size_t size_bytes):
    """Return a Buffer of cuda.core for work on this stream."""
    cdef CUstream handle = known_stream(stream).handle
    cdef int is_capturing = 0
    require_success(driver.cuStreamIsCapturing(handle, &is_capturing), "cuStreamIsCapturing")
    if is_capturing:
        memory = _allocate_plain(context, size_bytes)
        return Buffer.from_handle(memory.address, size_bytes, owner=memory)
    # The code does not call Device.allocate, which requires a set_current() of cuda.core, because torch may have made
    # the context.
    return CoreDevice(device_id).memory_resource.allocate(size_bytes, stream=_core_stream(stream, <uintptr_t>handle))


cdef object _core_stream(object stream, uintptr_t handle):
    """Return the stream as a Stream of cuda.core.

    A foreign stream must outlive its allocations.
    """
    own = stream if isinstance(stream, Stream) else getattr(stream, "stream", None)  # A GraphBuilder contains a stream.
    return own if isinstance(own, Stream) else Stream.from_handle(handle or LEGACY_STREAM)


cdef class _PlainMemory:
    """Memory of cuMemAlloc, which waits for the device before the memory is freed."""

    cdef readonly uint64_t address
    cdef CUcontext context

    def __dealloc__(self):
        if self.address:
            with nogil:  # cuMemFree waits for the device, whose work may wait for a host function in Python.
                _outside_of_captures(self.context, &self.address, 0)


cdef _PlainMemory _allocate_plain(CUcontext context, size_t size_bytes):
    cdef _PlainMemory memory = _PlainMemory.__new__(_PlainMemory)
    cdef CUresult result
    memory.context = context
    with nogil:  # The allocation may wait for a host function in Python, as the release of the memory may.
        result = _outside_of_captures(context, &memory.address, size_bytes)
    require_success(result, "cuMemAlloc")
    return memory


cdef CUresult _outside_of_captures(CUcontext context, uint64_t* address, size_t size_bytes) noexcept nogil:
    """Allocate `size_bytes` in a context, or free the memory if the size is 0.

    The function also works during a capture.
    """
    cdef int mode = CAPTURE_MODE_RELAXED
    cdef CUresult result = driver.cuCtxPushCurrent(context)
    if result != CUDA_SUCCESS:
        return result
    result = driver.cuThreadExchangeStreamCaptureMode(&mode)
    if result == CUDA_SUCCESS:
        result = driver.cuMemAlloc(address, size_bytes) if size_bytes else driver.cuMemFree(address[0])
        driver.cuThreadExchangeStreamCaptureMode(&mode)
    driver.cuCtxPopCurrent(&context)
    return result
