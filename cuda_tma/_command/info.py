"""The versions, the driver and the devices of this machine, all of which may be missing."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from .. import include_path
from .._limits import TMA_SINCE

__all__ = ["facts"]

_PACKAGES = ("cuda-tma", "cuda-core", "cuda-bindings", "numpy", "ml_dtypes", "rich", "matplotlib", "nvidia-cuda-nvrtc")
# Each row contains an entry point of the driver, the first CUDA version with this entry point, and its purpose.
_OPTIONAL_FUNCTIONS = {
    "cuTensorMapEncodeTiled": (12000, "tiled and im2col maps"),
    "cuTensorMapEncodeIm2colWide": (12080, "im2col wide maps"),
    "cuTensorMapSetAllocationClass": (13050, "allocation class"),
}


def facts() -> dict[str, Any]:
    """Return the versions, paths, driver and devices of this machine.

    Returns
    -------
    dict
        The keys are ``versions`` (None for packages that are not installed), ``include_path``, ``driver`` (with
        ``cuda_version`` and ``functions``, or with the reason ``missing``), and ``devices`` (a list of dicts with
        ``name``, ``compute_capability`` and ``has_tma``).
    """
    versions = {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}
    found = {"versions": versions, "include_path": include_path()}
    try:
        return found | {"driver": _driver(), "devices": _devices()}
    except Exception as error:  # The versions 12.9 and 13.x of cuda.bindings raise different errors without a driver.
        return found | {"driver": {"missing": str(error)}, "devices": []}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _call(name: str, *arguments: Any) -> Any:
    from cuda.bindings import driver

    error, *values = getattr(driver, name)(*arguments)
    if int(error) != 0:
        raise RuntimeError(f"{name} failed with {error.name}")
    return values[0] if values else None


def _driver() -> dict[str, Any]:
    _call("cuInit", 0)
    number = _call("cuDriverGetVersion")
    functions = {purpose: _has(name, version) for name, (version, purpose) in _OPTIONAL_FUNCTIONS.items()}
    return {"cuda_version": f"{number // 1000}.{number % 1000 // 10}", "functions": functions}


def _has(function: str, cuda_version: int) -> bool:
    from cuda.bindings import driver

    error, address, _ = driver.cuGetProcAddress(function.encode(), cuda_version, 0)
    return int(error) == 0 and bool(address)


def _devices() -> list[dict[str, Any]]:
    return [_device(_call("cuDeviceGet", ordinal)) for ordinal in range(_call("cuDeviceGetCount"))]


def _device(device: Any) -> dict[str, Any]:
    from cuda.bindings import driver

    prefix = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
    attributes = [getattr(driver.CUdevice_attribute, prefix + part) for part in ("MAJOR", "MINOR")]
    capability = tuple(_call("cuDeviceGetAttribute", attribute, device) for attribute in attributes)
    name = _call("cuDeviceGetName", 100, device).split(b"\0")[0].decode()
    return {"name": name, "compute_capability": capability, "has_tma": capability >= TMA_SINCE}
