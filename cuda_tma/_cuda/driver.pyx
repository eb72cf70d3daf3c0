"""The search for the driver's entry points, which runs once, at first use.

``cuda.bindings`` loads the driver and looks up its symbols, and the package keeps plain C pointers. The package
therefore does not link against libcuda, does not need cuda.h, and can be imported without a driver.
"""

from libc.stdint cimport uintptr_t

from .free_threading cimport flag_release

from .._cuda_errors import explain_error
from .core import CUDAError

# Each entry point has the CUDA version of its signature, in the order of struct Driver. An older driver lacks the
# optional entry points. Descriptors need driver 525 (CUDA 12.0), and launches need driver 550 (CUDA 12.4).
_ENTRY_POINTS = {
    "cuTensorMapEncodeTiled": 12000,
    "cuTensorMapEncodeIm2col": 12000,
    "cuTensorMapEncodeIm2colWide": 12080,
    "cuTensorMapReplaceAddress": 12000,
    "cuCtxGetCurrent": 4000,
    "cuCtxPushCurrent": 4000,
    "cuCtxPopCurrent": 4000,
    "cuCtxGetDevice": 2000,
    "cuDeviceGetAttribute": 2000,
    "cuPointerGetAttribute": 4000,
    "cuStreamGetCtx": 9020,
    "cuMemcpyHtoDAsync": 3020,
    "cuMemAlloc": 3020,
    "cuMemFree": 3020,
    "cuStreamIsCapturing": 10000,
    "cuThreadExchangeStreamCaptureMode": 10010,
    "cuLaunchKernelEx": 11060,
    "cuGetErrorName": 6000,
    "cuTensorMapSetAllocationClass": 13050,
    "cuStreamGetGreenCtx": 12040,
    "cuKernelGetParamInfo": 12040,
    "cuKernelGetName": 12030,
    "cuKernelGetFunction": 12000,
    "cuKernelGetAttribute": 12000,
    "cuKernelSetAttribute": 12000,
    "cuCtxGetId": 12000,
    "cuDevicePrimaryCtxGetState": 7000,
    "cuDevicePrimaryCtxRetain": 7000,
    "cuDevicePrimaryCtxRelease": 11000,
    "cuGraphAddKernelNode": 12000,
    "cuGraphDestroyNode": 10000,
    "cuGraphKernelNodeSetAttribute": 11000,
    "cuGraphKernelNodeGetParams": 12000,
    "cuGraphExecKernelNodeSetParams": 12000,
    "cuStreamGetCaptureInfo": 11030,
    "cuUserObjectCreate": 11030,
    "cuUserObjectRelease": 11030,
    "cuGraphRetainUserObject": 11030,
}
_OPTIONAL = (
    "cuTensorMapEncodeIm2colWide", "cuTensorMapSetAllocationClass", "cuStreamGetGreenCtx", "cuKernelGetParamInfo",
    "cuKernelGetName", "cuKernelGetFunction", "cuKernelGetAttribute", "cuKernelSetAttribute", "cuCtxGetId")

cdef bint driver_is_loaded = False


def install(addresses):
    """Set the entry points from a dict that maps names to addresses.

    Tests use this function to install a substitute driver. A missing name becomes a null pointer.
    """
    global driver_is_loaded
    assert sizeof(Driver) == len(_ENTRY_POINTS) * sizeof(uintptr_t)
    for index, name in enumerate(_ENTRY_POINTS):
        (<uintptr_t*>&driver)[index] = addresses.get(name, 0)
    # The flag is set last, and threads that search at the same time find equal pointers.
    flag_release(&driver_is_loaded, True)


def snapshot():
    """Return the present entry points for :func:`restore`, or None if no entry points were set."""
    if not driver_is_loaded:
        return None
    return {name: (<uintptr_t*>&driver)[index] for index, name in enumerate(_ENTRY_POINTS)}


def restore(addresses):
    """Restore the entry points that :func:`snapshot` returned."""
    global driver_is_loaded
    install(addresses or {})
    driver_is_loaded = addresses is not None


cdef int load_driver() except -1:
    install(_find_entry_points())
    return 0


def require_driver():
    """Load the driver if it is not yet loaded. Raise an error if the driver is absent."""
    ensure_driver()


def _find_entry_points():
    from cuda.bindings import driver as cuda

    addresses = {}
    for name, version in _ENTRY_POINTS.items():
        try:
            result, address, _ = cuda.cuGetProcAddress(name.encode(), version, 0)
        except Exception as error:  # Versions 12.9 and 13.x of cuda.bindings raise different errors.
            raise RuntimeError(
                "no NVIDIA driver was found, and making or launching a tensor map needs one "
                f"(looking up {name}: {error}). Remedy: without a GPU, cuda_tma.simulate.Device() runs kernels, and "
                "cuda_tma.check, encode, decode, diff and emulate need no driver"
            ) from error
        if result != cuda.CUresult.CUDA_SUCCESS or not address:
            if name in _OPTIONAL:
                continue
            raise RuntimeError(f"this NVIDIA driver has no {name} of CUDA {version // 1000}.{version % 1000 // 10}: "
                               "tensor maps need driver 525 (CUDA 12.0) or later")
        addresses[name] = address
    return addresses


cdef str error_name(CUresult result):
    """Return the driver's name of an error, such as CUDA_ERROR_INVALID_VALUE."""
    cdef const char* name = NULL
    if driver.cuGetErrorName == NULL or driver.cuGetErrorName(result, &name) != CUDA_SUCCESS or name == NULL:
        return f"CUDA error {result}"
    return name.decode()


cdef object driver_error(CUresult result, str call):
    return CUDAError(f"{call} failed with {error_name(result)}{explain_error(result)}")
