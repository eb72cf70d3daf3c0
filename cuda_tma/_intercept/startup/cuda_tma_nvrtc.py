"""NVRTC and nvJitLink of cuda.bindings: cuda.pathfinder returns the driver library, which has their entries.

cuda.core imports cuda.pathfinder while it is imported itself, and cuda_tma imports cuda.core: this module has only the
standard library.
"""

import ctypes
from dataclasses import replace

DRIVER = "libcuda.so.1"


def put_in_front(pathfinder):
    """Let cuda.pathfinder load the driver library in the place of NVRTC and nvJitLink; it calls them."""
    load = pathfinder.load_nvidia_dynamic_lib

    def load_nvidia_dynamic_lib(libname):
        if libname not in ("nvrtc", "nvJitLink"):
            return load(libname)
        library = ctypes.CDLL(DRIVER, ctypes.RTLD_GLOBAL)  # first: cuda.bindings takes entries that are global
        loaded = load(libname)
        getattr(library, f"cuda_tma_{libname}")(ctypes.c_void_p(loaded._handle_uint))
        return replace(loaded, _handle_uint=library._handle)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib
