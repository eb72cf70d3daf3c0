"""Tests of objects of two devices: each object works on its own device, and a call with objects of both devices is
refused."""

import numpy as np
import pytest
from cuda import core
from cuda.bindings import driver

import cuda_tma

from .tile_reader import TileReader, expected_window, first_difference

torch = pytest.importorskip("torch")

BOX = (16, 32)
PUT_MAP = """
struct alignas(64) Map { unsigned long long at[16]; };
extern "C" __global__ void put_map(const __grid_constant__ Map map, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = map.at[i];
}"""


@pytest.fixture(autouse=True)
def back_to_the_first(device):
    yield
    device.set_current()


@pytest.fixture
def devices():
    if driver.cuDeviceGetCount()[1] < 2:
        pytest.skip("needs two devices")
    return cuda_tma.Device(0), cuda_tma.Device(1)


@pytest.fixture
def tensors(devices):
    """Return a tensor on each device, with equal geometry and different values."""
    return [torch.arange(64.0 * 128, device=f"cuda:{n}").reshape(64, 128) + n for n in range(2)]


def read_on(device, tensor):
    """Return whether a load through a map of the tensor delivers its tile."""
    device.set_current()
    stream = device.create_stream()
    descriptor = device.create_tensor_map(tensor, box_dim=BOX, swizzle="128B")
    with torch.cuda.device(device.device_id):
        window = TileReader(device, stream).read(descriptor, (16, 32))
    elements = tensor.cpu().numpy().view(np.uint32)
    wanted = expected_window(elements, BOX, (1, 1), (16, 32), "128B", 0, len(window))
    return first_difference(window, wanted) is None


def test_each_device_reads_its_own(devices, tensors):
    for device, tensor in zip(devices, tensors, strict=True):
        assert read_on(device, tensor)


def test_a_tensor_of_another_device_is_refused(devices, tensors):
    for n, device in enumerate(devices):
        device.set_current()
        with pytest.raises(
            cuda_tma.TensorMapError, match=rf"on device {1 - n} and the current device is {n}.*Device\({1 - n}\).set_c"
        ):
            cuda_tma.create_tensor_map(tensors[1 - n], box_dim=BOX)
        with pytest.raises(cuda_tma.TensorMapError, match=rf"Device\({1 - n}\).create_tensor_map was called while dev"):
            devices[1 - n].create_tensor_map(tensors[1 - n], box_dim=BOX)
        own = device.create_tensor_map(tensors[n], box_dim=BOX)
        assert own.device == device and own.tensor is tensors[n]


def test_an_address_is_not_replaced_by_one_of_another_device(devices, tensors):
    descriptor = devices[0].create_tensor_map(tensors[0], box_dim=BOX)
    before = bytes(descriptor)
    for other in (tensors[1], cuda_tma.StridedMemoryView.from_any_interface(tensors[1], stream_ptr=-1)):
        with pytest.raises(cuda_tma.TensorMapError, match="on device 1 and the current device is 0"):
            descriptor.replace_address(other)
    assert bytes(descriptor) == before and descriptor.tensor is tensors[0]
    other = tensors[0].clone()
    devices[1].set_current()
    with pytest.raises(cuda_tma.TensorMapError, match="with the map's own context current"):
        descriptor.replace_address(other)
    assert bytes(descriptor) == before and descriptor.tensor is tensors[0]
    devices[0].set_current()
    descriptor.replace_address(other)
    assert descriptor.params.global_address == descriptor.tensor.data_ptr()


