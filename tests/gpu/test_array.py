"""Tests of an array of maps in device memory, from which a kernel selects a map by its index."""

import subprocess
import sys

import numpy as np
import pytest
from cuda import core
from cuda.bindings import driver

import cuda_tma

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")
# The simulator runs only the launch of 64 CTAs, because the later launches have 10,000 CTAs.
WATCHED_LAUNCHES = 1

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

// CTA i loads tile (0, 0) of map i and copies it out.
extern "C" __global__ void first_tiles(const TensorMap* maps, float* out) {
    __shared__ alignas(128) float tile[16 * 32];
    __shared__ Barrier full;
    const TensorMap& map = maps[blockIdx.x];
    if (threadIdx.x == 0) {
        fence_tensor_map_acquire(map);  // a copy wrote the maps through the generic proxy
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) out[blockIdx.x * 16 * 32 + i] = tile[i];
}
"""
OPTIONS = cuda_tma.TensorMapOptions((16, 32))


@pytest.fixture(scope="module")
def kernel(device):
    return cuda_tma.compile(SOURCE, "first_tiles", cache=False)


def first_tiles(kernel, stream, maps):
    out = torch.zeros(len(maps), 16, 32, device="cuda")
    torch.cuda.synchronize()
    on_device = maps.upload(stream)
    cuda_tma.launch(stream, core.LaunchConfig(grid=len(maps), block=128), kernel, on_device, out)
    stream.sync()
    return out


def test_each_cta_loads_with_its_own_map(kernel, stream):
    tensors = [torch.randn(16 + n, 64, device="cuda") for n in range(64)]
    maps = cuda_tma.create_tensor_maps(tensors, OPTIONS)
    assert torch.equal(first_tiles(kernel, stream, maps), torch.stack([x[:16, :32] for x in tensors]))
    assert bytes(maps) == b"".join(bytes(cuda_tma.create_tensor_map(x, OPTIONS)) for x in tensors)


def test_ten_thousand_addresses_of_one_geometry(kernel, stream):
    pool = torch.randn(10_000, 16, 32, device="cuda")
    addresses = pool.data_ptr() + np.arange(10_000, dtype=np.uint64) * 16 * 32 * 4
    maps = cuda_tma.create_tensor_maps(pool[0], OPTIONS, addresses=addresses)
    assert torch.equal(first_tiles(kernel, stream, maps), pool)
    maps.replace_addresses(addresses[::-1])
    assert torch.equal(first_tiles(kernel, stream, maps), pool.flip(0))


def test_a_graph_uploads_at_every_launch(kernel, device, stream):
    """The graph contains the copy of the tensor maps, but does not own their memory. The test launches the graph twice,
    each time with different tensor maps."""
    pool = torch.randn(8, 16, 32, device="cuda")
    addresses = pool.data_ptr() + np.arange(8, dtype=np.uint64) * 16 * 32 * 4
    maps = cuda_tma.create_tensor_maps(pool[0], OPTIONS, addresses=addresses)
    out = torch.zeros(8, 16, 32, device="cuda")
    torch.cuda.synchronize()
    builder = device.create_graph_builder().begin_building()
    on_device = maps.upload(builder)
    cuda_tma.launch(builder, core.LaunchConfig(grid=8, block=128), kernel, on_device, out)
    graph = builder.end_building().complete()
    for order in (slice(None), slice(None, None, -1)):
        maps.replace_addresses(addresses[order])
        graph.launch(stream)
        stream.sync()
        assert torch.equal(out, pool[list(range(8))[order]])
    address = int(on_device.handle)
    del on_device
    result, _ = driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
    # The driver does not accept the address of a freed buffer.
    assert result == driver.CUresult.CUDA_ERROR_INVALID_VALUE


TORCH_ALONE = """
import numpy as np, torch, cuda_tma
x = torch.arange(64.0 * 128, device="cuda").reshape(64, 128)
maps = cuda_tma.create_tensor_maps([x, x], cuda_tma.TensorMapOptions((16, 32)))

class Stream:
    def __init__(self, handle): self.__cuda_stream__ = (0, handle)

for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
    buffer = maps.upload(Stream(stream.cuda_stream))
    stream.synchronize()
    back = torch.from_dlpack(buffer).cpu().numpy().view(np.uint8)
    assert back.tobytes() == bytes(maps), back
    del buffer, back
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(graph, stream=side):
    buffer = maps.upload(Stream(side.cuda_stream))
for _ in range(2):
    graph.replay()
torch.cuda.synchronize()
assert torch.from_dlpack(buffer).cpu().numpy().tobytes() == bytes(maps)
print("fine")
"""
FREED_MEANWHILE = """
other, y = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
with torch.cuda.graph(other, stream=side):
    y.add_(1)
    del buffer
other.replay()
torch.cuda.synchronize()
assert y.item() == 1
print("freed")
"""


def test_only_torch_made_the_context():
    """In the test's process, only torch has created a context. The uploads run eagerly, on the default stream, and in a
    capture of torch."""
    child = subprocess.run([sys.executable, "-c", TORCH_ALONE], capture_output=True, text=True)
    assert child.stdout.strip() == "fine", child.stderr


def test_a_buffer_that_dies_during_another_capture():
    """The release of a Buffer during a stream capture does not affect the capture."""
    child = subprocess.run([sys.executable, "-c", TORCH_ALONE + FREED_MEANWHILE], capture_output=True, text=True)
    assert child.stdout.split() == ["fine", "freed"], child.stderr
