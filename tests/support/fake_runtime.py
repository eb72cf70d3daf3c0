"""A fake runtime for tests of sessions. The simulator compiles the runtime's kernels to PTX, and a session receives the
launches.

The scripts of tests import the module as ``fake_runtime``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cuda_tma import simulate
from cuda_tma._intercept.session import current

RIGHT = 'extern "C" __global__ void right(int* x) { x[threadIdx.x] += 1; }'
WRONG = """extern "C" __global__ void wrong(int* x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}"""
UNSUPPORTED = 'extern "C" __global__ void odd(int* x) { asm volatile("nonsense.b32 0;"); }'
SPIN = 'extern "C" __global__ void spin(volatile int* x) { while (!*x) x[1] = x[1] + 1; }'


@lru_cache(maxsize=8)
def ptx_of(source: str, name: str) -> str:
    """Compile a kernel to PTX. The kernel may have instructions that the simulator does not support."""
    from cuda_tma._compile.nvrtc import request, run

    return run(request(source, name, target="compute_90a")).ptx


def launch(source: str, name: str, array: np.ndarray | None = None, **keywords: Any) -> np.ndarray:
    """Launch a kernel of one CTA of 64 threads on an array."""
    array = np.zeros(64, np.int32) if array is None else array
    session = current()
    assert session is not None
    keywords = {"runtime": "fake", "kernel_name": name, **keywords}
    kernel_name = keywords.pop("kernel_name")
    session.launch(kernel_name, ptx_of(source, name), name, simulate.Config(1, 64), [array], **keywords)
    return array


def right(**keywords: Any) -> np.ndarray:
    return launch(RIGHT, "right", **keywords)


def wrong(**keywords: Any) -> np.ndarray:
    return launch(WRONG, "wrong", **keywords)
