"""Kernels that NVRTC compiles, and whose parameter sizes and types the fake driver reports."""

from __future__ import annotations

import re
from functools import cache

from cuda import core

from cuda_tma._compile.compiled import Compiled, remember
from cuda_tma._compile.nvrtc import compile_source
from tests.support.launching import HANDLES

_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.([a-z])(\d+) \w+(?:\[(\d+)\])?")


def compiled_kernel(driver, source, name, constants=None, defines=None):
    """Return a kernel like a result of `cuda_tma.compile` for sm_90a, but without machine code, because the fake driver
    runs none."""
    compiled = _compiled(source, name, tuple((constants or {}).items()), tuple((defines or {}).items()))
    handle = next(HANDLES)
    driver.kernels[handle] = (compiled.lowered_name, parameter_sizes(compiled))
    kernel = core.Kernel.from_handle(handle)
    remember(kernel, compiled)
    return kernel


@cache
def _compiled(source, name, constants, defines):
    return compile_source(source, name, target="compute_90a", constants=dict(constants), defines=dict(defines))


def parameter_sizes(compiled: Compiled) -> list[int]:
    """Return the size of each parameter in bytes, as declared in PTX."""
    _, _, behind = compiled.ptx.partition(f".entry {compiled.lowered_name}(")
    declared = behind.partition(")")[0]
    return [int(bits) // 8 * int(count or 1) for _, bits, count in _PARAMETER.findall(declared)]
