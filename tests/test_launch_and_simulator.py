"""Tests that cuda_tma.launch and the simulator accept the same launches, and refuse other launches with the same
text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cuda_tma import TensorMapError, simulate
from tests.support.both_doors import Doors
from tests.support.fake_driver import FakeDriver
from tests.support.wrong_launches import RIGHT, WRONG


@pytest.fixture
def doors(driver: FakeDriver) -> Doors:
    """Return the launch functions of cuda_tma and of the simulator. The fake driver treats host memory as pinned
    memory, which kernels can access."""
    driver.pinned = ((0, 1 << 63),)
    return Doors(driver, simulate.Device())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.name.replace(" ", "-"))
def test_both_refuse_in_the_same_words(doors, wrong):
    launched, simulated = doors.refusals(
        wrong.parameters, *wrong.arguments, config=wrong.config, attribute=wrong.attribute
    )
    assert launched is not None
    assert wrong.words in launched[1]
    assert simulated == launched


@pytest.mark.parametrize("right", RIGHT, ids=lambda each: each.name.replace(" ", "-"))
def test_both_accept(doors, right):
    refusals = doors.refusals(right.parameters, *right.arguments, config=right.config, attribute=right.attribute)
    assert refusals == (None, None)


def _typed(element: str) -> str:
    return f"const __grid_constant__ TiledMap<Tile<{element}, Box<8, 16>>> map"


ELEMENTS = [
    ("FLOAT32", "uint32"), ("FLOAT32", "int32"), ("FLOAT64", "int64"), ("FLOAT64", "uint64"), ("FLOAT16", "int16"),
    ("TFLOAT32", "int32"),
]  # fmt: skip


@pytest.mark.parametrize(("element", "dtype"), ELEMENTS)
def test_an_array_of_other_elements_than_the_typed_maps_is_refused_alike(doors, element, dtype):
    launched, simulated = doors.refusals(_typed(element), np.ones((16, 16), dtype))
    assert launched == simulated
    assert launched[0] is TensorMapError
    assert launched[1].startswith("argument 0 (map) of kernel k, TiledMap<")
    assert f"the tensor's elements are {dtype}, and the kernel's {element}" in launched[1]


@pytest.mark.parametrize(("element", "dtype"), [("BFLOAT16", "float16"), ("FLOAT16", "bfloat16")])
def test_a_torch_tensor_of_other_elements_is_refused_alike(doors, element, dtype):
    torch = pytest.importorskip("torch")
    launched, simulated = doors.refusals(_typed(element), torch.ones(16, 16, dtype=getattr(torch, dtype)))
    assert launched == simulated
    assert f"the tensor's elements are {dtype}, and the kernel's {element}" in launched[1]


TAKEN = [
    ("FLOAT32", "float32"), ("INT32", "float32"), ("UINT32", "int32"), ("INT32", "uint32"), ("UINT8", "int8"),
    ("BFLOAT16", "uint16"), ("BFLOAT16", "int16"), ("UINT64", "float64"), ("TFLOAT32_FTZ", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("element", "dtype"), TAKEN)
def test_both_accept_an_array_of_bits(doors, element, dtype):
    assert doors.refusals(_typed(element), np.ones((16, 16), dtype)) == (None, None)


def _negated(torch):
    return torch.zeros(4, dtype=torch.complex64).conj().imag


TENSORS = {
    "sparse": (lambda torch: torch.zeros(4, 4).to_sparse(), "Pass tensor.to_dense()"),
    "compressed": (lambda torch: torch.eye(4).to_sparse_csr(), "Pass tensor.to_dense()"),
    "without memory": (lambda torch: torch.zeros(4, device="meta"), "Pass a tensor with memory"),
    "negated": (_negated, "negative bit"),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("parameters", ["float* p", _typed("FLOAT32")])
def test_a_torch_tensor_without_memory_is_refused_alike(doors, name, parameters):
    torch = pytest.importorskip("torch")
    make, words = TENSORS[name]
    refusals = doors.refusals(parameters, make(torch))
    launched, simulated = ((error, re.sub(r" \(Cannot .*?\)", "", text)) for error, text in refusals)
    # The text of an error of torch depends on the function that reads the tensor.
    assert launched == simulated
    assert words in launched[1]


def test_a_torch_tensor_with_a_gradient_is_taken_alike(doors):
    torch = pytest.importorskip("torch")
    launched, simulated = doors.refusals("float* p", torch.zeros(4, requires_grad=True))
    assert launched == simulated
