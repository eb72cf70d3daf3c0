"""The fixtures of the GPU tests, which check the tests' requirements, and record the results in RESULTS.md."""

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from cuda.bindings import driver

from . import modules, results

_published: list[str] = []
# The list contains the launches on the GPU that the simulator also ran.
_watched: list[results.Launch] = []
# The list contains the tests that pytest collected in the folder tests/gpu.
_collected: list[pytest.Item] = []
_deselected: list[pytest.Item] = []


def compute_capability():
    """Return the compute capability of device 0 as (major, minor), or None without a driver or a device."""
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
    # cuda.bindings 12.9 and 13.x raise different errors without a driver.
    except Exception:
        return None
    if error or any(result for result, _ in values):
        return None
    return tuple(value for _, value in values)


def pytest_collection_modifyitems(items):
    capability = compute_capability()
    if capability is None or capability < (9, 0):
        for item in items:
            if results.FOLDER in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"needs TMA: compute capability 9.0, found {capability}"))


@pytest.fixture(autouse=True)
def seeded():
    """Give torch the same seed before each test, so that a failure can be repeated."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)


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
    """Return a function that adds a line to RESULTS.md."""
    return _published.append


@pytest.fixture(scope="module")
def watched(request):
    """Run the first launches of each kernel in a test module on the simulator, too.

    The variable WATCHED_LAUNCHES of a test module limits the number of watched launches for each kernel, because the
    test waits for each watched launch.
    """
    from cuda_tma import simulate

    # The simulator would only add time to a run under compute-sanitizer.
    if os.environ.get("CUDA_TMA_WATCH") == "off":
        yield
        return
    each = getattr(request.module, "WATCHED_LAUNCHES", 2)
    with simulate.watch(ptx=modules.PROGRAMS, launches_of_each=each, sanitize=False) as launches:
        yield
    _watched.extend(results.Launch(launch.kernel, launch.ptx, launch.skipped) for launch in launches)
    for number, launch in enumerate(launches):
        found = launch.differences or (launch.report.findings if launch.report else ())
        assert not found, f"launch {number} of the module, of {launch.kernel}: {found[0]}"


def pytest_deselected(items):
    _deselected.extend(item for item in items if results.FOLDER in item.path.parents)


def pytest_collection_finish(session):
    _collected.extend(item for item in session.items if results.FOLDER in item.path.parents)


def pytest_terminal_summary(terminalreporter, config):
    capability = compute_capability()
    names = {item.nodeid for item in _collected}
    ended = {
        kind: [each for each in terminalreporter.stats.get(kind, []) if each.nodeid in names] for kind in results.KINDS
    }
    counts = {kind: len(reports) for kind, reports in ended.items()}
    for line in results.watched(_watched) if _watched else ():
        terminalreporter.write_line(line)
    target = os.environ.get("CUDA_TMA_RESULTS", "")
    if capability is None or not counts["passed"] + counts["failed"] or target == "off":
        return
    reported = len({each.nodeid for reports in ended.values() for each in reports})
    files = {item.path.name for item in _collected}
    files = results.ended_files(files, len(names), reported, len(_deselected), config.args)
    failed = [each.nodeid for each in ended["failed"] + ended["error"]]
    part = results.Part(facts(capability), files, counts, _published, _watched, failed)
    if target:
        Path(target).write_text(part.to_json())
    elif results.missing(part):
        terminalreporter.write_line(f"{results.RESULTS.name} stays as it is: this was a part of the tests")
    else:
        results.RESULTS.write_text(results.report(part))


def pytest_unconfigure():
    # The Program of cuda.core must not be the last object that is freed.
    modules.PROGRAMS.clear()


def facts(capability):
    """Return the machine, the time and the commit of the test run."""
    _, name = driver.cuDeviceGetName(128, 0)
    major, minor = capability
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    # The command nvidia-smi prints one line for each device.
    drivers = subprocess.run(query, capture_output=True, text=True).stdout.split()
    return [
        f"devices: {len(drivers)} x {name.split(bytes(1))[0].decode()}, compute capability {major}.{minor}",
        f"driver: {', '.join(sorted(set(drivers))) or 'unknown'}; Python {platform.python_version()}",
        f"date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"commit: {results.commit()}",
    ]
