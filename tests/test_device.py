"""Tests of Device: the methods of cuda.core, which a fake class provides, and the additions of this package."""

import pytest
from cuda import core

import cuda_tma
from cuda_tma import Device, TensorMapError


class CoreDevice:
    """A stand-in for the class Device of cuda.core, with the parts that the package's Device uses."""

    count = 3

    def __init__(self, device_id=None):
        self.device_id = self._device_id = 0 if device_id is None else device_id

    @classmethod
    def get_all_devices(cls):
        return tuple(cls(n) for n in range(cls.count))

    def __int__(self):
        return self.device_id

    def __eq__(self, other):
        return isinstance(other, CoreDevice) and self.device_id == other.device_id

    def __hash__(self):
        return 1000 + self.device_id


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(cuda_tma._device, "_CoreDevice", CoreDevice)


def test_a_device_is_cuda_cores(stand_in):
    device = Device(2)
    assert isinstance(device, core.Device) and type(device) is Device
    assert (device.device_id, Device().device_id) == (2, 0)
    assert device == CoreDevice(2) and device == Device(2) and device is not Device(2)
    assert device != CoreDevice(1) and device != Device(1) and device != 2
    assert hash(device) == 1002 and len({device, Device(2), Device(1)}) == 2


def test_attributes_are_stored_in_cuda_cores(stand_in):
    """A Device stores each attribute in the slot of cuda.core, if cuda.core has a slot for the attribute."""
    device = Device(1)
    slots = [name for name, member in vars(core.Device).items() if type(member).__name__ == "member_descriptor"]
    assert slots
    for name in slots:
        setattr(device, name, f"new {name}")
        assert getattr(device._core, name) == getattr(device, name) == f"new {name}"
    with pytest.raises(AttributeError):
        _ = device.no_such_attribute


def test_all_devices(stand_in):
    devices = Device.get_all_devices()
    assert [device.device_id for device in devices] == [0, 1, 2] and type(devices) is tuple
    assert {type(device) for device in devices} == {Device}


def test_a_descriptor_is_made_only_on_the_current_device(stand_in, driver, device_tensor):
    tensor = device_tensor((64, 128))
    by_keywords = Device(0).create_tensor_map(tensor, box_dim=(16, 32), swizzle="128B")
    by_options = Device(0).create_tensor_map(tensor, cuda_tma.TensorMapOptions((16, 32), swizzle="128B"))
    assert by_keywords == by_options and by_options.params.box_dim == (32, 16) and by_options.params.swizzle == 3
    with pytest.raises(
        TensorMapError,
        match=r"^Device\(1\).create_tensor_map was called while device 0 is current; call Device\(1\).set_current\(\)",
    ):
        Device(1).create_tensor_map(tensor, box_dim=(16, 32))
    driver.device, driver.context = 1, 0xBEEF
    with pytest.raises(TensorMapError, match="while device 1 is current"):
        Device(0).create_tensor_map(tensor, box_dim=(16, 32))
    made = Device(1).create_tensor_map(device_tensor((64, 128), device_id=1), box_dim=(16, 32))
    assert made.device == Device(1) and type(made.device) is Device
    driver.context = 0
    with pytest.raises(TensorMapError, match="no CUDA context is current on this thread"):
        Device(1).create_tensor_map(tensor, box_dim=(16, 32))


@pytest.fixture
def no_driver(unfound_driver, monkeypatch):
    """Simulate a machine without a driver, even if this machine has one."""

    def not_found(*_):
        raise OSError("no library")

    monkeypatch.setattr(CoreDevice, "__init__", not_found)
    monkeypatch.setattr(CoreDevice, "get_all_devices", not_found)


@pytest.mark.parametrize("make", [Device, lambda: Device(1), Device.get_all_devices])
def test_without_a_driver_an_error_names_the_calls_that_need_one(stand_in, no_driver, make):
    with pytest.raises(RuntimeError, match="no NVIDIA driver was found, and making .* cuda_tma.simulate.Device"):
        make()


def test_with_a_driver_errors_are_cuda_cores(stand_in, driver, monkeypatch):
    def wrong(*_):
        raise ValueError("device_id must be within [0, 2)")

    monkeypatch.setattr(CoreDevice, "__init__", wrong)
    with pytest.raises(ValueError, match="device_id must be within"):
        Device(5)
