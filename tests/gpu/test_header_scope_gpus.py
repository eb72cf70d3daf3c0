"""A test of a flag, by the device header, between GPUs that can access each other's memory. The simulator does not
watch these launches. The session would wait for the end of a watched launch, but this kernel waits for a later launch.
"""

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma
from tests.gpu._header_scope import BE_TOLD, ONE_THREAD, TELL

from .header_kernels import Machine, Places


@pytest.fixture
def machine(device, stream):
    return Machine(device, stream)


def test_a_flag_between_gpus(machine, stream):
    """GPU 0 stores into GPU 1's memory and sets a flag. GPU 1 waits for the flag and reads the data. The test repeats
    this ten times."""
    if driver.cuDeviceGetCount()[1] < 2:
        pytest.skip("needs two devices")
    if not driver.cuDeviceCanAccessPeer(0, 1)[1]:
        pytest.skip("device 0 cannot access device 1")
    other = cuda_tma.Device(1)
    other.set_current()
    try:
        there = Machine(other, other.create_stream())
        there.put("memory", np.zeros(8192, np.uint8))
        be_told = there.kernel("plain", ONE_THREAD + BE_TOLD.format(scope="sys", turn=0))
    finally:
        machine.device.set_current()
    # Peer access covers memory of cuMemAlloc. Memory of a pool would need access rights of the pool.
    driver.cuCtxEnablePeerAccess(driver.cuDevicePrimaryCtxRetain(1)[1], 0)
    tile = np.random.default_rng(10).integers(0, 256, 4096, np.uint8)
    machine.put("bytes", tile)
    tell = machine.kernel("plain", ONE_THREAD + TELL.format(scope="sys", turn=0, there="memory"))
    config = LaunchConfig(grid=1, block=128)
    other.set_current()
    try:
        error, shared_memory = driver.cuMemAlloc(8192)
        assert not error, error
        driver.cuMemsetD8(shared_memory, 0, 8192)
        driver.cuCtxSynchronize()
        arguments = (there.nowhere, Places(), int(shared_memory), there.buffers["bytes"], there.buffers["out"], 0)
        # The kernel be_told waits on one GPU for a kernel on the other GPU.
        cuda_tma.launch(there.stream, config, be_told, *arguments)
        machine.device.set_current()
        arguments = (machine.nowhere, Places(), int(shared_memory), machine.buffers["bytes"], machine.buffers["out"], 0)
        cuda_tma.launch(stream, config, tell, *arguments)
        stream.sync()
        other.set_current()
        there.stream.sync()
        assert np.array_equal(there.get("out", 4096), tile)
        driver.cuMemFree(shared_memory)
    finally:
        machine.device.set_current()
