"""Tests of tensor maps that the GPU changes by the device header, and that equal the host's tensor maps byte for
byte."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from cuda_tma.testing import tiled_params
from tests.gpu._header_order import MAP, SLOT

from .header_kernels import machine_fixture, place

pytestmark = pytest.mark.usefixtures("watched")


machine = machine_fixture(
    "device header, maps that the GPU changes: {launches} launches, each map the host's to the last byte"
)


# The first warp of the kernel runs the statements. `mine` is a map in shared memory, and `slot` is the place of its
# copy in global memory.
CHANGE = """
    __shared__ TensorMap mine;
    if (threadIdx.x == 0) {{
        for (int i = 0; i < 16; ++i) mine.opaque[i] = map.opaque[i];
        {changes}
    }}
    __syncwarp();
    if (threadIdx.x < 32) copy_tensor_map_release(&slot, mine);
"""


def changes_to(params, encoded):
    """Return C++ code that changes any tensor map into a given map. For dimensions beyond the rank, the driver writes
    zeros, which mean an extent of 1."""
    words = np.frombuffer(encoded, np.uint32)
    rest = [1] * (5 - params.rank)
    numbered = {
        "global_dim": [*params.global_dim, *rest],
        "box_dim": [*params.box_dim, *rest],
        "element_stride": [*params.element_strides, *rest],
        "global_stride": [*params.global_strides, *[0] * (5 - params.rank)],
    }
    fixed = {
        "data_type": params.data_type,
        "interleave": params.interleave,
        "swizzle": params.swizzle,
        "oob_fill": params.oob_fill,
    }
    return " ".join(
        [
            f"replace_global_address(mine, memory + {params.global_address});",
            "replace_rank(mine, 5);",
            *(f"replace_{name}<{i}>(mine, {n}u);" for name, each in numbered.items() for i, n in enumerate(each)),
            f"replace_rank(mine, {params.rank});",
            *(f"replace_{name}<{int(value)}>(mine);" for name, value in fixed.items()),
            f"set_derived_bytes(mine, {words[16]}, {words[18]});",
        ]
    )


def test_every_field(machine):
    """Any legal map can become any other map with the same L2 promotion. No instruction changes the L2 promotion."""

    @settings(
        deadline=None,
        derandomize=True,
        max_examples=40,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(tiled_params(), tiled_params())
    def check(before, after):
        before = replace(before, l2_promotion=after.l2_promotion)
        expected = bytes(machine.map(after))
        slot = "TensorMap& slot = *reinterpret_cast<TensorMap*>(out);"
        machine.run("plain", slot + CHANGE.format(changes=changes_to(after, expected)), [place()], params=before)
        got = bytes(machine.get("out", 128))
        different = [i for i in range(128) if got[i] != expected[i]]
        assert not different, f"bytes {different}: {got.hex(' ', 4)} instead of {expected.hex(' ', 4)} of {after}"

    check()


@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_a_changed_map_is_loaded_through(machine, scope):
    """CTA 0 makes a map with a different number of rows, and signals CTA 1, which loads through this map. Rows beyond
    the new end are zeros."""
    memory = np.random.default_rng(11).integers(1, 256, 4096, np.uint8)
    change = CHANGE.format(changes="replace_global_address(mine, memory + 64 * count); replace_global_dim<1>(mine, 2);")
    statement = f"""
        {SLOT}
        unsigned& flag = *reinterpret_cast<unsigned*>(memory + 4096);
        if (blockIdx.x == 0) {{
            {change.replace("release(", f"release<Scope::{scope}>(")}
            __syncthreads();
            if (threadIdx.x == 0) store_release<Scope::{scope}>(&flag, 1u);
        }} else if (threadIdx.x == 0) {{
            __shared__ alignas(128) unsigned char tile[256];
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(256);
            const unsigned long long start = nanoseconds();
            while (load_acquire<Scope::{scope}>(&flag) == 0)
                if (nanoseconds() - start > 60000000000ull) __trap();
            fence_tensor_map_acquire(slot);
            load(tile, slot, full, Coordinates{{0, 0}});
            wait_or_trap(full, 0);
            for (int i = 0; i < 256; ++i) out[i] = tile[i];
        }}
    """
    for first in range(0, 60, 7):
        machine.put("memory", np.concatenate([memory, np.zeros(65536, np.uint8)]))
        machine.run("plain", statement, [place()], params=MAP, count=first, grid=2)
        expected = np.concatenate([memory[64 * first :][:128], np.zeros(128, np.uint8)])
        assert np.array_equal(machine.get("out", 256), expected)


def test_dimensions_beyond_the_rank(machine):
    """A load through a map of rank 2 ignores dimensions 2 to 4, which the kernel has replaced.

    CUTLASS (cute/arch/copy_sm90_desc.hpp) replaces global_dim 0 to 4 and global_stride 0 to 3 for any rank.
    """
    memory = np.random.default_rng(12).integers(1, 256, 4096, np.uint8)
    beyond = [(f"replace_global_dim<{i}>(mine, {n}u);", f"replace_global_stride<{i - 1}>(mine, {s}u);")
              for i, n, s in ((2, 1, 0), (3, 7, 160), (4, 70000, 4096))]  # fmt: skip
    changes = "replace_global_address(mine, memory + 64 * count); " + " ".join(part for both in beyond for part in both)
    statement = f"""
        {SLOT}
        {CHANGE.format(changes=changes)}
        __syncthreads();
        __shared__ alignas(128) unsigned char tile[256];
        if (threadIdx.x == 0) {{
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(256);
            fence_tensor_map_acquire(slot);
            load(tile, slot, full, Coordinates{{0, 0}});
            wait_or_trap(full, 0);
            for (int i = 0; i < 256; ++i) out[i] = tile[i];
        }}
    """
    for first in (0, 5):
        machine.put("memory", np.concatenate([memory, np.zeros(65536, np.uint8)]))
        machine.run("plain", statement, [place()], params=MAP, count=first)
        assert np.array_equal(machine.get("out", 256), memory[64 * first :][:256])
