"""A fixture that runs a script on the driver library of the command."""

from __future__ import annotations

import pytest

from tests._intercept._programs import Ran, run_below

BEGINNING = '''
import ctypes, struct
import numpy as np
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b""".version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 factor = 5;
.visible .entry scale(.param .u64 values) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [values];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    ld.global.u32 %r3, [factor];
    mul.lo.u32 %r2, %r2, %r3;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""

def require(result, expected=0):
    assert result == expected, result

def out(kind, entry, *arguments, expected=0):
    value = kind()
    require(getattr(cuda, entry)(ctypes.byref(value), *arguments), expected)
    return value.value

u64, i32, pointer = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p

def begin():
    require(cuda.cuInit(0))
    context = out(pointer, "cuDevicePrimaryCtxRetain", 0)
    require(cuda.cuCtxSetCurrent(pointer(context)))

def array(values):
    address = u64(out(u64, "cuMemAlloc_v2", ctypes.c_size_t(values.nbytes)))
    require(cuda.cuMemcpyHtoD_v2(address, pointer(values.ctypes.data), ctypes.c_size_t(values.nbytes)))
    return address

def read(address, values):
    require(cuda.cuMemcpyDtoH_v2(pointer(values.ctypes.data), address, ctypes.c_size_t(values.nbytes)))
    return values

def loaded(name=b"scale", text=PTX):
    module = pointer(out(pointer, "cuModuleLoadData", text))
    return module, pointer(out(pointer, "cuModuleGetFunction", module, name))

def launch(function, threads, address, expected=0):
    values = (pointer * 1)(ctypes.addressof(address))
    require(cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, values, None), expected)
'''


@pytest.fixture
def run(tmp_path):
    def run(text: str, beginning: str = BEGINNING) -> Ran:
        (tmp_path / "script.py").write_text(beginning + text, "utf-8")
        return run_below(tmp_path, "python", "script.py")

    return run
