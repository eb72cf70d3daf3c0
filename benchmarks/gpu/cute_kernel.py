"""An empty kernel of CuTe DSL with three tensor maps, which CuTe DSL encodes at every launch. Only the timing of CuTe
DSL imports this module.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cuda.bindings.driver as cuda
import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack


def view(tensor: Any) -> Any:
    """Return a tensor in the form that the compiled function accepts."""
    return from_dlpack(tensor, assumed_align=16)


@cute.kernel
def three_maps(a, a_places, b, b_places, c, c_places, count: cutlass.Int32):
    pass


@cute.jit
def launch(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    count: cutlass.Int32,
    stream: cuda.CUstream,
    rows: cutlass.Constexpr,
    columns: cutlass.Constexpr,
):
    layout, box = cute.make_layout((rows, columns), stride=(columns, 1)), (rows, columns)
    load = cpasync.CopyBulkTensorTileG2SOp()
    a_map, a_places = cpasync.make_tiled_tma_atom(load, a, layout, box)
    b_map, b_places = cpasync.make_tiled_tma_atom(load, b, layout, box)
    c_map, c_places = cpasync.make_tiled_tma_atom(load, c, layout, box)
    kernel = three_maps(a_map, a_places, b_map, b_places, c_map, c_places, count)
    kernel.launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


def compiled(tensors: Sequence[Any], box: tuple[int, int], count: int, stream: Any) -> Callable[..., Any]:
    """Return the compiled launch for tensors of these shapes."""
    return cute.compile(launch, *map(view, tensors), count, stream, *box)
