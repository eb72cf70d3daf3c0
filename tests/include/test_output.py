"""Tests of the headers operand.cuh and output.cuh, which examples/gemm_every_shape.py uses."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn

from cuda_tma import simulate
from cuda_tma.simulate import Config
from tests.examples._examples import SCRIPTS, constants
from tests.include._header import defined_in, words

SOURCE = """
#include <cuda_tma/output.cuh>
using namespace cuda_tma;
extern "C" __global__ void convert(const VALUE* values, ELEMENT* elements) {
    elements[threadIdx.x] = element_of<ELEMENT>(values[threadIdx.x]);
}
"""
FLOATS = [0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128.0, -128.5, -129.0, 254.5, 256.0, 1e9, -1e9, 3.25, 416.0, 1000.0]
INTS = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**31 - 1, -(2**31), 40, -40, 300, 2**24 + 1, 17]


def integers(values, lowest, highest, dtype):
    return np.clip(np.rint(values.astype(np.float64)), lowest, highest).astype(dtype)


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("Int8", lambda values: integers(values, -128, 127, np.int8)),
        ("Uint8", lambda values: integers(values, 0, 255, np.uint8)),
        ("int", lambda values: integers(values, -(2**31), 2**31 - 1, np.int32)),
        ("float", lambda values: values.astype(np.float32)),
        ("Bf16", lambda values: values.astype(np.float32).astype(bfloat16)),
        ("E4m3", lambda values: np.clip(values.astype(np.float32), -448, 448).astype(float8_e4m3fn)),
    ],
)
@pytest.mark.parametrize("values", [np.array(FLOATS, np.float32), np.array(INTS, np.int32)], ids=["float", "int"])
def test_a_value_becomes_the_nearest_element(element, expected, values):
    """An integer element has the nearest value in its range; a tie becomes even."""
    gpu, wanted = simulate.Device(), expected(values)
    value = "float" if values.dtype == np.float32 else "int"
    kernel = gpu.compile(SOURCE, "convert", defines={"VALUE": value, "ELEMENT": element})
    elements = np.zeros(wanted.nbytes, np.uint8)
    gpu.launch(Config(1, len(values)), kernel, values, elements).raise_for_errors()
    assert elements.tobytes() == wanted.tobytes()


def test_the_dense_gemm_uses_each_function():
    source = next(str(constants(script)["SOURCE"]) for script in SCRIPTS if script.stem == "gemm_every_shape")
    inner = {
        "activated",
        "corner",
        "operator",
        "sync",
        "is_first",
        "wait_for_buffer",
        "write",
        "unpack",
        "data_type_of",
    }
    names = defined_in("output.cuh") | defined_in("operand.cuh")
    assert names - inner <= words([source, SOURCE])
