"""Tests of a launch's dynamic shared memory, and of the kernel's limit, which launch() raises."""

import pytest
from cuda import core

import cuda_tma
from cuda_tma._compile.compiled import Compiled, remember
from cuda_tma._launch.shared_memory import allow_on_current_device, static_shared_bytes_of
from tests.support.launching import HANDLES, ForeignStream

KB = 1024


@pytest.fixture
def kernel(driver):
    """Return a function that makes a kernel from two sizes of shared memory in bytes, the static size and the dynamic
    size."""

    def kernel(static=0, dynamic=0):
        handle = next(HANDLES)
        driver.kernels[handle], driver.shared_bytes[handle] = ("k", []), static
        kernel = core.Kernel.from_handle(handle)
        if dynamic:
            ptx = f".entry k(\n// cuda_tma::dynamic_shared {dynamic}\n}}\n"
            remember(kernel, Compiled("k<4>", "k", "", "sm_90a", ptx, b""))
        return kernel

    return kernel


@pytest.fixture
def stream():
    return core.Stream.from_handle(0x1000)


def config(shmem_size=0):
    return core.LaunchConfig(grid=1, block=32, shmem_size=shmem_size)


LAUNCHES = [
    lambda stream, config, kernel: cuda_tma.launch(stream, config, kernel),
    lambda stream, config, kernel: cuda_tma.prepare(kernel, config)(stream),
]


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize(("static", "dynamic"), [(0, 49 * KB), (0, 227 * KB), (40 * KB, 9 * KB), (16, 227 * KB - 16)])
def test_the_limit_is_raised_once_to_all_that_there_is(driver, kernel, stream, launch, static, dynamic):
    taken = kernel(static)
    for _ in range(3):
        launch(stream, config(dynamic), taken)
    launch(stream, config(48 * KB - static), taken)
    handle = int(taken.handle)
    assert driver.called("cuKernelSetAttribute") == [(8, 227 * KB - static, handle, 0)]
    assert [each.shared_mem_bytes for each in driver.launches] == [dynamic] * 3 + [48 * KB - static]


@pytest.mark.parametrize(("static", "dynamic"), [(0, 0), (0, 48 * KB), (8 * KB, 40 * KB), (40 * KB, 8 * KB)])
def test_allowed_values_are_unchanged(driver, kernel, stream, static, dynamic):
    taken = kernel(static)
    driver.shared_limits[int(taken.handle), 0] = 100 * KB if static == 8 * KB else 48 * KB - static
    for _ in range(3):
        cuda_tma.launch(stream, config(dynamic), taken)
    assert driver.called("cuKernelSetAttribute") == []
    # The package queries the limit on dynamic shared memory only once.
    assert len(driver.called("cuKernelGetAttribute")) == (1 if dynamic else 0)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_more_than_the_device_has(driver, kernel, stream, launch):
    message = (
        "kernel k is launched with 300000 bytes of dynamic shared memory, and device 0 has 232448 for a thread block; "
        "use fewer stages or smaller tiles"
    )
    with pytest.raises(ValueError, match=message):
        launch(stream, config(300_000), kernel())
    with pytest.raises(
        ValueError, match="with 232448 bytes of dynamic shared memory in addition to its static 16, and device"
    ):
        launch(stream, config(232_448), kernel(16))
    assert driver.launches == [] and driver.called("cuKernelSetAttribute") == []


def test_each_device_has_a_limit(driver, kernel):
    driver.devices = {0xBEEF: 1}
    taken, handle = kernel(), None
    for context, address in [(0xC0DE, 0x1000), (0xBEEF, 0x2000), (0xC0DE, 0x1000)]:
        driver.stream_context = driver.context = context
        driver.device = driver.devices.get(context, 0)
        cuda_tma.launch(core.Stream.from_handle(address), config(100 * KB), taken)
        handle = int(taken.handle)
    assert driver.called("cuKernelSetAttribute") == [(8, 227 * KB, handle, 0), (8, 227 * KB, handle, 1)]


def test_streams_with_an_unknown_context(driver, kernel):
    """A default stream belongs to the current context, which each launch reads again."""
    taken = kernel()
    for device in (0, 1, 0):
        driver.context, driver.device = 0xC0DE + device, device
        driver.stream_context = driver.context
        cuda_tma.launch(ForeignStream(), config(100 * KB), taken)
    assert [arguments[3] for arguments in driver.called("cuKernelSetAttribute")] == [0, 1]


@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_compiled_kernel_gets_its_arguments(driver, kernel, stream, launch):
    taken = kernel(dynamic=100 * KB)
    launch(stream, config(), taken)
    launch(stream, config(120 * KB), taken)
    launch(stream, {"grid": 1, "block": 32}, taken)
    with pytest.raises(ValueError, match="shmem_size=65536 is less than the 102400 bytes of dynamic shared memory "
                                         "that kernel k<4> uses; leave shmem_size out, "
                                         "and the launch allocates them"):  # fmt: skip
        launch(stream, config(64 * KB), taken)
    assert [each.shared_mem_bytes for each in driver.launches] == [100 * KB, 120 * KB, 100 * KB]
    assert len(driver.called("cuKernelSetAttribute")) == 1


@pytest.mark.parametrize(("dynamic", "calls"), [(16, 0), (100 * KB, 1), (300 * KB, 0)])
def test_occupancy_of_a_kernel_before_a_launch(driver, kernel, stream, dynamic, calls):
    """An occupancy query raises a kernel's limit on shared memory up to the device's limit. Only a launch reports an
    excess."""
    taken = kernel(8, dynamic)
    allow_on_current_device(taken, dynamic)
    raised = driver.called("cuKernelSetAttribute")
    assert raised == calls * [(8, 227 * KB - 8, int(taken.handle), 0)]
    if dynamic < 227 * KB:
        cuda_tma.launch(stream, config(), taken)
        assert driver.called("cuKernelSetAttribute") == raised


@pytest.mark.parametrize("ask", [lambda kernel: allow_on_current_device(kernel, 64 * KB), static_shared_bytes_of])
def test_a_query_before_anything_else_loads_the_driver(unfound_driver, ask):
    """A query of a kernel's shared memory may be the first driver call of a process. The process of the test has no
    driver."""
    with pytest.raises(RuntimeError, match="no NVIDIA driver"):
        ask(core.Kernel.from_handle(next(HANDLES)))


def test_a_driver_that_refuses(driver, kernel, stream):
    for name in ("cuKernelGetAttribute", "cuKernelSetAttribute"):
        driver.errors = {name: 700}
        with pytest.raises(cuda_tma._cuda.core.CUDAError, match=f"{name} failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
            cuda_tma.launch(stream, config(100 * KB), kernel())
    assert driver.launches == []
