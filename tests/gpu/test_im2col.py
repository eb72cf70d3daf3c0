"""Tests of random convolutions in 1 to 3 dimensions. Every im2col column equals the unfolded image byte for byte."""

import collections
import subprocess
import sys

import numpy as np
import pytest
from cuda.core import LaunchConfig

import cuda_tma
from cuda_tma import Im2colParams, TensorMapError, TensorMapFault
from cuda_tma._data_type import parse_data_type
from cuda_tma._options import TensorMapIm2colOptions, TensorMapIm2colWideOptions
from tests.support.convolutions import random_case

from . import modules
from .tile_reader import FILL, GUARD_BYTES, READ_WINDOW

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")
WATCHED_LAUNCHES = 10

CASES_PER_DIMENSION = 120
COLUMN_BYTES = 32 * 1024
TORCH_DTYPES = {
    "uint8": (torch.uint8, torch.float8_e4m3fn), "uint16": (torch.int16, torch.bfloat16, torch.float16),
    "uint32": (torch.int32, torch.float32), "uint64": (torch.int64, torch.float64),
}  # fmt: skip

OUTSIDE = TensorMapIm2colOptions.convolution(3, padding=1, stride=2, channels_per_pixel=32, pixels_per_column=16)

SOURCE = (
    READ_WINDOW
    + r"""
struct Place { int at[5]; int offset[3]; };

template <int Rank>
__device__ void start_load(void* column, const TensorMap& map, Barrier& full, const Place& p) {
    if constexpr (Rank == 3)
        load_im2col(column, map, full, Coordinates{p.at[0], p.at[1], p.at[2]}, Offsets{p.offset[0]});
    if constexpr (Rank == 4)
        load_im2col(column, map, full, Coordinates{p.at[0], p.at[1], p.at[2], p.at[3]},
                    Offsets{p.offset[0], p.offset[1]});
    if constexpr (Rank == 5)
        load_im2col(column, map, full, Coordinates{p.at[0], p.at[1], p.at[2], p.at[3], p.at[4]},
                    Offsets{p.offset[0], p.offset[1], p.offset[2]});
}

// One load for each CTA. out: its window of shared memory; completed: whether its phase completed.
template <int Rank>
__global__ void read_columns(const __grid_constant__ TensorMap map, const Place* places, unsigned char* out,
                             unsigned char* completed, unsigned window_bytes, unsigned tx_bytes) {
    auto start = [&](unsigned char* column, Barrier& full) {
        start_load<Rank>(column, map, full, places[blockIdx.x]);
    };
    out += static_cast<unsigned long long>(blockIdx.x) * window_bytes;
    bool complete = read_window(out, window_bytes, tx_bytes, start);
    if (threadIdx.x == 0) completed[blockIdx.x] = complete;
}
"""
)


class ColumnReader:
    """A reader of im2col columns in shared memory. Each read is one launch of a kernel, with a CTA for each load."""

    def __init__(self, device, stream):
        names = [f"read_columns<{rank}>" for rank in (3, 4, 5)]
        module = modules.compiled(SOURCE, device.arch, names)
        self.kernels = {rank: module.get_kernel(name) for rank, name in zip((3, 4, 5), names, strict=True)}
        self.stream = stream

    def read(self, descriptor, loads):
        """Return the windows of shared memory after each load, as (loads, window bytes)."""
        rank = len(loads[0].coordinates)
        places = np.zeros((len(loads), 8), np.int32)
        places[:, :rank] = [load.coordinates for load in loads]
        places[:, 5 : 3 + rank] = [load.offsets for load in loads]
        window_bytes = descriptor.smem_bytes + GUARD_BYTES
        out = torch.empty((len(loads), window_bytes), dtype=torch.uint8, device="cuda")
        completed = torch.empty(len(loads), dtype=torch.uint8, device="cuda")
        config = LaunchConfig(grid=len(loads), block=128, shmem_size=window_bytes + 1024)
        on_device = torch.from_numpy(places).cuda()
        torch.cuda.synchronize()
        cuda_tma.launch(
            self.stream, config, self.kernels[rank], descriptor, on_device, out, completed, window_bytes,
            descriptor.tx_bytes,
        )  # fmt: skip
        self.stream.sync()
        assert completed.all(), f"a barrier did not complete with tx_bytes={descriptor.tx_bytes}: {descriptor!r}"
        return out.cpu().numpy()


