"""Tests of launch configurations. The tests compare the values that the driver receives, and change configurations
between launches."""

import inspect
import re
import weakref
from typing import ClassVar

import pytest
from cuda import core

import cuda_tma
from cuda_tma._launch.launch_config import shown_bytes
from tests._threads import FREE_THREADED
from tests.support.launching import HANDLES, ForeignStream


def test_the_configuration_reaches_the_driver(launch):
    given = launch("k", [])
    assert (given.grid, given.block, given.shared_mem_bytes) == ((2, 3, 4), (5, 6, 7), 99)
    assert (given.stream, given.attributes, given.arguments) == (0x77, {}, [])
    # The test sets each field, because the constructor of cuda.core would need a device.
    config = core.LaunchConfig(grid=(2, 3, 1), block=32)
    config.cluster = (2, 1, 1)
    clustered = launch("k", [], config=config)
    assert (clustered.grid, clustered.attributes) == ((4, 3, 1), {4: (2, 1, 1)})
    config.cluster, config.is_cooperative = None, True
    assert launch("k", [], config=config).attributes == {2: (1, 0, 0)}
    assert launch("k", [], config={"grid": 2, "block": 32}).grid == (2, 1, 1)


def test_programmatic_stream_serialization(launch):
    config = core.LaunchConfig(grid=1, block=32)
    if not hasattr(config, "programmatic_stream_serialization"):
        pytest.skip("cuda.core before 1.2 has no programmatic_stream_serialization")
    config.programmatic_stream_serialization = True
    assert launch("k", [], config=config).attributes == {6: (1, 0, 0)}


def test_a_changed_configuration_is_read_again(launch):
    config = core.LaunchConfig(grid=1, block=32)
    assert launch("k", [], config=config).grid == (1, 1, 1)
    config.grid = (9, 1, 1)
    assert launch("k", [], config=config).grid == (9, 1, 1)


CHANGES = [
    ("grid", (5, 1, 1), "grid", (10, 1, 1)), ("block", (64, 1, 1), "block", (64, 1, 1)),
    ("cluster", (3, 1, 1), "attributes", {4: (3, 1, 1)}), ("cluster", None, "attributes", {}),
    ("shmem_size", 300, "shared_mem_bytes", 300), ("shmem_size", 100_000, "shared_mem_bytes", 100_000),
    ("is_cooperative", True, "attributes", {4: (2, 1, 1), 2: (1, 0, 0)}),
    ("programmatic_stream_serialization", True, "attributes", {4: (2, 1, 1), 6: (1, 0, 0)}),
]  # fmt: skip


@pytest.mark.parametrize("config_type", [core.LaunchConfig, type("Own", (core.LaunchConfig,), {})])
@pytest.mark.parametrize(("name", "value", "shown", "wanted"), CHANGES)
def test_each_changed_field_is_read_again_for_the_same_kernel(driver, config_type, name, value, shown, wanted):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    kernel = core.Kernel.from_handle(handle)
    config = config_type(grid=(2, 1, 1), block=32, shmem_size=200)
    if not hasattr(config, name):
        pytest.skip(f"this cuda.core has no {name}")
    config.cluster = (2, 1, 1)
    for _ in range(2):
        cuda_tma.launch(ForeignStream(), config, kernel)
    setattr(config, name, value)
    if name == "cluster":
        config.grid = (2, 1, 1)
    cuda_tma.launch(ForeignStream(), config, kernel)
    before, same, changed = driver.launches
    assert before == same and before.attributes == {4: (2, 1, 1)}
    assert (before.grid, before.block, before.shared_mem_bytes) == ((4, 1, 1), (32, 1, 1), 200)
    assert getattr(changed, shown) == wanted


def test_a_configuration_is_kept_for_its_kernel_until_it_changes(driver):
    """In the test, launches of two kernels with two configurations alternate."""
    kernels, configs = [], []
    for size in (0, 300, 70_000):
        handle = next(HANDLES)
        driver.kernels[handle] = ("k", [])
        kernels.append(core.Kernel.from_handle(handle))
        configs.append(core.LaunchConfig(grid=1, block=32, shmem_size=size))
    for kernel in kernels:
        for config in (*configs, *configs):
            cuda_tma.launch(ForeignStream(), config, kernel)
    assert [launch.shared_mem_bytes for launch in driver.launches] == [0, 300, 70_000] * 6


