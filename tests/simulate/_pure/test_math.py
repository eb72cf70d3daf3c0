"""Tests of CUDA's mathematical functions on the simulator, whose results are compared with Python's functions.

NVRTC compiles each function to many scalar instructions, so that one wrong rounding would change a result.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuda_tma import simulate

# The table contains errors in units of the last place with a margin (CUDA C++ Programming Guide, "Mathematical
# Functions").
ONE = {
    "sin": (math.sin, 2), "cos": (math.cos, 2), "tan": (math.tan, 4), "asin": (math.asin, 4), "acos": (math.acos, 4),
    "atan": (math.atan, 3), "sinh": (math.sinh, 4), "cosh": (math.cosh, 3), "tanh": (math.tanh, 3),
    "asinh": (math.asinh, 4), "exp": (math.exp, 2), "exp2": (lambda x: 2.0**x, 2), "exp10": (lambda x: 10.0**x, 3),
    "expm1": (math.expm1, 2), "log": (math.log, 2), "log2": (math.log2, 2), "log10": (math.log10, 3),
    "log1p": (math.log1p, 2), "sqrt": (math.sqrt, 0.5), "rsqrt": (lambda x: x**-0.5, 3),
    "cbrt": (lambda x: x ** (1 / 3), 3),
    "erf": (math.erf, 3), "erfc": (math.erfc, 6), "tgamma": (math.gamma, 12),
    "floor": (math.floor, 0), "ceil": (math.ceil, 0), "trunc": (math.trunc, 0), "rint": (round, 0),
}  # fmt: skip
TWO = {
    "pow": (math.pow, 9), "atan2": (math.atan2, 4), "fmod": (math.fmod, 0), "hypot": (math.hypot, 4),
    "remainder": (math.remainder, 0), "copysign": (math.copysign, 0), "fdim": (lambda a, b: max(a - b, 0.0), 1),
    "divide": (lambda a, b: a / b, 0.5),
}  # fmt: skip
NAMES = [*ONE, *TWO]
COUNT = 96


def source(suffix: str, kind: str) -> str:
    calls = [f"out[{i} * count + t] = {name}{suffix}(a[t]);" for i, name in enumerate(ONE)]
    calls += [
        f"out[{i} * count + t] = " + ("a[t] / b[t];" if name == "divide" else f"{name}{suffix}(a[t], b[t]);")
        for i, name in enumerate(TWO, len(ONE))
    ]
    return f"""extern "C" __global__ void compute(const {kind}* a, const {kind}* b, {kind}* out, int count) {{
        const int t = threadIdx.x;
        {" ".join(calls)}
    }}"""


@pytest.mark.parametrize(("suffix", "kind", "dtype"), [("f", "float", np.float32), ("", "double", np.float64)])
def test_mathematical_functions(suffix, kind, dtype):
    rng = np.random.default_rng(7)
    a = rng.uniform(0.01, 0.99, COUNT).astype(dtype)
    b = (rng.uniform(0.5, 8, COUNT) * rng.choice([-1, 1], COUNT)).astype(dtype)
    out = np.full((len(NAMES), COUNT), np.nan, dtype)
    gpu = simulate.Device()
    gpu.launch(
        simulate.Config(grid=1, block=COUNT), gpu.compile(source(suffix, kind), "compute"), a, b, out, COUNT
    ).raise_for_errors()
    one_ulp = np.finfo(dtype).eps
    for row, name in zip(out, NAMES, strict=True):
        function, ulps = {**ONE, **TWO}[name]
        lanes = [a] if name in ONE else [a, b]
        expected = np.array([function(*(float(x) for x in lane)) for lane in zip(*lanes, strict=True)])
        error = np.abs(row.astype(np.float64) - expected) / np.maximum(np.abs(expected), np.finfo(dtype).tiny)
        # The results of Python's functions are within one unit of the last place of a double.
        worst = (ulps + (1 if dtype == np.float64 and ulps else 0)) * one_ulp
        assert (error <= worst).all(), (name, error.max() / one_ulp)
