"""Draw the pictures of ``docs/images/``, which the page ``docs/pictures.md`` shows. The script needs matplotlib, rich
and NVRTC.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

import matplotlib
import ml_dtypes
import numpy as np
from matplotlib.figure import Figure
from pages import inside
from rich.console import Console
from rich.text import Text

from cuda_tma import TensorSpec, layouts, params_of, simulate
from cuda_tma._command.excerpts import described
from cuda_tma._command.sources import Sources
from cuda_tma._show import plot

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))

from benchmarks.kernels import example  # noqa: E402

LOAD = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<32, 64>>;
extern "C" __global__ void load_tile(const __grid_constant__ TiledMap<Window> map, int row, int column, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(8192 + MORE);
        load(tile, map, full, Coordinates{column, row});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) out[i] = tile(i / 64, i % 64);
}
"""

BFLOAT16 = params_of(TensorSpec((60, 128), "bfloat16"), box_dim=(8, 64), swizzle="128B")
STRIDED = params_of(TensorSpec((48, 64), "float32"), box_dim=(12, 16), element_strides=(2, 1))
SLICE = params_of(TensorSpec((9, 48, 64), "float32"), box_dim=(2, 12, 16))


def pictures() -> dict[str, Figure]:
    """Return every figure of matplotlib by its name."""
    return {
        "tile": plot.tile(BFLOAT16, (64, 54)),
        "box": plot.box(STRIDED, (56, 4)),
        "box_slice": plot.box(SLICE, (-8, 40, 3)),
        "tiles": plot.tiles(BFLOAT16, (64, 56)),
    }


def drawings() -> dict[str, str]:
    """Return every SVG drawing by its name."""
    return {
        "timeline_load": _load(0).svg(),
        "timeline_hang": _load(128).svg(),
        "timeline_gemm": gemm().svg(blocks=1),
        "finding": finding(),
        "layouts_fp8": _compared("wgmma.d:f32", "wgmma.a:e4m3").svg(),
        "layouts_tiles": _compared("tile:bf16:64B", "tile:bf16:128B").svg(),
    }


def finding() -> str:
    """Draw the terminal output of `cuda-tma sanitize` for the kernel of README."""
    (code,) = re.findall(r'^SOURCE = r"""(.*?)"""$', (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        source = Path("twice.cu")
        source.write_text(code)
        gpu = simulate.Device()
        arrays = np.ones(256, np.float32), np.zeros(256, np.float32)
        (found,) = gpu.launch(simulate.Config(1, 256), gpu.compile(source, "twice"), *arrays).errors
        console.print(Text.assemble(*described(found, Sources(source))), end="")
    drawn = console.export_svg(title="cuda-tma sanitize -- python twice.py", unique_id="finding")
    # The statement removes rules for fonts that a browser would download.
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def _compared(written: str, read: str) -> layouts.Comparison:
    return layouts.compare(written, read)


def _load(more: int) -> simulate.Timeline:
    """Trace the smallest load, which waits for `more` bytes beyond those that the copy delivers."""
    gpu = simulate.Device()
    kernel = gpu.compile(LOAD, "load_tile", defines={"MORE": more})
    arrays = np.zeros((1000, 500), np.float32), np.zeros((32, 64), np.float32)
    return gpu.launch(simulate.Config(1, 128), kernel, arrays[0], 96, 128, arrays[1], trace=True).timeline()


def gemm() -> simulate.Timeline:
    """Trace examples/gemm.py on a cluster of two CTAs with one tile each, in eight steps of K."""
    gpu = simulate.Device(multiprocessor_count=2)
    kernel = gpu.compile(example("gemm").SOURCE, "gemm")
    tensors = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((256, 512), (256, 512), (256, 256)))
    return gpu.launch(simulate.Config(2, 384), kernel, *tensors, 1, 1, 8, trace=True).timeline()


def draw(folder: Path) -> None:
    """Write every picture, as PNG or SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"font.size": 9}):
        for name, figure in pictures().items():
            figure.savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})
    for name, drawn in drawings().items():
        (folder / f"{name}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    draw(ROOT / "docs" / "images")
