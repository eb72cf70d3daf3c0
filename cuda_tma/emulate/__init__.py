"""TMA instructions, byte for byte, in NumPy: an executable specification that runs without a GPU.

>>> import numpy as np
>>> from cuda_tma import emulate
>>> from cuda_tma.params import TiledParams
>>> matrix = np.arange(64, dtype=np.float32).reshape(8, 8)
>>> params = TiledParams(data_type=7, global_address=0, global_dim=(8, 8), global_strides=(32,), box_dim=(4, 2),
...                      element_strides=(1, 1))
>>> tile = emulate.load(params, matrix.view(np.uint8).ravel(), coordinates=(4, 7))  # column 4, row 7; row 8 is outside
>>> tile.smem.view(np.float32)
array([60., 61., 62., 63.,  0.,  0.,  0.,  0.], dtype=float32)
>>> tile.tx_bytes
32

`load`, `store`, `reduce` and the row-wise `gather4`, `scatter4` take parameters in driver order, and coordinates as the
PTX instruction does: innermost first. Loads, stores and reductions through tiled and im2col tensor maps agree with
recordings of an H200 byte for byte and fault for fault (observed: driver 580, sm_90; ``tests/data`` has a selection).
Packed 4- and 6-bit types, the ``128B_ATOM_*`` swizzles, im2col-wide, `gather4` and `scatter4` follow the documentation
and are not verified on hardware. Behavior that is assumed by analogy is marked in the code.

A tensor map that no driver accepts is refused, with the violations that :func:`cuda_tma.check` reports; ``check=False``
emulates it nevertheless. That verdict, and everything else that depends only on the map, is computed once and kept for
maps that differ only in the address. Thousands of loads a second therefore need no other interface.
"""

from ._load import Tile, gather4, load
from ._reduce import REDUCTIONS, reduce
from ._store import scatter4, store
from ._traversal import tensor_index

__all__ = ["REDUCTIONS", "Tile", "gather4", "load", "reduce", "scatter4", "store", "tensor_index"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
