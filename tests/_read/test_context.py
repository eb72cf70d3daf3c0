"""Tests of a tensor's memory owner, of its device, and of the context in which its tensor map is valid."""

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapError
from cuda_tma._read.context import current_device
from cuda_tma._read.dlpack import describe_tensor
from tests.support.capsules import Exporter, OldExporter

ADDRESS = 1 << 32
RANGE = (ADDRESS, 2 * ADDRESS)
# The numbers are values of the enum DLDeviceType of DLPack.
CPU, CUDA, PINNED, METAL, ROCM, MANAGED, ONEAPI = 1, 2, 3, 8, 10, 13, 14


def create(tensor):
    return cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))


@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
@pytest.mark.parametrize("device_type", [METAL, ROCM, ONEAPI, 7])
def test_memory_of_other_vendors_is_refused(driver, exporter, device_type):
    with pytest.raises(TensorMapError, match=f"DLPack device type {device_type}, which is not a CUDA device's memory"):
        create(exporter(device_type=device_type))
    assert driver.encoded == 0


@pytest.mark.parametrize("device_type", [PINNED, MANAGED])
@pytest.mark.parametrize("device_id", [0, 1])
def test_pinned_and_managed_memory_is_every_devices(driver, device_type, device_id):
    tensor = Exporter(device_type=device_type)
    tensor.layout.device_id = device_id
    assert create(tensor).params.global_address == ADDRESS


def test_memory_of_another_device_is_refused_unless_it_is_managed(driver):
    """An exporter may report managed memory as memory of one device."""
    tensor = Exporter()
    tensor.layout.device_id = 1
    driver.allocated = {RANGE: 1}
    with pytest.raises(TensorMapError, match="the tensor is on device 1 and the current device is 0"):
        create(tensor)
    driver.managed = (RANGE,)
    assert create(tensor).params.global_address == ADDRESS
    driver.errors["cuPointerGetAttribute"] = 1
    with pytest.raises(TensorMapError, match="the tensor is on device 1"):
        create(tensor)
    tensor.layout.device_id = 0
    assert create(tensor).params.global_address == ADDRESS


@pytest.mark.parametrize("device_type", [0, CPU])
def test_memory_without_a_device_or_labeled_cpu(driver, device_type):
    tensor = Exporter(device_type=device_type)
    with pytest.raises(TensorMapError, match=r"the tensor is in host memory \(address 0x100000000\)"):
        create(tensor)
    driver.allocated = {RANGE: 1}
    with pytest.raises(TensorMapError, match="the tensor is on device 1 and the current device is 0"):
        create(tensor)
    for known in ({"allocated": {RANGE: 0}}, {"pinned": (RANGE,)}, {"managed": (RANGE,)}):
        driver.allocated, driver.pinned, driver.managed = {}, (), ()
        for name, value in known.items():
            setattr(driver, name, value)
        assert create(tensor).params.global_address == ADDRESS


def test_facts_about_a_view_are_not_queried_again(driver):
    driver.allocated = {RANGE: 0}
    exported = describe_tensor((64, 128), address=ADDRESS)
    for _ in range(2):
        with pytest.raises(TensorMapError):
            cuda_tma.create_tensor_map(exported, box_dim=(16,))
    view = cuda_tma.StridedMemoryView.from_dlpack(Exporter(device_type=CPU), stream_ptr=-1)
    create(view)
    asked = len(driver.called("cuPointerGetAttribute"))
    create(view)
    assert len(driver.called("cuPointerGetAttribute")) == asked > 0


