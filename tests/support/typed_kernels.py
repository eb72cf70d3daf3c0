"""Kernels of typed maps, as the fake driver has them."""

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapDataType as T
from cuda_tma._map_type import MapType
from tests.support.launching import HANDLES, kernel_name

TILE = MapType(mode="tiled", tile_dim=(16, 32), data_type=T.FLOAT32, swizzle="128B")


@pytest.fixture
def kernel(driver):
    """kernel(*types, sizes) -> a kernel of these parameters."""

    def kernel(*parameters, sizes=(128,)):
        handle = next(HANDLES)
        driver.kernels[handle] = (kernel_name(*parameters), list(sizes))
        return core.Kernel.from_handle(handle)

    return kernel


@pytest.fixture
def stream():
    return core.Stream.from_handle(0x1000)


def made(tensor, map_type=TILE):
    return bytes(cuda_tma.create_tensor_map(tensor, map_type.options))
