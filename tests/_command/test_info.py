"""Tests of ``cuda-tma info``, which prints the versions of the software, the driver and the devices."""

import platform
from pathlib import Path

import pytest

from cuda_tma._command import info

ANSWERS = {
    "cuInit": None,
    "cuDriverGetVersion": 13050,
    "cuDeviceGetCount": 2,
    "cuDeviceGetName": b"NVIDIA B200\0\0\0",
}


def answer(name, *arguments):
    """Return the driver's results for two devices, of compute capability 8.6 and 10.0."""
    if name == "cuDeviceGet":
        return arguments[0]
    if name == "cuDeviceGetAttribute":
        attribute, device = arguments
        return {"MAJOR": (8, 10), "MINOR": (6, 0)}[attribute.name[-5:]][device]
    return ANSWERS[name]


def test_without_a_driver(monkeypatch):
    def fail(*_):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    monkeypatch.setattr(info, "_call", fail)
    found = info.facts()
    assert found["driver"] == {"missing": "Failed to dlopen libcuda.so.1"} and found["devices"] == []
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["cuda-bindings"][:3] in ("12.", "13.")
    assert Path(found["include_path"], "cuda_tma", "tma.cuh").is_file()


def test_with_devices(monkeypatch):
    asked = []
    monkeypatch.setattr(info, "_call", answer)
    monkeypatch.setattr(info, "_has", lambda name, version: asked.append((name, version)) or version < 13000)
    found = info.facts()
    assert found["driver"]["cuda_version"] == "13.5"
    assert found["driver"]["functions"] == {
        "tiled and im2col maps": True,
        "im2col wide maps": True,
        "allocation class": False,
    }
    assert ("cuTensorMapSetAllocationClass", 13050) in asked
    assert found["devices"] == [
        {"name": "NVIDIA B200", "compute_capability": (8, 6), "has_tma": False},
        {"name": "NVIDIA B200", "compute_capability": (10, 0), "has_tma": True},
    ]


def test_a_missing_package_is_none():
    assert info._version("surely-not-a-package-of-this-machine") is None


class _Code:
    """A stand-in for an error code of cuda.bindings, which is an int with a name."""

    def __init__(self, value):
        self.value, self.name = value, "CUDA_SUCCESS" if value == 0 else f"CUDA_ERROR_{value}"

    def __int__(self):
        return self.value


@pytest.fixture
def bindings(monkeypatch):
    """Replace the functions of cuda.bindings.driver by functions that return the test's values."""
    driver = pytest.importorskip("cuda.bindings.driver")
    return lambda name, function: monkeypatch.setattr(driver, name, function)


def test_calls_return_the_value_after_the_error(bindings):
    bindings("cuDeviceGetCount", lambda *arguments: (_Code(0), [2, arguments]))
    assert info._call("cuDeviceGetCount", 5, 6) == [2, (5, 6)]
    bindings("cuInit", lambda flags: (_Code(0),))
    assert info._call("cuInit", 0) is None


def test_a_call_that_failed_is_named(bindings):
    bindings("cuInit", lambda flags: (_Code(100),))
    with pytest.raises(RuntimeError, match="^cuInit failed with CUDA_ERROR_100$"):
        info._call("cuInit", 0)
    found = info.facts()
    assert found["driver"] == {"missing": "cuInit failed with CUDA_ERROR_100"} and found["devices"] == []


@pytest.mark.parametrize(("error", "address", "has"), [(0, 4096, True), (0, 0, False), (500, 4096, False)])
def test_a_function_is_there_if_it_has_an_address(bindings, error, address, has):
    asked = []
    bindings("cuGetProcAddress", lambda *arguments: asked.append(arguments) or (_Code(error), address, None))
    assert info._has("cuTensorMapEncodeTiled", 12000) is has
    assert asked == [(b"cuTensorMapEncodeTiled", 12000, 0)]


def test_tma_needs_9_0(monkeypatch):
    def answer_of(capability):
        parts = dict(zip(("MAJOR", "MINOR"), capability, strict=True))
        return lambda name, *arguments: (
            parts[arguments[0].name[-5:]] if name == "cuDeviceGetAttribute" else b"a GPU\0rest"
        )

    for capability, has_tma in (((8, 9), False), ((9, 0), True), ((12, 1), True)):
        monkeypatch.setattr(info, "_call", answer_of(capability))
        assert info._device(0) == {"name": "a GPU", "compute_capability": capability, "has_tma": has_tma}


def test_every_device_is_queried(monkeypatch):
    monkeypatch.setattr(info, "_call", lambda name, *arguments: 3 if name == "cuDeviceGetCount" else arguments[0])
    monkeypatch.setattr(info, "_device", lambda device: {"name": device})
    assert info._devices() == [{"name": 0}, {"name": 1}, {"name": 2}]


def test_the_functions_that_a_driver_may_lack(monkeypatch):
    asked = []
    monkeypatch.setattr(info, "_call", lambda name, *arguments: {"cuInit": None, "cuDriverGetVersion": 12090}[name])
    monkeypatch.setattr(info, "_has", lambda *arguments: asked.append(arguments) or True)
    assert info._driver() == {
        "cuda_version": "12.9",
        "functions": {"tiled and im2col maps": True, "im2col wide maps": True, "allocation class": True},
    }
    assert asked == [
        ("cuTensorMapEncodeTiled", 12000),
        ("cuTensorMapEncodeIm2colWide", 12080),
        ("cuTensorMapSetAllocationClass", 13050),
    ]
