"""A hook for cuda.pathfinder, which returns the driver library in place of NVRTC and nvJitLink. The driver library has
the entries of both.

This module imports only the standard library. An import of cuda_tma would import cuda.core, which imports
cuda.pathfinder.
"""

import ctypes
from dataclasses import replace

DRIVER = "libcuda.so.1"


def put_in_front(pathfinder):
    """Make cuda.pathfinder load the driver library in place of NVRTC and nvJitLink. The driver library calls both."""
    load = pathfinder.load_nvidia_dynamic_lib

    def load_nvidia_dynamic_lib(libname):
        if libname not in ("nvrtc", "nvJitLink"):
            return load(libname)
        # The driver library is loaded first, because cuda.bindings uses the first global symbol of each name.
        library = ctypes.CDLL(DRIVER, ctypes.RTLD_GLOBAL)
        loaded = load(libname)
        getattr(library, f"cuda_tma_{libname}")(ctypes.c_void_p(loaded._handle_uint))
        return replace(loaded, _handle_uint=library._handle)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib
