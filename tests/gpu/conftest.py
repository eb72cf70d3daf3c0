"""GPU tests: what they need, and the record that they leave (RESULTS.md), since CI has no GPU."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

import pytest
from cuda.bindings import driver

RESULTS = Path(__file__).with_name("RESULTS.md")
_published: list[str] = []


def compute_capability():
    """(major, minor) of device 0, or None where there is no driver or no device."""
    try:
        (error,) = driver.cuInit(0)
        attribute = driver.CUdevice_attribute
        values = [
            driver.cuDeviceGetAttribute(a, 0)
            for a in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        ]
    except Exception:  # cuda.bindings 12.9 and 13.x differ in what they raise without a driver
        return None
    if error or any(result for result, _ in values):
        return None
    return tuple(value for _, value in values)


def pytest_collection_modifyitems(items):
    capability = compute_capability()
    if capability is None or capability < (9, 0):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"needs TMA: compute capability 9.0, found {capability}"))


@pytest.fixture(scope="session")
def device():
    import cuda_tma

    device = cuda_tma.Device(0)
    device.set_current()
    return device


@pytest.fixture(scope="session")
def stream(device):
    return device.create_stream()


@pytest.fixture(scope="session")
def publish():
    """Add a line to RESULTS.md."""
    return _published.append


def pytest_terminal_summary(terminalreporter, config):
    capability = compute_capability()
    counts = {kind: len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")}
    if capability is None or not counts["passed"] + counts["failed"] or os.environ.get("CUDA_TMA_RESULTS") == "off":
        return
    _, name = driver.cuDeviceGetName(128, 0)
    major, minor = capability
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    drivers = subprocess.run(query, capture_output=True, text=True).stdout.split()  # one for each device
    lines = [
        "# GPU test results",
        "",
        "Written by `tests/gpu` itself. CI has no GPU: this file is the evidence.",
        "",
        f"- devices: {len(drivers)} x {name.split(bytes(1))[0].decode()}, compute capability {major}.{minor}",
        f"- driver: {', '.join(sorted(set(drivers))) or 'unknown'}; Python {platform.python_version()}",
        f"- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"- commit: {os.environ.get('CUDA_TMA_COMMIT', 'unknown')}",
        "- " + ", ".join(f"{kind}: {count}" for kind, count in counts.items()),
        *[f"- {line}" for line in _published],
        *[f"- FAILED {report.nodeid}" for report in terminalreporter.stats.get("failed", [])],
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
