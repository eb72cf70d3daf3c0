"""Run a script on the driver library of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
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


class Ran(NamedTuple):
    """The end of the command: its exit status, its document, and the notes on standard error."""

    status: int
    launches: list[dict[str, Any]]
    out: str
    err: str

    @property
    def kinds(self) -> list[str]:
        return [found["kind"] for launch in self.launches for found in launch["findings"]]


@pytest.fixture
def run(tmp_path):
    def run(text: str, beginning: str = BEGINNING) -> Ran:
        (tmp_path / "script.py").write_text(beginning + text, "utf-8")
        command = [sys.executable, "-m", "cuda_tma", "sanitize", "--json", "out.json", "--schedules", "2"]
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [*command, "--", "python", "script.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=300,
        )
        answer = json.loads((tmp_path / "out.json").read_text("utf-8"))
        return Ran(done.returncode, answer["launches"], done.stdout, done.stderr)

    return run
