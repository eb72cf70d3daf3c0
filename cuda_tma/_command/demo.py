"""The demo (``cuda-tma demo``, ``make demo``), which blurs a picture by TMA and compares it with NumPy's result.

The demo loads each tile with a halo. At the border of the picture, the halo extends outside the tensor. TMA delivers
zeros outside the tensor, so the kernel has no special case. Without a GPU, the simulator runs the PTX of the kernel.
Without a compiler, the emulator replaces the TMA unit, and NumPy computes the blur.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.core import LaunchConfig, LegacyPinnedMemoryResource

from .. import Device, StridedMemoryView, compile, emulate, launch, params_of
from .._files import write
from .._limits import TMA_SINCE
from ..enums import TensorMapDataType
from ..kernel_parameters import MapType
from ..smem import tx_bytes
from .exit_status import ACCEPTED, REFUSED, Misuse
from .outcome import counted

if TYPE_CHECKING:
    from .. import simulate

__all__ = ["run"]

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

using Window = PICTURE::Tile;   // with a halo
using Result = RESULT::Tile;
constexpr int TILE = Result::width(), HALO = (Window::width() - TILE) / 2;
constexpr float WEIGHTS[9] = {1 / 256.f, 8 / 256.f, 28 / 256.f, 56 / 256.f, 70 / 256.f,
                              56 / 256.f, 28 / 256.f, 8 / 256.f, 1 / 256.f};

extern "C" __global__ void blur(const __grid_constant__ PICTURE picture, const __grid_constant__ RESULT result) {
    __shared__ Window window;
    __shared__ Result tile;
    __shared__ Barrier full;
    const int x = TILE * blockIdx.x, y = TILE * blockIdx.y, plane = blockIdx.z;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(window);
        load(window, picture, full, Coordinates{x - HALO, y - HALO, plane});   // outside the picture: zeros
    }
    __syncthreads();   // the barrier is initialized
    full.wait(0);      // the window has arrived
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        const int row = i / TILE, column = i % TILE;
        float sum = 0;
#pragma unroll
        for (int dy = 0; dy <= 2 * HALO; ++dy)
            for (int dx = 0; dx <= 2 * HALO; ++dx)
                sum += WEIGHTS[dy] * WEIGHTS[dx] * window(0, row + dy, column + dx);
        tile(0, row, column) = sum;
    }
    fence_proxy_async();   // each thread: make its writes visible to the TMA unit
    __syncthreads();       // ... and all have written
    if (threadIdx.x == 0) {
        store(result, Coordinates{x, y, plane}, tile);   // outside the picture: dropped
        commit_group();
        wait_group_read(); // shared memory must live until it has been read
    }
}
"""

TILE, HALO = 64, 4  # The halo has 4 floats, because the innermost coordinate must be a multiple of 16 bytes.
# The weights of the blur are the 8th row of Pascal's triangle.
WEIGHTS = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1], np.float32) / 256
# The demo defines the types of the maps in Python, so the emulator can use the maps without a compiler.
PICTURE, RESULT = (
    MapType(mode="tiled", tile_dim=(1, extent, extent), data_type=TensorMapDataType.FLOAT32)
    for extent in (TILE + 2 * HALO, TILE)
)
DEFINES = {"PICTURE": str(PICTURE), "RESULT": str(RESULT)}
TOLERANCE = 1e-5  # The tolerance is relative to the largest value, because NumPy adds the 81 terms in another order.