@pytest.mark.parametrize("nth", [0, 2])
def test_a_driver_that_fails_to_report_the_owner_of_memory(driver, nth):
    """In the test, the driver fails at the first query of the memory's attributes, or at the third query, which returns
    the device."""
    answers, ask = [0] * nth + [700], type(driver).cuPointerGetAttribute
    driver.allocated = {RANGE: 0}

    def answer(*arguments):
        return (answers.pop(0) if answers else 0) or ask(driver, *arguments)

    driver.cuPointerGetAttribute = answer
    driver.install()
    with pytest.raises(Exception, match="cuPointerGetAttribute failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
        create(Exporter(device_type=CPU))
    assert create(Exporter(device_type=CPU)).params.global_address == ADDRESS


def test_no_memory(driver):
    """For a tensor without memory, the package does not query the driver."""
    for device_type in (CPU, CUDA, PINNED, MANAGED, ROCM, 0):
        with pytest.raises(TensorMapError, match=r"has no memory of its own \(address 0\)"):
            create(Exporter(device_type=device_type, address=0))
    assert driver.called("cuPointerGetAttribute") == []


def test_memory_may_begin_at_an_offset(driver):
    tensor = Exporter(address=0)
    tensor.layout.byte_offset = 0x4000
    assert create(tensor).params.global_address == 0x4000
    tensor.layout.data, tensor.layout.byte_offset = ADDRESS, 64
    assert create(tensor).params.global_address == ADDRESS + 64


def test_the_current_device(driver):
    """The package reads the current device again after the current context has changed."""
    driver.device, driver.context = 1, 0xA0
    assert (current_device(), current_device()) == (1, 1)
    assert len(driver.called("cuCtxGetDevice")) == 1
    driver.device, driver.context = 2, 0xA1
    assert current_device() == 2
    driver.context = 0
    with pytest.raises(TensorMapError, match=r"no CUDA context is current on this thread.*Device\(\).set_current\(\)"):
        current_device()
    driver.context, driver.errors = 0xA1, {"cuCtxGetCurrent": 3}
    with pytest.raises(TensorMapError, match="no CUDA context is current"):
        current_device()
    driver.context, driver.errors = 0xA2, {"cuCtxGetDevice": 700}
    # The function current_device() does not cache a failure.
    for _ in range(2):
        with pytest.raises(Exception, match="cuCtxGetDevice failed with CUDA_ERROR_ILLEGAL_ADDRESS"):
            current_device()
    driver.errors, driver.device = {}, 3
    assert current_device() == 3


PRIMARY, OTHER, GREEN = 0xC0DE, 0xBEEF, 0x6EE


@pytest.fixture
def launch_elsewhere(driver, device_tensor):
    """Launch a descriptor of one context on a stream of another context."""

    def launch(made_in, launched_in):
        driver.context, driver.stream_context = made_in, launched_in
        driver.kernels[0x1000] = ("k", [128])
        descriptor = create(device_tensor((64, 128)))
        cuda_tma.launch(core.Stream.from_handle(0x5000), core.LaunchConfig(grid=1, block=32),
                        core.Kernel.from_handle(0x1000), descriptor)  # fmt: skip

    return launch


def refused(launched_in, device):
    return pytest.raises(TensorMapError, match=f"the launch is on device {device} in context {launched_in:#x}")


def test_green_contexts_share_the_memory_of_the_primary_one(driver, launch_elsewhere):
    driver.green = (GREEN,)
    launch_elsewhere(PRIMARY, GREEN)
    launch_elsewhere(GREEN, PRIMARY)
    with refused(OTHER, 0):
        launch_elsewhere(PRIMARY, OTHER)
    with refused(PRIMARY, 0):
        launch_elsewhere(OTHER, PRIMARY)
    assert (driver.retained, driver.stack, len(driver.launches)) == (0, [], 2)


def test_a_device_whose_primary_context_is_not_active_has_none(driver, launch_elsewhere):
    """The package does not retain a primary context that is not active, because that call would create the context."""
    driver.primary, driver.green = {}, (GREEN,)
    with refused(OTHER, 0):
        launch_elsewhere(GREEN, OTHER)
    assert driver.called("cuDevicePrimaryCtxRetain") == []


@pytest.mark.parametrize("failing", ["cuStreamGetGreenCtx", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxGetState"])
def test_a_driver_that_does_not_report_shared_contexts(driver, launch_elsewhere, failing):
    driver.green, driver.errors = (GREEN,), {failing: 1}
    with refused(PRIMARY, 0):
        launch_elsewhere(GREEN, PRIMARY)
    assert (driver.retained, driver.stack) == (0, [])


def test_a_driver_without_green_contexts(driver, launch_elsewhere):
    driver.install(without=["cuStreamGetGreenCtx"])
    driver.green = (GREEN,)
    launch_elsewhere(PRIMARY, PRIMARY)
    with refused(GREEN, 0):
        launch_elsewhere(PRIMARY, GREEN)


def test_a_destroyed_context_has_no_device(driver, launch_elsewhere):
    driver.green, driver.errors = (GREEN,), {"cuCtxPushCurrent": 201}
    with refused(GREEN, -1):
        launch_elsewhere(PRIMARY, GREEN)
    assert driver.stack == []
