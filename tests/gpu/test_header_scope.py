"""Tests of flags in global memory between CTAs, by the device header, on hardware."""

import numpy as np
import pytest

from tests.gpu._header_scope import BE_TOLD, ONE_THREAD, TELL

from .header_kernels import machine_fixture, place

pytestmark = pytest.mark.usefixtures("watched")


machine = machine_fixture("device header, flags: {launches} launches make earlier stores visible (scopes gpu and sys)")


@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_a_flag_between_ctas(machine, scope):
    """In the test, CTA 0 stores data and sets a flag. CTA 1 waits for the flag and reads the data."""
    tile = np.random.default_rng(9).integers(0, 256, 4096, np.uint8)
    fields = {"scope": scope, "turn": 0, "there": "memory"}
    statement = f"{ONE_THREAD} if (blockIdx.x == 0) {{ {TELL.format(**fields)} }} else {{ {BE_TOLD.format(**fields)} }}"
    for _ in range(10):
        machine.put("bytes", tile)
        machine.put("memory", np.zeros(8192, np.uint8))
        machine.put("out", np.zeros(4096, np.uint8))
        machine.run("plain", statement, [place()], grid=2)
        assert np.array_equal(machine.get("out", 4096), tile)


@pytest.mark.parametrize("word", ["unsigned", "unsigned long long"])
def test_counters(machine, word):
    """By an atomic counter, every thread of every CTA gets a unique number. All additions are visible to the last
    thread."""
    statement = f"""
        auto counters = reinterpret_cast<{word}*>(memory);
        add_release(counters + 1, ({word})3);
        const auto mine = fetch_add(counters, ({word})1);
        reinterpret_cast<unsigned*>(out)[mine] = mine == 1023 ? unsigned(load_acquire(counters + 1)) : unsigned(mine);
    """
    machine.put("memory", np.zeros(16, np.uint8))
    machine.put("out", np.full(4096, 255, np.uint8))
    machine.run("plain", statement, [place()], grid=8)
    assert machine.get("out", 4096).view(np.uint32).tolist() == [*range(1023), 3 * 1024]