def test_a_launch_takes_maps_of_its_streams_device(devices, tensors):
    maps, streams = [], []
    for device, tensor in zip(devices, tensors, strict=True):
        device.set_current()
        maps.append(device.create_tensor_map(tensor, box_dim=BOX))
        streams.append(device.create_stream())
    options = core.ProgramOptions(std="c++17", arch=f"sm_{devices[0].arch}")
    kernel = core.Program(PUT_MAP, "c++", options).compile("cubin").get_kernel("put_map")
    outs = [torch.zeros(16, dtype=torch.uint64, device=tensor.device) for tensor in tensors]
    config = core.LaunchConfig(grid=1, block=1)
    # The first launch is on device 0. For device 1, the package must look up the kernel again.
    for n in (0, 1):
        torch.cuda.synchronize(n)
        with pytest.raises(
            cuda_tma.TensorMapError, match=f"made on device {1 - n} in .* the launch is on device {n} in"
        ):
            cuda_tma.launch(streams[n], config, kernel, maps[1 - n], outs[n])
        cuda_tma.launch(streams[n], config, kernel, maps[n], outs[n])
        streams[n].sync()
        assert outs[n].cpu().numpy().tobytes() == bytes(maps[n])
    prepared = cuda_tma.prepare(kernel, config, maps[0], outs[0])
    with pytest.raises(cuda_tma.TensorMapError, match="made on device 0"):
        prepared(streams[1])


def test_many_maps_are_uploaded_to_their_device(devices, tensors):
    devices[1].set_current()
    maps = cuda_tma.create_tensor_maps([tensors[1]] * 3, cuda_tma.TensorMapOptions(BOX))
    uploaded = maps.upload(devices[1].create_stream())
    assert uploaded.device_id == 1 and uploaded.size == maps.nbytes
    with pytest.raises(cuda_tma.TensorMapError, match="on device 0 and the current device is 1"):
        cuda_tma.create_tensor_maps(tensors, cuda_tma.TensorMapOptions(BOX))


def test_memory_of_a_peer_is_read_through_its_address(device, devices, tensors):
    error, can_access = driver.cuDeviceCanAccessPeer(0, 1)
    if error or not can_access:
        pytest.skip("device 0 cannot access device 1")
    error, peer = driver.cuDevicePrimaryCtxRetain(1)
    assert error == driver.CUresult.CUDA_SUCCESS
    already_enabled = driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    assert driver.cuCtxEnablePeerAccess(peer, 0)[0] in (0, already_enabled)
    torch.cuda.synchronize(1)
    descriptor = device.create_tensor_map(tensors[0], box_dim=BOX)
    descriptor.replace_address(tensors[1].data_ptr())
    window = TileReader(device, device.create_stream()).read(descriptor, (16, 32))
    elements = tensors[1].cpu().numpy().view(np.uint32)
    assert first_difference(window, expected_window(elements, BOX, (1, 1), (16, 32), "NONE", 0, len(window))) is None


TYPED = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<16, 32>, SWIZZLE_128B>;
extern "C" __global__ void copy(const __grid_constant__ TiledMap<Window> from, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Window& tile = *reinterpret_cast<Window*>(memory + 64 * 1024);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, Coordinates{32, 16});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) out[i] = tile(i / 32, i % 32);
}
"""


def test_tensors_are_arguments_of_a_launch_on_their_device(devices, tensors):
    """Each device has its own limit on shared memory. A tensor of the other device is refused, and no map is
    created."""
    kernel = cuda_tma.compile(TYPED, "copy", cache=False)
    config = core.LaunchConfig(grid=1, block=32, shmem_size=68 * 1024)
    outs = [torch.zeros(16, 32, device=f"cuda:{n}") for n in range(2)]
    streams = []
    for device in devices:
        device.set_current()
        torch.cuda.synchronize(device.device_id)
        streams.append(device.create_stream())
    for n, device in enumerate(devices):
        device.set_current()
        cuda_tma.launch(streams[n], config, kernel, tensors[n], outs[n])
        streams[n].sync()
        assert torch.equal(outs[n], tensors[n][16:32, 32:64])
        with pytest.raises(cuda_tma.TensorMapError, match=rf"argument 0 \(from\) .* on device {1 - n} and the current"):
            cuda_tma.launch(streams[n], config, kernel, tensors[1 - n], outs[n])
        with pytest.raises(cuda_tma.TensorMapError, match=rf"argument 0: a tensor's map .* Device\({1 - n}\).set_curr"):
            cuda_tma.launch(streams[1 - n], config, kernel, tensors[n], outs[n])
        torch.cuda.synchronize()