@pytest.fixture(scope="module")
def reader(device, stream):
    return ColumnReader(device, stream)


def on_device(rng, elements):
    """Return the elements as a GPU tensor whose dtype has the size of an element."""
    dtypes = TORCH_DTYPES[elements.dtype.name]
    dtype = dtypes[int(rng.integers(len(dtypes)))]
    raw = torch.from_numpy(elements.view(np.uint8).copy()).cuda()
    return raw.view(dtype)


def driver_order(case, tensor):
    """Compute the arguments of the driver's encoder without the functions of the package."""
    g = case.geometry
    reaches = [(kernel - 1) * step for kernel, step in zip(g.kernel_size, g.dilation, strict=True)]
    return Im2colParams(
        data_type=int(parse_data_type(tensor.dtype)),
        global_address=tensor.data_ptr(),
        global_dim=case.elements.shape[::-1],
        global_strides=driver_strides(case.elements),
        element_strides=(1, *g.stride[::-1], 1),
        swizzle=("NONE", "32B", "64B", "128B").index(case.swizzle),
        pixel_box_lower_corner=tuple(-before for before, _ in g.padding)[::-1],
        pixel_box_upper_corner=tuple(after - reach for (_, after), reach in zip(g.padding, reaches, strict=True))[::-1],
        channels_per_pixel=case.channels_per_pixel,
        pixels_per_column=case.pixels_per_column,
    )