def run(arguments: argparse.Namespace) -> int:
    """Blur a picture by TMA, write the result next to the original, and check the result.

    Parameters
    ----------
    arguments : argparse.Namespace
        The arguments `input` (the name of a file, or None for a generated picture), `output` (the name of a file) and
        `emulate` (a bool).

    Returns
    -------
    int
        The exit status: 0, or 1 if the blurred picture differs from NumPy's result.

    Raises
    ------
    Misuse
        If the picture or the folder of the output does not exist.
    """
    output = _png_to_be(Path(arguments.output))
    picture = generated_picture() if arguments.input is None else read_picture(Path(arguments.input))
    where, blurring = find_way(arguments.emulate)
    print(where, flush=True)
    start = time.perf_counter()
    blurred = blurring(picture)
    seconds = time.perf_counter() - start
    planes, rows, columns = picture.shape
    print(f"{columns} x {rows} pixels, {counted(planes, 'plane', 'planes')}: {seconds:.2f} s in all")
    try:
        write_png(output, side_by_side(picture, blurred))
    except (OSError, ValueError) as error:  # Python raises ValueError if the file name contains a null byte.
        raise Misuse(f"--output {output} cannot be written: {error}") from None
    print(f"before and after: {output}")
    verdict = compare(blurred, blur(with_zero_border(picture)), TOLERANCE * float(np.abs(picture).max()))
    print(verdict or "every pixel is equal to NumPy's")
    return REFUSED if verdict else ACCEPTED


def _png_to_be(path: Path) -> Path:
    """Return the path of the PNG; refuse a path that cannot be written, before the demo runs."""
    if path.suffix.lower() != ".png":
        raise Misuse(f"--output {path} is not the name of a PNG file; end the name in .png")
    if path.is_dir() or not path.parent.is_dir():
        raise Misuse(f"--output {path} cannot be written: it is a folder, or {path.parent} is not a folder")
    return path


# ---- pictures ----
#
# A picture is a float32 array of shape (planes, rows, columns).


def generated_picture(size: int = 512) -> np.ndarray:
    """Return a zone plate, whose rings become finer toward the edge, so that a blur is visible.

    >>> generated_picture(8).shape
    (1, 8, 8)
    """
    y, x = np.mgrid[:size, :size].astype(np.float32) - size / 2
    rings = np.cos(np.pi * (x * x + y * y) / (1.25 * size))
    return np.ascontiguousarray((0.5 + 0.5 * rings)[None], np.float32)


def read_picture(path: Path) -> np.ndarray:
    """Return a picture from a file.

    Parameters
    ----------
    path : Path
        A ``.npy`` file of shape (rows, columns) or (rows, columns, channels), or any picture that Pillow can read.

    Returns
    -------
    numpy.ndarray of float32
        The picture with shape (planes, rows, columns).
    """
    try:
        pixels = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _decoded(path)
    except Misuse:
        raise
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        # For a damaged file, NumPy and Pillow raise ValueError, EOFError, SyntaxError and other exceptions.
        raise Misuse(f"{path} is not a picture that can be read: {error}") from None
    if not isinstance(pixels, np.ndarray):
        raise Misuse(f"{path} contains several arrays; pass one of them as a .npy")
    if pixels.ndim not in (2, 3) or 0 in pixels.shape or pixels.dtype.kind not in "biuf":
        raise Misuse(f"{path}: {pixels.dtype} of shape {pixels.shape}; pass real numbers, (rows, columns[, channels])")
    # A value that is too large for float32 becomes infinity, and the demo refuses pictures with infinity.
    with np.errstate(over="ignore"):
        planes = np.asarray(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0), np.float32)
    if not np.isfinite(planes).all():
        raise Misuse(f"{path} contains NaN, infinity, or values beyond float32; a blur would spread them")
    return np.ascontiguousarray(planes)


def _decoded(path: Path) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        raise Misuse(f"reading {path} needs Pillow: pip install pillow, or pass a .npy array, or no --input") from None
    with Image.open(path) as image:
        return np.asarray(image if image.mode in ("L", "I", "I;16", "F") else image.convert("RGB"))