@pytest.mark.parametrize("config", [None, 128, "grid"])
def test_invalid_configuration(launch, config):
    with pytest.raises(
        TypeError, match=rf"^config is a {type(config).__name__}; launch takes a cuda.core.LaunchConfig or"
    ):
        launch("_Z1kv", [], config=config)


def test_a_configuration_that_seems_changed_is_read_again(launch):
    """launch() reads a configuration again if the memory of the object has changed. A weak reference also changes this
    memory."""
    config = core.LaunchConfig(grid=(2, 1, 1), block=32)
    for change in (lambda: weakref.ref(config), lambda: setattr(config, "grid", (2, 1, 1)), lambda: None):
        kept = change()
        assert launch("k", [], config=config).grid == (2, 1, 1)
        config.grid = (3, 1, 1)
        assert launch("k", [], config=config).grid == (3, 1, 1)
        config.grid = (2, 1, 1)
        del kept


def test_a_list_of_a_subclass_is_read_at_each_launch(driver):
    class Own(core.LaunchConfig):
        grid: ClassVar[list] = [2, 1, 1]

    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    kernel, config = core.Kernel.from_handle(handle), Own(grid=1, block=32)
    for extent in (2, 3):
        Own.grid[0] = extent
        cuda_tma.launch(ForeignStream(), config, kernel)
    assert [launch.grid for launch in driver.launches] == [(2, 1, 1), (3, 1, 1)]


@pytest.mark.parametrize("name", ["grid", "block", "cluster"])
@pytest.mark.parametrize("value", [(2, 1), (2, 1, 1, 1), (1.5, 1, 1), (-1, 1, 1), (1 << 32, 1, 1), (0, 1, 1)])
def test_a_field_without_three_extents_is_refused(launch, name, value):
    """cuda.core checks only the arguments of its constructor."""
    config = core.LaunchConfig(grid=1, block=32)
    setattr(config, name, value)
    with pytest.raises(ValueError, match=rf"^the configuration's {name} is {re.escape(str(value))}; pass three"):
        launch("k", [], config=config)
    setattr(config, name, (2, 1, 1))
    launch("k", [], config=config)


def test_every_field_of_this_cuda_core_is_read():
    """launch() must read each field of a LaunchConfig, because the driver does not receive an unread field."""
    fields = {name for name, member in vars(core.LaunchConfig).items() if inspect.isdatadescriptor(member)}
    assert fields - {"__weakref__", "__dict__"} <= {name for name, *_ in CHANGES}


def test_configurations_take_turns(driver):
    handle = next(HANDLES)
    driver.kernels[handle] = ("k", [])
    kernel, configs = core.Kernel.from_handle(handle), [core.LaunchConfig(grid=n, block=32 * n) for n in (1, 2, 3)]
    for _ in range(3):
        for config in configs:
            cuda_tma.launch(ForeignStream(), config, kernel)
    assert [(each.grid[0], each.block[0]) for each in driver.launches] == [(1, 32), (2, 64), (3, 96)] * 3


class Elsewhere:
    """A configuration whose fields are in a dictionary that is not an attribute of the instance."""

    __slots__ = ("_index",)
    FIELDS: ClassVar[list] = []

    def __init__(self, **fields):
        self._index = len(self.FIELDS)
        self.FIELDS.append(fields)

    def _of(name):
        return property(
            lambda self: self.FIELDS[self._index].get(name),
            lambda self, value: self.FIELDS[self._index].update({name: value}),
        )

    grid, block, shmem_size = _of("grid"), _of("block"), _of("shmem_size")


class Frozen:
    """An immutable launch configuration, as in later versions of cuda.core."""

    __slots__ = ("grid",)

    def __init__(self, **fields):
        object.__setattr__(self, "grid", fields["grid"])

    def __setattr__(self, name, value):
        raise AttributeError(name)


def test_memory_that_does_not_show_the_fields_is_not_compared():
    assert [shown_bytes(each) for each in (Elsewhere, Frozen, int)] == [0, 0, 0]
    if not FREE_THREADED and hasattr(core.LaunchConfig, "programmatic_stream_serialization"):
        assert shown_bytes(core.LaunchConfig) > 0
