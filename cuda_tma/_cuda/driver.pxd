"""The driver calls of the package, as C function pointers that are found at run time.

This module does not need cuda.h, because its structures are part of the driver's stable ABI. The source of the
structures is cuda.h of CUDA 13.5 (the layout is unchanged since CUDA 11.8).
"""

from libc.stdint cimport uint32_t, uint64_t

from .free_threading cimport flag_acquire

ctypedef int CUresult
ctypedef void* CUcontext
ctypedef void* CUstream
ctypedef void* CUfunction
ctypedef void* CUgraph
ctypedef void* CUgraphNode
ctypedef void* CUgraphExec
ctypedef void* CUuserObject

cdef enum:
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NOT_SUPPORTED = 801

cdef struct LaunchAttribute:  # CUlaunchAttribute contains an id, padded to 8 bytes, and a 64-byte union.
    uint32_t id
    uint32_t padding
    uint32_t value[16]

cdef struct LaunchConfigC:  # The driver calls this structure CUlaunchConfig.
    uint32_t grid_dim[3]
    uint32_t block_dim[3]
    uint32_t shared_mem_bytes
    CUstream stream
    LaunchAttribute* attributes
    uint32_t attribute_count

cdef struct KernelNodeParams:  # The driver calls this structure CUDA_KERNEL_NODE_PARAMS_v2.
    CUfunction function
    uint32_t grid_dim[3]
    uint32_t block_dim[3]
    uint32_t shared_mem_bytes
    void** kernel_params
    void** extra
    CUfunction kernel  # The field `kernel` is a CUkernel if `function` is NULL.
    CUcontext context  # A CUkernel runs in `context`, or in the current context if `context` is NULL.

cdef struct Driver:  # The struct Driver has one pointer for each entry of _driver._ENTRY_POINTS, in that order.
    CUresult (*cuTensorMapEncodeTiled)(
        void*, uint32_t, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*,
        uint32_t, uint32_t, uint32_t, uint32_t) noexcept nogil
    CUresult (*cuTensorMapEncodeIm2col)(
        void*, uint32_t, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*, uint32_t, uint32_t,
        const uint32_t*, uint32_t, uint32_t, uint32_t, uint32_t) noexcept nogil
    CUresult (*cuTensorMapEncodeIm2colWide)(
        void*, uint32_t, uint32_t, void*, const uint64_t*, const uint64_t*, int, int, uint32_t, uint32_t,
        const uint32_t*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t) noexcept nogil
    CUresult (*cuTensorMapReplaceAddress)(void*, void*) noexcept nogil
    CUresult (*cuCtxGetCurrent)(CUcontext*) noexcept nogil
    CUresult (*cuCtxPushCurrent)(CUcontext) noexcept nogil
    CUresult (*cuCtxPopCurrent)(CUcontext*) noexcept nogil
    CUresult (*cuCtxGetDevice)(int*) noexcept nogil
    CUresult (*cuDeviceGetAttribute)(int*, int, int) noexcept nogil
    CUresult (*cuPointerGetAttribute)(void*, int, uint64_t) noexcept nogil
    CUresult (*cuStreamGetCtx)(CUstream, CUcontext*) noexcept nogil
    CUresult (*cuMemcpyHtoDAsync)(uint64_t, const void*, size_t, CUstream) noexcept nogil
    CUresult (*cuMemAlloc)(uint64_t*, size_t) noexcept nogil
    CUresult (*cuMemFree)(uint64_t) noexcept nogil
    CUresult (*cuStreamIsCapturing)(CUstream, int*) noexcept nogil
    CUresult (*cuThreadExchangeStreamCaptureMode)(int*) noexcept nogil
    CUresult (*cuLaunchKernelEx)(const LaunchConfigC*, CUfunction, void**, void**) noexcept nogil
    CUresult (*cuGetErrorName)(CUresult, const char**) noexcept nogil
    CUresult (*cuTensorMapSetAllocationClass)(void*, uint32_t, uint32_t*) noexcept nogil
    CUresult (*cuStreamGetGreenCtx)(CUstream, void**) noexcept nogil
    CUresult (*cuKernelGetParamInfo)(CUfunction, size_t, size_t*, size_t*) noexcept nogil
    CUresult (*cuKernelGetName)(const char**, CUfunction) noexcept nogil
    CUresult (*cuKernelGetFunction)(CUfunction*, CUfunction) noexcept nogil
    CUresult (*cuKernelGetAttribute)(int*, int, CUfunction, int) noexcept nogil
    CUresult (*cuKernelSetAttribute)(int, int, CUfunction, int) noexcept nogil
    CUresult (*cuCtxGetId)(CUcontext, uint64_t*) noexcept nogil
    CUresult (*cuDevicePrimaryCtxGetState)(int, uint32_t*, int*) noexcept nogil
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, int) noexcept nogil
    CUresult (*cuDevicePrimaryCtxRelease)(int) noexcept nogil
    CUresult (*cuGraphAddKernelNode)(
        CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const KernelNodeParams*) noexcept nogil
    CUresult (*cuGraphDestroyNode)(CUgraphNode) noexcept nogil
    CUresult (*cuGraphKernelNodeSetAttribute)(CUgraphNode, int, const void*) noexcept nogil
    CUresult (*cuGraphKernelNodeGetParams)(CUgraphNode, KernelNodeParams*) noexcept nogil
    CUresult (*cuGraphExecKernelNodeSetParams)(CUgraphExec, CUgraphNode, const KernelNodeParams*) noexcept nogil
    CUresult (*cuStreamGetCaptureInfo)(
        CUstream, int*, uint64_t*, CUgraph*, const CUgraphNode**, size_t*) noexcept nogil
    CUresult (*cuUserObjectCreate)(CUuserObject*, void*, void*, uint32_t, uint32_t) noexcept nogil
    CUresult (*cuUserObjectRelease)(CUuserObject, uint32_t) noexcept nogil
    CUresult (*cuGraphRetainUserObject)(CUgraph, CUuserObject, uint32_t, uint32_t) noexcept nogil

cdef Driver driver
cdef bint driver_is_loaded
cdef int load_driver() except -1
cdef str error_name(CUresult result)
cdef object driver_error(CUresult result, str call)


cdef inline int ensure_driver() except -1:
    """Load the driver if it is not yet loaded."""
    return 0 if flag_acquire(&driver_is_loaded) else load_driver()


cdef inline int require_success(CUresult result, str call) except -1:
    """Raise an error for a result of the driver that no argument caused."""
    if result != CUDA_SUCCESS:
        raise driver_error(result, call)
    return 0
