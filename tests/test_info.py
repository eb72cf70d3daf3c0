"""What a machine has: versions always, driver and devices where there is one."""

import platform
from pathlib import Path

from cuda_tma import info

ANSWERS = {
    "cuInit": None,
    "cuDriverGetVersion": 13050,
    "cuDeviceGetCount": 2,
    "cuDeviceGetName": b"NVIDIA B200\0\0\0",
}


def answer(name, *arguments):
    """The driver's answers for two devices of compute capability 8.6 and 10.0."""
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


def test_what_is_not_installed_is_none():
    assert info._version("surely-not-a-package-of-this-machine") is None