def side_by_side(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return two pictures side by side in 8-bit RGB, with the range of values of the first picture."""
    low, high = float(before.min()), float(before.max())
    # The computation uses float64, because the difference of two float32 values may exceed float32.
    gap = np.full((before.shape[0], before.shape[1], 8), high)
    both = (np.concatenate([before, gap, after], axis=2) - low) / ((high - low) or 1)
    rgb = both[:3] if len(both) >= 3 else both[[0, 0, 0]]
    return np.round(np.clip(np.nan_to_num(rgb), 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)


def write_png(path: Path, rgb: np.ndarray) -> None:
    """Write an 8-bit RGB picture of shape (rows, columns, 3) as a PNG (source: PNG specification, third edition)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = rgb.shape
    # The PNG has 8 bits for each of the colors red, green and blue.
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    # Each line of a PNG starts with the number of its filter, which is 0 (no filter).
    lines = np.pad(rgb.reshape(rows, -1), ((0, 0), (1, 0)))
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    write(path, b"\x89PNG\r\n\x1a\n" + body)


# ---- the blur, and its check ----


def blur(window: np.ndarray) -> np.ndarray:
    """Return the 9 x 9 binomial blur of the last two axes; the result is smaller by HALO on every side."""
    rows, columns = (extent - 2 * HALO for extent in window.shape[-2:])
    down = sum(weight * window[..., i : i + rows, :] for i, weight in enumerate(WEIGHTS))
    return sum(weight * down[..., :, i : i + columns] for i, weight in enumerate(WEIGHTS))


def with_zero_border(picture: np.ndarray) -> np.ndarray:
    """Return the picture with a border of zeros, whose width is the halo of a tile."""
    return np.pad(picture, ((0, 0), (HALO, HALO), (HALO, HALO)))


def compare(result: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    """Return a description of the pixel with the largest error; the text is empty if every pixel is correct."""
    error = np.abs(result - expected)
    if error.max() <= tolerance:
        return ""
    plane, row, column = np.unravel_index(error.argmax(), error.shape)
    wrong = np.count_nonzero(~(error <= tolerance))  # The comparison reports a NaN as a wrong pixel.
    return (
        f"WRONG: {wrong} pixel(s), the worst in plane {plane}, row {row}, column {column}: "
        f"{result[plane, row, column]:g} where NumPy computes {expected[plane, row, column]:g}"
    )


# ---- tiles, by TMA or by its emulator ----


def pitched(picture: np.ndarray) -> np.ndarray:
    """Return the picture with rows padded to a multiple of 16 bytes, as strides require; the map omits the padding."""
    columns = picture.shape[2]
    return np.pad(picture, ((0, 0), (0, 0), (0, -columns % 4)))


def describe(name: str, params: Any) -> None:
    """Print the fields of a tensor map, with the innermost dimension first."""
    data_type = TensorMapDataType(params.data_type).short_name
    print(
        f"{name}: {data_type}, global_dim {params.global_dim}, global_strides {params.global_strides} bytes, "
        f"box_dim {params.box_dim}; one copy moves {tx_bytes(params)} bytes"
    )


def find_gpu() -> tuple[Device | None, str]:
    """Return the current device if it supports TMA, or None and the reason."""
    try:
        device = Device()
        device.set_current()
    except Exception as error:
        # The type of the exception depends on whether the driver is missing, the device is missing, or the device
        # fails.
        return None, str(error).splitlines()[0].partition(" (")[0]
    if device.compute_capability < TMA_SINCE:
        return None, f"{device.name} has compute capability {device.arch}; TMA needs 90 or later"
    return device, ""


def find_way(emulate: bool) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Return a description of the method that blurs the picture, and the function that blurs the picture."""
    if emulate:
        return "Running on the emulator, because of --emulate.", blur_by_emulator
    gpu, reason = find_gpu()
    if gpu:
        return f"Running on {gpu.name}.", partial(blur_on_gpu, gpu)
    try:
        kernel = simulated_kernel()
    except RuntimeError as error:  # The import fails if the machine has no NVRTC.
        return f"No GPU and no compiler found: running on the emulator.\n({reason}; {error})", blur_by_emulator
    return f"No GPU found: running on the simulator.\n({reason})", partial(blur_by_simulator, *kernel)


def simulated_kernel() -> tuple[simulate.Device, simulate.Kernel]:
    """Return a simulated GPU, and the demo's kernel for this GPU."""
    from .. import simulate

    gpu = simulate.Device()
    return gpu, gpu.compile(SOURCE, "blur", defines=DEFINES)


def blur_by_simulator(gpu: simulate.Device, kernel: simulate.Kernel, picture: np.ndarray) -> np.ndarray:
    """Blur a picture with the demo's kernel on the simulator; the maps describe NumPy arrays."""
    from .. import simulate

    planes, rows, columns = picture.shape
    before, after = pitched(picture), pitched(np.full_like(picture, np.nan))
    source, target = (
        gpu.create_tensor_map(array[:, :, :columns], map_type.options)
        for array, map_type in ((before, PICTURE), (after, RESULT))
    )
    describe("source", source.params)
    describe("target", target.params)
    config = simulate.Config((-(-columns // TILE), -(-rows // TILE), planes), 256)
    gpu.launch(config, kernel, source, target).raise_for_errors()
    return after[:, :, :columns]


def blur_on_gpu(device: Device, picture: np.ndarray) -> np.ndarray:
    """Blur a picture on a GPU with the demo's kernel, which uses TMA loads and stores."""
    planes, rows, columns = picture.shape
    kernel = compile(SOURCE, "blur", defines=DEFINES)
    stream = device.create_stream()

    storage = pitched(picture)
    host = LegacyPinnedMemoryResource().allocate(storage.nbytes)
    host_array = np.from_dlpack(host).view(np.float32).reshape(storage.shape)
    host_array[:] = storage
    before, after = (device.allocate(storage.nbytes, stream=stream) for _ in range(2))
    before.copy_from(host, stream=stream)

    strides = tuple(stride // storage.itemsize for stride in storage.strides)
    source, target = (
        StridedMemoryView.from_buffer(buffer, picture.shape, strides, dtype=storage.dtype) for buffer in (before, after)
    )
    describe("source", params_of(source, PICTURE.options))
    describe("target", params_of(target, RESULT.options))
    grid = (-(-columns // TILE), -(-rows // TILE), planes)
    launch(stream, LaunchConfig(grid=grid, block=256), kernel, source, target)
    after.copy_to(host, stream=stream)
    stream.sync()
    return host_array[:, :, :columns].copy()


def blur_by_emulator(picture: np.ndarray) -> np.ndarray:
    """Blur a picture tile by tile with the emulator's load and store, and with the kernel's arithmetic in NumPy."""
    columns = picture.shape[2]
    before, after = pitched(picture), pitched(np.full_like(picture, np.nan))
    source = params_of(before[:, :, :columns], PICTURE.options)
    target = params_of(after[:, :, :columns], RESULT.options)
    describe("source", source)
    describe("target", target)
    for x, y, plane in _with_progress_bar(_corners(picture.shape)):
        loaded = emulate.load(source, _bytes(before), (x - HALO, y - HALO, plane), base_address=before.ctypes.data)
        tile = blur(loaded.smem.view(np.float32).reshape(PICTURE.box_dim))
        emulate.store(target, _bytes(after), _bytes(tile), (x, y, plane), base_address=after.ctypes.data)
    return after[:, :, :columns]


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _corners(shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    planes, rows, columns = shape
    return [(x, y, plane) for plane, y, x in product(range(planes), range(0, rows, TILE), range(0, columns, TILE))]


def _with_progress_bar(tiles: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the tiles, and show a progress bar in steps of 2% if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield from tiles
        return
    shown = -1
    for done, tile in enumerate(tiles, 1):
        yield tile
        if (now := 50 * done // len(tiles)) > shown:
            shown = now
            end = "\n" if done == len(tiles) else ""
            print(f"\rtiles [{'#' * now:50}] {done}/{len(tiles)}", end=end, file=sys.stderr, flush=True)
