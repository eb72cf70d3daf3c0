"""TMA instructions in NumPy, byte for byte.

The emulator is an executable specification that runs without a GPU.

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

The functions `load`, `store`, `reduce`, and the row-wise `gather4` and `scatter4`, take parameters in driver order.
These functions take coordinates with the innermost dimension first, as the PTX instructions do. Loads, stores and
reductions through tiled and im2col tensor maps agree with recordings of an H200, byte for byte and fault for fault
(observed: driver 580, sm_90). The folder ``tests/data`` contains a selection of the recordings. Packed 4- and 6-bit
types, the ``128B_ATOM_*`` swizzles, im2col wide, `gather4` and `scatter4` follow the documentation, and are not
verified on hardware. Comments in the code mark behavior that is assumed by analogy.

The functions refuse a tensor map that the driver always refuses, with the violations that :func:`cuda_tma.check`
reports. With ``check=False``, the functions emulate a map that the driver always refuses. The emulator computes the
verdict, and all other facts that depend only on the map, once for all maps that differ only in the address. The
emulator therefore runs thousands of loads a second.
"""

from ._load import Tile, gather4, load
from ._reduce import REDUCTIONS, reduce
from ._store import scatter4, store
from ._traversal import tensor_index

__all__ = ["REDUCTIONS", "Tile", "gather4", "load", "reduce", "scatter4", "store", "tensor_index"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
