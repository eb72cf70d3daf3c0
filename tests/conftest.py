"""A fake driver and fake device tensors, for the tests that need no GPU."""

import gc
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from cuda import core
from cuda.bindings import driver as cuda_driver
from hypothesis import settings

import cuda_tma
from cuda_tma._cuda import driver as _driver
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma.simulate._device import device as simulated
from cuda_tma.simulate._device import schedules
from tests.support.fake_driver import FakeDriver
from tests.support.launching import CONFIG, HANDLES, ForeignStream, kernel_name

# Other programs on the test machines would make a deadline unreliable.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


# The tuple contains modules that need torch and are not tests. Doctest would import the modules to collect examples.
NEEDS_TORCH = ("support/hosted_examples.py", "support/simulated_examples.py", *(
    f"gpu/{name}.py" for name in ("hang_child", "hardware", "typed_tiles")))  # fmt: skip
# The tuple contains tests that read sources of the package. An installed wheel does not contain the sources.
NEEDS_SOURCES = (
    "_cuda/test_driver.py",
    "test_command_imports.py",
    "test_contributing.py",
    "test_public_names.py",
    "test_release.py",
    "test_structure.py",
)
collect_ignore = [
    *(NEEDS_TORCH if not find_spec("torch") else ()),
    "scripts",
    "_intercept/driver/scripts",  # Other tests run the scripts in separate processes.
    *(NEEDS_SOURCES if not (Path(__file__).parent.parent / "cuda_tma").is_dir() else ()),
]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect no doctests from tests. The search takes a quarter of the collection, and finds none."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_collection_finish():
    """Exclude the present objects from garbage collection, so that collections in tests and benchmarks are fast."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _share_the_work():
    """Compile a kernel once for all tests of this process that run it on a simulated device.

    The workers of pytest-xdist use all cores, so a launch in a worker does not fork a process for each schedule. A fork
    of a worker copies hundreds of MB.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "run_compiler", lru_cache(256)(simulated.run_compiler))
        if "PYTEST_XDIST_WORKER" in os.environ:
            patch.setattr(schedules, "cores", lambda: 1)
        yield


class DeviceTensor:
    """A tensor on a fake device, which exports its shape, strides and address through DLPack."""

    def __init__(self, shape, strides=None, dtype="float32", address=1 << 32, device_id=0):
        self.layout = shape, strides, dtype, address
        self.device_id = device_id
        self.asked = []

    def __dlpack_device__(self):
        return 2, self.device_id

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        return describe_tensor(*self.layout, device_id=self.device_id).capsule()


@pytest.fixture
def driver():
    """Replace the real driver with the fake driver for one test."""
    before = _driver.snapshot()
    fake = FakeDriver()
    fake.install()
    yield fake
    _driver.restore(before)


@pytest.fixture
def unfound_driver(monkeypatch):
    """Simulate a machine on which the driver library is not found."""

    def not_found(*_):
        raise OSError("no library")

    monkeypatch.setattr(cuda_driver, "cuGetProcAddress", not_found)
    before = _driver.snapshot()
    _driver.restore(None)
    yield
    _driver.restore(before)


@pytest.fixture
def device_tensor():
    return DeviceTensor


@pytest.fixture
def launch(driver):
    """Return a function that launches a kernel on the fake driver, and returns the arguments that the driver
    received."""

    def launch(name, sizes, *args, stream=None, config=CONFIG):
        handle = next(HANDLES)
        driver.kernels[handle] = (name, sizes)
        cuda_tma.launch(stream or ForeignStream(), config, core.Kernel.from_handle(handle), *args)
        return driver.launches[-1]

    return launch


@pytest.fixture
def kernel(driver):
    """Return a function that makes a kernel from the types and the sizes of its parameters."""

    def kernel(*parameters, sizes=(128,)):
        handle = next(HANDLES)
        driver.kernels[handle] = (kernel_name(*parameters), list(sizes))
        return core.Kernel.from_handle(handle)

    return kernel


@pytest.fixture
def stream():
    return core.Stream.from_handle(0x1000)
