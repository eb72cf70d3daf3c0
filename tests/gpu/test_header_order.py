"""Tests of barriers, fences, clusters and grids by the device header, on hardware.

The tests cannot show that three fences are needed. Without ``fence_proxy_async``, ``fence_barrier_init`` or
``fence_tensor_map_release`` all tests of the header also pass (observed: driver 580, sm_90). The PTX ISA requires these
three fences.
"""

from dataclasses import replace

import numpy as np
import pytest
from cuda.core import LaunchConfig

from tests.gpu._header_order import MAP, SLOT

from .header_kernels import machine_fixture, place

pytestmark = pytest.mark.usefixtures("watched")


machine = machine_fixture()


def test_tensor_map_written_by_another_cta(machine):
    """CTA 1 loads through a map in global memory that CTA 0 wrote with ordinary stores, after a release and an
    acquire."""
    memory = np.random.default_rng(4).integers(0, 256, 4096, np.uint8)
    statement = f"""
        {SLOT}
        unsigned& flag = *reinterpret_cast<unsigned*>(memory + 4096);
        if (cluster_cta_rank() == 0) {{
            for (int i = 0; i < 16; ++i) slot.opaque[i] = map.opaque[i];
            fence_tensor_map_release();
            atomicExch(&flag, 1);
        }} else {{
            for (int i = 0; i < 1000000 && atomicAdd(&flag, 0) == 0; ++i) continue;
            fence_tensor_map_acquire(slot);
            load(tile, slot, full, Coordinates{{0, 8}});
        }}
    """
    for _ in range(20):
        machine.put("memory", np.concatenate([memory, np.zeros(65536, np.uint8)]))
        _, window = machine.load(statement, [place(), place(tx_bytes=256)], 256, MAP)
        assert np.array_equal(window, memory[512:768])


def test_tensor_map_changed_between_loads(machine):
    """After the fences, a load uses the new bytes of a tensor map, although the TMA unit has just used the old
    bytes."""
    memory = np.random.default_rng(5).integers(0, 256, 8192, np.uint8)
    machine.put("memory", memory)
    machine.put("bytes", np.frombuffer(bytes(machine.map(replace(MAP, global_address=4096))), np.uint8))
    statement = f"""
        __shared__ alignas(128) unsigned char tile[256];
        if (threadIdx.x) return;
        {SLOT}
        full.init(1);
        fence_barrier_init();
        for (int turn = 0; turn < 2; ++turn) {{
            const TensorMap& next = turn ? *reinterpret_cast<const TensorMap*>(bytes) : map;
            for (int i = 0; i < 16; ++i) slot.opaque[i] = next.opaque[i];
            fence_tensor_map_release();
            fence_tensor_map_acquire(slot);
            full.arrive_expect_tx(256);
            load(tile, slot, full, Coordinates{{0, 8}});
            wait_or_trap(full, turn);
            for (int i = 0; i < 256; ++i) out[256 * turn + i] = tile[i];
        }}
    """
    machine.run("plain", statement, [place()], params=MAP)
    assert np.array_equal(machine.get("out", 512), np.concatenate([memory[512:768], memory[4096 + 512 :][:256]]))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_pipeline(machine, stages):
    """One thread loads 16 tiles through a ring of stages, and 64 other threads read the tiles. Each tile arrives
    complete and in order."""
    memory = np.random.default_rng(6).integers(0, 256, 4096, np.uint8)
    machine.put("memory", memory)
    statement = f"""
        __shared__ alignas(128) unsigned char tile[{stages}][256];
        __shared__ Pipeline<{stages}> pipeline;
        if (threadIdx.x == 0) pipeline.init(64);
        __syncthreads();
        Stage<{stages}> at;
        if (threadIdx.x == 64) {{
            for (int i = 0; i < 16; ++i, at.next())
                load(tile[at.index], map, pipeline.acquire(at, 256), Coordinates{{0, 4 * i}});
        }} else if (threadIdx.x < 64) {{
            for (int i = 0; i < 16; ++i, at.next()) {{
                pipeline.wait(at);
                for (int j = threadIdx.x; j < 256; j += 64) out[256 * i + j] = tile[at.index][j];
                pipeline.release(at);
            }}
        }}
    """
    machine.run("plain", statement, [place()], params=MAP)
    assert np.array_equal(machine.get("out", 4096), memory)


