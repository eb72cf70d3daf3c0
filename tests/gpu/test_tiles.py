"""Tests that a tile in shared memory contains the view's elements byte for byte, for every data type, rank and
swizzle."""

import collections
import ctypes
import subprocess
import sys

import numpy as np
import pytest

import cuda_tma
from cuda_tma.enums import TensorMapDataType, TensorMapOOBFill, TensorMapSwizzle

from .tile_reader import GUARD_BYTES, MAX_WINDOW_BYTES, TileReader, expected_window, first_difference

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")

pytestmark = pytest.mark.usefixtures("watched")
WATCHED_LAUNCHES = 40

SWIZZLE_SPANS = {"NONE": None, "32B": 32, "64B": 64, "128B": 128}
RANKS = (1, 2, 3, 4, 5)
# In the recordings, the fill of each type repeats 0x7FF7.
NAN_FILL = {2: 0x7FF7, 4: 0x7FF77FF7, 8: 0x7FF77FF77FF77FF7}

# Each row contains the name of the dtype, the argument data_type or None, and the resulting data type.

INFERRED = {
    "uint8": "UINT8", "int8": "UINT8", "bool": "UINT8", "uint16": "UINT16", "int16": "UINT16", "uint32": "UINT32",
    "int32": "INT32", "uint64": "UINT64", "int64": "INT64", "float16": "FLOAT16", "float32": "FLOAT32",
    "float64": "FLOAT64", "complex64": "UINT64",
}  # fmt: skip
TORCH_ONLY = {"bfloat16": "BFLOAT16", "float8_e4m3fn": "UINT8", "float8_e5m2": "UINT8", "float8_e8m0fnu": "UINT8"}
ASKED = [("float32", "FLOAT32_FTZ"), ("float32", "TFLOAT32"), ("float32", "TFLOAT32_FTZ")]
TORCH_TYPES = [(name, None, data_type) for name, data_type in {**INFERRED, **TORCH_ONLY}.items()]
TORCH_TYPES += [(name, data_type, data_type) for name, data_type in ASKED]
TORCH_TYPES += [("float4_e2m1fn_x2", "UINT8", "UINT8")]
CUPY_TYPES = [(name, None, data_type) for name, data_type in INFERRED.items()]
CASES_PER_STRATUM = 4


@pytest.fixture(scope="module")
def reader(device, stream):
    return TileReader(device, stream)


def tfloat32(bits):
    """Round a float to a mantissa of 10 bits, as the TMA unit does. A NaN becomes 0x7FFFE000 (observed)."""
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    rounded = ((bits.astype(np.uint64) + 0x1000) & 0xFFFFE000).astype(np.uint32)
    return np.where(is_nan, np.uint32(0x7FFFE000), rounded)


