"""The redirection of the CUDA runtime in cuda.bindings to the driver library.

This module imports only the standard library, as ``cuda_tma_nvrtc`` does.
"""

import ctypes
import os

DRIVER = "libcuda.so.1"


def redirect(path):
    """Redirect the CUDA runtime in a loaded library to the driver library. Return the number of redirected
    functions."""
    return ctypes.CDLL(DRIVER).cuda_tma_redirect(os.fsencode(path))


def redirect_module(module):
    """Redirect the C functions that a Cython module exports to the driver library. Return the number of redirected
    functions.
    """
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    redirect_function = ctypes.CDLL(DRIVER).cuda_tma_redirect_function
    redirect_function.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    functions = getattr(module, "__pyx_capi__", {})
    return sum(
        redirect_function(name.encode(), pointer_of(capsule, name_of(capsule))) for name, capsule in functions.items()
    )
