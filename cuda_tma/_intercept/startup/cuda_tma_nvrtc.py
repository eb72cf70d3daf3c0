"""NVRTC of cuda.bindings and cuda.core: cuda.pathfinder returns the driver library, which has NVRTC's entries, too.

cuda.core imports cuda.pathfinder while it is imported itself, and cuda_tma imports cuda.core: this module has only the
standard library.
"""

import ctypes
from dataclasses import replace

DRIVER = "libcuda.so.1"


def put_in_front(pathfinder):
    """Let cuda.pathfinder load the driver library in NVRTC's place; it calls NVRTC."""
    load = pathfinder.load_nvidia_dynamic_lib

    def load_nvidia_dynamic_lib(libname):
        loaded = load(libname)
        if libname != "nvrtc":
            return loaded
        library = ctypes.CDLL(DRIVER)
        library.cuda_tma_nvrtc(ctypes.c_void_p(loaded._handle_uint))
        return replace(loaded, _handle_uint=library._handle)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib
