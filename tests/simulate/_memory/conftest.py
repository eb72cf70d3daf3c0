"""The fixtures of the memory tests, which are a simulated GPU and two kernels that use arrays as memory."""

from __future__ import annotations

import pytest

from cuda_tma.simulate import Device
from tests.support.array_kernels import SOURCE


@pytest.fixture(scope="module")
def ptx():
    return Device().compile(SOURCE, "put").ptx


@pytest.fixture
def gpu():
    return Device()


@pytest.fixture
def put(gpu, ptx):
    return gpu.load(ptx, "put")


@pytest.fixture
def add(gpu, ptx):
    return gpu.load(ptx, "add")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")