def driver_strides(elements):
    """Return strides in bytes, innermost first. A dimension of extent 1 has the stride that the package chooses:
    contiguous, and a multiple of 32 bytes."""
    strides, span = [], elements.shape[-1] * elements.itemsize
    for extent, stride in zip(elements.shape[-2::-1], elements.strides[-2::-1], strict=True):
        strides.append(stride if extent > 1 else -(-span // 32) * 32)
        span = strides[-1] * extent
    return tuple(strides)


def expected_windows(case, loads, window_bytes):
    matrix = case.expected()
    windows = np.full((len(loads), window_bytes), FILL, np.uint8)
    place = case.smem_bytes()
    for window, load in zip(windows, loads, strict=True):
        column = matrix[load.row :, load.tap, load.channel :][: case.pixels_per_column, : case.channels_per_pixel]
        window[place] = np.ascontiguousarray(column).view(np.uint8)
    return windows


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_columns_of_random_convolutions(dims, reader, publish):
    rng = np.random.default_rng(20261121 + dims)
    counts = collections.Counter()
    for _ in range(CASES_PER_DIMENSION):
        case = random_case(rng, dims, column_bytes=COLUMN_BYTES)
        tensor = on_device(rng, case.elements)
        descriptor = cuda_tma.create_tensor_map(tensor, case.options)
        params = driver_order(case, tensor)
        assert bytes(descriptor) == cuda_tma.encode(params) and descriptor.params == params, case
        loads = list(case.loads())
        got = reader.read(descriptor, loads)
        wanted = expected_windows(case, loads, got.shape[1])
        wrong = np.argwhere(got != wanted)
        assert not len(wrong), (
            f"{case.geometry} of shape {case.elements.shape}, {tensor.dtype}, {case.options}: {loads[wrong[0][0]]} "
            f"byte {wrong[0][1]} is {got[tuple(wrong[0])]:#x}, not {wanted[tuple(wrong[0])]:#x}"
        )
        counts["loads"] += len(loads)
        counts["strided"] += any(step > 1 for step in case.geometry.stride)
        counts["dilated"] += any(step > 1 for step in case.geometry.dilation)
    assert counts["strided"] > CASES_PER_DIMENSION // 3 and counts["dilated"] > CASES_PER_DIMENSION // 3
    publish(
        f"im2col, {dims} spatial dimensions: {CASES_PER_DIMENSION} random convolutions ({counts['strided']} strided, "
        f"{counts['dilated']} dilated), every column of output pixels at every tap: {counts['loads']} loads equal the "
        "unfolded tensor, and the driver's 128 bytes encode()'s"
    )


def test_the_doors_are_one_room(device):
    tensor = torch.zeros((2, 8, 8, 64), dtype=torch.bfloat16, device="cuda")
    options = TensorMapIm2colOptions.convolution(3, padding=1, data_type="bfloat16", pixels_per_column=64)
    descriptor = cuda_tma.create_tensor_map(tensor, options)
    view = cuda_tma.StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    assert descriptor == device.create_tensor_map(tensor, options) == view.as_tensor_map(options=options)
    array = cuda_tma.create_tensor_maps([tensor, tensor], options)
    assert array[0] == array[1] == descriptor and array[1].params == descriptor.params
    assert (descriptor.tx_bytes, descriptor.smem_bytes, descriptor.smem_alignment) == (8192, 8192, 1024)
    other = torch.zeros_like(tensor)
    descriptor.replace_address(other)
    assert descriptor == cuda_tma.create_tensor_map(other, options)
    with pytest.raises(TensorMapError, match="shape"):
        descriptor.replace_address(other[:1])


def test_im2col_wide_is_refused_before_compute_capability_10(device):
    """Driver 580 creates an im2col wide map on compute capability 9.0, but no instruction of this compute capability
    can use the map."""
    if device.compute_capability >= (10, 0):
        pytest.skip("a device that has im2col wide")
    tensor = torch.zeros((2, 8, 8, 64), dtype=torch.bfloat16, device="cuda")
    with pytest.raises(TensorMapError, match="compute capability 9.0; TMA needs 10.0 or later for im2col wide"):
        cuda_tma.create_tensor_map(tensor, TensorMapIm2colWideOptions(-1, -1, 64, 64))


def test_refusals_of_the_driver_are_reported_in_terms_of_the_convolution():
    tensor = torch.zeros((2, 4, 4, 64), dtype=torch.bfloat16, device="cuda")
    with pytest.raises(TensorMapError, match="pixel_box_upper_corner") as error:
        cuda_tma.create_tensor_map(tensor, TensorMapIm2colOptions.convolution(7, padding=1, channels_per_pixel=64))
    assert "kernel" in str(error.value) and "padding" in str(error.value)


@pytest.mark.parametrize("coordinates", [(0, 7, -1, 0), (0, -2, -1, 0)])
def test_a_start_outside_the_pixel_box_kills_the_context(coordinates):
    """The test runs in a child process, because a start outside the pixel box destroys the context. The emulator also
    reports a fault."""
    script = (
        "import sys, torch, cuda_tma\n"
        "from tests.support.convolutions import Load\n"
        "from tests.gpu.test_im2col import ColumnReader, OUTSIDE\n"
        "device = cuda_tma.Device(0); device.set_current()\n"
        "x = torch.zeros((2, 8, 8, 64), device='cuda')\n"
        f"load = Load(0, 0, 0, {coordinates}, (0, 0))\n"
        "ColumnReader(device, device.create_stream()).read(cuda_tma.create_tensor_map(x, OUTSIDE), [load])\n"
    )
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert child.returncode != 0 and "CUDA_ERROR_ILLEGAL_INSTRUCTION" in child.stderr
    params = cuda_tma.create_tensor_map(torch.zeros((2, 8, 8, 64), device="cuda"), OUTSIDE).params
    with pytest.raises(TensorMapFault, match="outside the pixel box, which spans -1 to 6"):
        cuda_tma.emulate.load(
            params, np.zeros(2 * 8 * 8 * 64 * 4, np.uint8), coordinates, base_address=params.global_address
        )