@pytest.mark.skipif(
    not hasattr(LaunchConfig, "programmatic_stream_serialization"), reason="this cuda-core cannot launch so"
)
def test_dependent_grids(machine):
    """The second grid may start at the first grid's signal.

    After its wait, the second grid observes all writes of the first grid."""
    first = """
        griddepcontrol_launch_dependents();
        for (int i = 0; i < 20; ++i) __nanosleep(1000);
        reinterpret_cast<unsigned*>(out)[blockIdx.x * blockDim.x + threadIdx.x] = count + blockIdx.x;
    """
    second = """
        griddepcontrol_wait();
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        reinterpret_cast<unsigned*>(memory)[i] = 2 * reinterpret_cast<unsigned*>(out)[i];
    """
    kernels = [machine.kernel("plain", statement) for statement in (first, second)]
    for count in range(1, 21):
        machine.launch_pair(kernels, count, grid=32)
        got = machine.get("memory", 32 * 128 * 4).view(np.uint32)
        assert np.array_equal(got, 2 * (count + np.arange(32).repeat(128)))


def test_elect_one(machine):
    """`elect_one()` is true in one thread of each warp."""
    statement = """
        auto elected = reinterpret_cast<unsigned*>(out);
        elected[threadIdx.x] = elect_one();
    """
    machine.run("plain", statement, [place()])
    elected = machine.get("out", 4 * 128).view(np.uint32).reshape(4, 32)
    assert elected.sum(axis=1).tolist() == [1, 1, 1, 1]


def test_barrier_phases(machine):
    """The function try_wait returns false until the phase is complete. The function expect_tx adds bytes to the phase.
    A barrier can be initialized again after invalidate."""
    statement = """
        if (threadIdx.x) return;
        auto seen = reinterpret_cast<unsigned*>(out);
        int n = 0;
        full.init(2);
        fence_barrier_init();
        full.expect_tx(16);
        full.arrive();
        seen[n++] = full.try_wait(0, 100);
        full.arrive();
        seen[n++] = full.try_wait(0, 100);    // 16 bytes are missing
        __shared__ alignas(128) unsigned tile[4];
        load_bulk(tile, memory, 16, full);
        wait_or_trap(full, 0);
        seen[n++] = full.try_wait(0);
        seen[n++] = full.try_wait(1, 100);    // the next phase is not complete ...
        full.arrive();
        full.arrive();
        seen[n++] = full.try_wait(1);         // ... until two have arrived again
        full.invalidate();
        full.init(1);
        seen[n++] = full.try_wait(0, 100);
        full.arrive();
        full.wait(0);
        seen[n++] = 7;
    """
    machine.run("plain", statement, [place()])
    assert machine.get("out", 28).view(np.uint32).tolist() == [0, 0, 1, 0, 1, 0, 7]


def test_arrive_at(machine):
    """The barrier of CTA 0 completes after the arrivals of the three other CTAs. Earlier writes of these CTAs are then
    visible."""
    statement = """
        if (threadIdx.x == 0) full.init(cluster_cta_rank() ? 1 : 3);
        fence_barrier_init();
        cluster_sync();
        if (threadIdx.x == 0 && cluster_cta_rank()) {
            reinterpret_cast<unsigned*>(out)[cluster_cta_rank()] = 10 * cluster_cta_rank();
            full.arrive_at(0);
        }
        if (cluster_cta_rank() == 0) {
            wait_or_trap(full, 0);
            full.wait_cluster(0);
            auto seen = reinterpret_cast<unsigned*>(out);
            if (threadIdx.x == 0) seen[0] = seen[1] + seen[2] + seen[3];
        }
        cluster_sync();
    """
    machine.run("plain", statement, [place()] * 4)
    assert machine.get("out", 16).view(np.uint32).tolist() == [60, 10, 20, 30]