def random_view(rng, library, dtype_name, rank, inner_unit):
    """Return a random view of random bytes (sliced, stepped, permuted or broadcast), and its elements in NumPy."""
    itemsize = np.dtype(np.uint8 if dtype_name.startswith("float4") else _numpy_name(dtype_name)).itemsize
    shape = [int(rng.integers(1, 12)) for _ in range(rank - 1)]
    stored_inner = inner_unit * int(rng.integers(1, 10))
    host_bytes = rng.integers(0, 256, (*shape, stored_inner * itemsize), np.uint8)
    host = host_bytes.view(f"u{itemsize}")
    if library is torch:
        tensor = torch.from_numpy(host_bytes).cuda().view(getattr(torch, dtype_name))
    else:
        tensor = cupy.asarray(host_bytes).view(np.dtype(dtype_name))
        # CuPy copies from pinned memory, so the test waits for the copy before a reader on a separate stream starts.
        cupy.cuda.get_current_stream().synchronize()
    start = inner_unit * int(rng.integers(0, stored_inner // inner_unit))
    end = int(rng.integers(start + 1, stored_inner + 1))
    slices = [slice(int(rng.integers(0, 2)) if n > 1 else 0, None, int(rng.integers(1, 3))) for n in shape]
    slices.append(slice(start, end))
    tensor, host = tensor[tuple(slices)], host[tuple(slices)]
    if rank > 2 and rng.random() < 0.3:
        order = (*rng.permutation(rank - 1).tolist(), rank - 1)
        tensor = tensor.permute(order) if library is torch else tensor.transpose(order)
        host = host.transpose(order)
    if rank > 1 and host.shape[0] == 1 and rng.random() < 0.7:
        shape = (int(rng.integers(2, 6)), *host.shape[1:])
        tensor = tensor.expand(shape) if library is torch else cupy.broadcast_to(tensor, shape)
        host = np.broadcast_to(host, shape)
    return tensor, host


def _numpy_name(dtype_name):
    return {"bfloat16": "uint16"}.get(dtype_name, "uint8" if dtype_name.startswith("float8") else dtype_name)


def random_box(rng, rank, itemsize, span):
    """Return the extents of a box that fits the window, in tensor order."""
    widest = min(256, (span or 512) // itemsize)
    unit = max(1, 16 // itemsize)
    inner = unit * int(rng.integers(1, widest // unit + 1))
    box = [inner]
    pitch = span or inner * itemsize
    for _ in range(rank - 1):
        room = MAX_WINDOW_BYTES // (pitch * int(np.prod(box[1:], initial=1)))
        box.append(int(rng.integers(1, max(1, min(10, room)) + 1)))
    return tuple(reversed(box))


def driver_bytes(tensor_address, elements, strides_bytes, box, element_strides, data_type, swizzle, fill):
    """Return the bytes of cuTensorMapEncodeTiled, called through ctypes with arguments that the test computes without
    the package."""
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    rank = elements.ndim
    tensor_map = (u64 * 16)()
    result = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.byref(tensor_map), u32(data_type), u32(rank), u64(tensor_address), (u64 * rank)(*elements.shape[::-1]),
        (u64 * rank)(*strides_bytes[::-1][1:]), (u32 * rank)(*box[::-1]), (u32 * rank)(*element_strides[::-1]),
        u32(0), u32(swizzle), u32(0), u32(fill),
    )  # fmt: skip
    assert result == 0, f"CUresult {result}"
    return bytes(tensor_map)


def canonical_strides(shape, strides_bytes, itemsize):
    """Return the strides that the package chooses for dimensions of extent 1. These are the contiguous strides, rounded
    up to multiples of 32 bytes."""
    out = list(strides_bytes)
    span = shape[-1] * itemsize
    for dim in range(len(shape) - 2, -1, -1):
        if shape[dim] == 1:
            out[dim] = -(-span // 32) * 32
        span = out[dim] * shape[dim]
    return out


def run_case(rng, reader, library, dtype_name, asked, data_type, rank, swizzle):
    itemsize = {"complex64": 8}.get(dtype_name) or np.dtype(
        "uint8" if dtype_name.startswith("float4") else _numpy_name(dtype_name)
    ).itemsize
    unit = max(1, 16 // itemsize)
    tensor, elements = random_view(rng, library, dtype_name, rank, unit)
    box = random_box(rng, rank, itemsize, SWIZZLE_SPANS[swizzle])
    element_strides = (*[int(s) for s in rng.choice([1, 1, 1, 2, 3], rank - 1)], 1)
    is_float = TensorMapDataType.FLOAT16 <= TensorMapDataType[data_type] <= TensorMapDataType.TFLOAT32_FTZ
    fill = "NAN" if is_float and rng.random() < 0.3 else "NONE"
    descriptor = cuda_tma.create_tensor_map(
        tensor, box_dim=box, element_strides=element_strides, data_type=asked, swizzle=swizzle, oob_fill=fill
    )
    coordinates = [
        int(rng.integers(-extent, size + 2)) for extent, size in zip(box[:-1], elements.shape[:-1], strict=True)
    ]
    coordinates.append(unit * int(rng.integers(-(box[-1] // unit), elements.shape[-1] // unit + 1)))
    window_bytes = descriptor.smem_bytes + GUARD_BYTES
    got = reader.read(descriptor, coordinates, window_bytes)
    wanted = expected_window(
        elements, box, element_strides, coordinates, swizzle,
        NAN_FILL[itemsize] if fill == "NAN" else 0, window_bytes,
        convert=tfloat32 if data_type.startswith("TFLOAT32") else None,
    )  # fmt: skip
    where = first_difference(got, wanted)
    assert where is None, (
        f"{dtype_name} as {data_type}, shape {elements.shape}, box {box}, element_strides {element_strides}, "
        f"swizzle {swizzle}, fill {fill}, at {coordinates}: byte {where} is {got[where]:#x}, not {wanted[where]:#x}"
    )
    strides_bytes = canonical_strides(elements.shape, elements.strides, itemsize)
    address = tensor.data_ptr() if library is torch else tensor.data.ptr
    assert bytes(descriptor) == driver_bytes(
        address, elements, strides_bytes, box, element_strides, TensorMapDataType[data_type],
        TensorMapSwizzle.parse(swizzle, "swizzle"), TensorMapOOBFill[fill],
    )  # fmt: skip
    return got, wanted


@pytest.mark.parametrize("library", [torch, cupy], ids=["torch", "cupy"])
def test_tiles_of_every_type_rank_and_swizzle(library, reader, publish):
    rng = np.random.default_rng(20261120)
    counts = collections.Counter()
    for dtype_name, asked, data_type in TORCH_TYPES if library is torch else CUPY_TYPES:
        for rank in RANKS:
            for swizzle in SWIZZLE_SPANS:
                for _ in range(CASES_PER_STRATUM):
                    run_case(rng, reader, library, dtype_name, asked, data_type, rank, swizzle)
                    counts[data_type] += 1
    per_type = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    publish(
        f"tiles, {library.__name__}: {sum(counts.values())} loads equal NumPy's tile and the driver's 128 bytes "
        f"(ranks 1 to 5 x swizzles NONE, 32B, 64B, 128B, out of bounds on every side): {per_type}"
    )
    strata = (len(TORCH_TYPES) if library is torch else len(CUPY_TYPES)) * len(RANKS) * len(SWIZZLE_SPANS)
    assert sum(counts.values()) == strata * CASES_PER_STRATUM


def test_a_planted_wrong_byte_is_caught(reader):
    rng = np.random.default_rng(1)
    got, wanted = run_case(rng, reader, torch, "float32", None, "FLOAT32", 2, "128B")
    where = int(rng.integers(0, got.size))
    got = got.copy()
    got[where] ^= 1
    assert first_difference(got, wanted) == where


def test_a_misaligned_innermost_coordinate_kills_the_context():
    """The test runs in a child process, because the host accepts the coordinate and the load destroys the context."""
    script = (
        "import torch, cuda_tma\n"
        "from tests.gpu.tile_reader import TileReader\n"
        "device = cuda_tma.Device(0); device.set_current()\n"
        "x = torch.zeros(64, 64, device='cuda')\n"
        "TileReader(device, device.create_stream()).read(cuda_tma.create_tensor_map(x, box_dim=(8, 8)), (0, 3))\n"
    )
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert child.returncode != 0
    assert "CUDA_ERROR_ILLEGAL_INSTRUCTION" in child.stderr
