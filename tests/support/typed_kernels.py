"""A typed map that several tests use, and the bytes of a tensor map of its type."""

import cuda_tma
from cuda_tma import TensorMapDataType as T
from cuda_tma._map_type import MapType

TILE = MapType(mode="tiled", tile_dim=(16, 32), data_type=T.FLOAT32, swizzle="128B")


def made(tensor, map_type=TILE):
    return bytes(cuda_tma.create_tensor_map(tensor, map_type.options))
