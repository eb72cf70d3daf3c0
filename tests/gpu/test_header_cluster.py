"""Tests of data, counts and releases between CTAs of a cluster and roles of warps, by the header, on hardware."""

import numpy as np
import pytest

from tests.gpu._header_order import MAP

from .header_kernels import FILL, machine_fixture, place

pytestmark = pytest.mark.usefixtures("watched")


machine = machine_fixture(
    "device header, clusters and roles: {launches} launches leave what NumPy has (st.async, red.async, "
    "cp.reduce.async.bulk between CTAs, remote and counted arrivals, rings of several CTAs and producers, "
    "named barriers)"
)


FILLED = int.from_bytes(bytes([FILL]) * 4, "little")
VALUE = 0x12345678


def test_store_async(machine):
    """Values of 4, 8 and 16 bytes of any type arrive at their places in the other CTA, and at no other place."""
    statement = """
        if (cluster_cta_rank() == 0) {
            store_async(reinterpret_cast<unsigned*>(tile), 1, 0x01020304u, full);
            store_async(reinterpret_cast<float*>(tile + 4), 1, 1.5f, full);
            store_async(reinterpret_cast<unsigned long long*>(tile + 8), 1, 0x1112131415161718ull, full);
            store_async(reinterpret_cast<uint4*>(tile + 32), 1, uint4{1, 2, 3, 4}, full);
        }
    """
    windows = machine.load(statement, [place(), place(tx_bytes=32)], 64, shape="receive")
    words = windows.view(np.uint32)
    assert (windows[0] == FILL).all()
    assert words[1].tolist() == [
        *(0x01020304, np.float32(1.5).view(np.uint32), 0x15161718, 0x11121314),
        *[FILLED] * 4,
        *(1, 2, 3, 4),
        *[FILLED] * 4,
    ]


def signed(word, bits=32):
    return word - (word >> (bits - 1) << bits)


# Each function returns the word after an operation with a value, where both are unsigned integers of `bits` bits.
COMBINE = {
    "add": lambda old, new, bits: (old + new) % (1 << bits),
    "inc": lambda old, new, bits: 0 if old >= new else old + 1,
    "dec": lambda old, new, bits: new if old == 0 or old > new else old - 1,
    "bit_and": lambda old, new, bits: old & new,
    "bit_or": lambda old, new, bits: old | new,
    "bit_xor": lambda old, new, bits: old ^ new,
    "min unsigned": lambda old, new, bits: min(old, new),
    "max unsigned": lambda old, new, bits: max(old, new),
    "min": lambda old, new, bits: min(old, new, key=lambda word: signed(word, bits)),
    "max": lambda old, new, bits: max(old, new, key=lambda word: signed(word, bits)),
}
SINGLE = [
    *(("add", name) for name in ("unsigned", "int", "unsigned long long", "long long")),
    *((op, name) for op in ("min", "max") for name in ("unsigned", "int")),
    *((op, "unsigned") for op in ("inc", "dec", "bit_and", "bit_or", "bit_xor")),
]


def combined(op, name, old, new, bits, times=1):
    combine = COMBINE.get(f"{op} {name}", COMBINE[op if op in COMBINE else f"{op} unsigned"])
    for _ in range(times):
        old = combine(old, new, bits)
    return old


def test_reduce_async(machine):
    """Three CTAs of a cluster concurrently apply an asynchronous reduction to the memory of a fourth CTA. All three
    reductions take effect."""
    calls = "".join(
        f"reduce_async<Reduction::{op}>(reinterpret_cast<{name}*>(tile + {8 * i}), 1, ({name})0x{VALUE:x}, full);"
        for i, (op, name) in enumerate(SINGLE)
    )
    size = {name: 8 if "long" in name else 4 for _, name in SINGLE}
    tx_bytes = 3 * sum(size[name] for _, name in SINGLE)
    places = [place(tx_bytes=tx_bytes * (rank == 1)) for rank in range(4)]
    windows = machine.load(f"if (cluster_cta_rank() != 1) {{ {calls} }}", places, 8 * len(SINGLE), shape="receive")
    for (op, name), chunk in zip(SINGLE, windows[1].reshape(-1, 8), strict=True):
        bits = 8 * size[name]
        old = int.from_bytes(bytes([FILL]) * size[name], "little")
        expected = combined(op, name, old, VALUE, bits, times=3)
        assert int.from_bytes(bytes(chunk[: size[name]]), "little") == expected, f"{op} {name}"
        assert (chunk[size[name] :] == FILL).all()


SENT = {
    "add": "u32 s32 u64", "min": "u32 s32", "max": "u32 s32", "inc": "u32", "dec": "u32",
    "bit_and": "b32", "bit_or": "b32", "bit_xor": "b32",
}  # fmt: skip
SENT_PAIRS = [(op, name) for op, names in SENT.items() for name in names.split()]


@pytest.mark.parametrize(("op", "name"), SENT_PAIRS, ids=[f"{op} {name}" for op, name in SENT_PAIRS])
def test_send_reduce_bulk(machine, op, name):
    """In the test, CTA 0 loads data, and reduces the data into the memory of CTA 3."""
    memory = np.random.default_rng(len(op + name)).integers(0, 256, 1024, np.uint8)
    machine.put("memory", memory)
    places = [place(tx_bytes=1024 * (rank in (0, 3))) for rank in range(4)]
    statement = f"""
        if (cluster_cta_rank() == 0) {{
            load_bulk(tile, memory, 1024, full);
            wait_or_trap(full, 0);
            send_reduce_bulk<Reduction::{op}, BulkType::{name}>(tile, 3, tile, 1024, full);
        }}
    """
    windows = machine.load(statement, places, 1024)
    bits = int(name[1:])
    kind = "int" if name[0] == "s" else "unsigned"
    old = int.from_bytes(bytes([FILL]) * (bits // 8), "little")
    expected = [combined(op, kind, old, int(word), bits) for word in memory.view(f"u{bits // 8}")]
    assert windows[3].view(f"u{bits // 8}").tolist() == expected
    assert (windows[0] == memory).all() and (windows[1:3] == FILL).all()


def test_barrier_of_another_cta(machine):
    """The mbarrier of another CTA expects bytes, and receives single and multiple arrivals. After a wait, writes before
    the arrivals are visible."""
    statement = """
        if (threadIdx.x == 0) full.init(cluster_cta_rank() ? 6 : 1);
        fence_barrier_init();
        __syncwarp();
        cluster_arrive_relaxed();
        cluster_wait();
        __shared__ alignas(128) unsigned tile[4];
        if (threadIdx.x == 0 && cluster_cta_rank() == 0) {
            reinterpret_cast<unsigned*>(out)[1] = 42;
            const ClusterBarrier there = full.in_cta(1);
            there.expect_tx(8);
            there.arrive_expect_tx(8);
            there.arrive(3);
            there.arrive();
            full.arrive_at(1);
        }
        if (cluster_cta_rank() == 1) {
            if (threadIdx.x == 0) load_bulk(tile, memory, 16, full);
            wait_or_trap(full, 0);
            full.wait_cluster(0);
            auto seen = reinterpret_cast<unsigned*>(out);
            if (threadIdx.x == 0) seen[0] = seen[1] + tile[3];
        }
        __syncwarp();
        cluster_sync();
    """
    machine.put("memory", np.arange(1, 5, dtype=np.uint32).view(np.uint8))
    machine.run("plain", statement, [place()] * 2)
    assert machine.get("out", 8).view(np.uint32).tolist() == [46, 42]


def test_arrivals_with_a_count(machine):
    statement = """
        if (threadIdx.x) return;
        auto seen = reinterpret_cast<unsigned*>(out);
        full.init(5);
        fence_barrier_init();
        full.arrive(4);
        seen[0] = full.try_wait(0, 100);
        full.arrive();
        seen[1] = full.try_wait(0);
        full.arrive(5);
        seen[2] = full.try_wait_cluster(1);
    """
    machine.run("plain", statement, [place()])
    assert machine.get("out", 12).view(np.uint32).tolist() == [0, 1, 1]


def test_cluster_barrier_in_two_steps(machine):
    """The writes of each CTA before its arrival at the cluster barrier are visible to all CTAs after the wait."""
    statement = """
        auto volatile written = reinterpret_cast<unsigned*>(out);
        if (threadIdx.x == 0) written[cluster_cta_rank()] = 10 + cluster_cta_rank();
        __syncwarp();
        cluster_arrive();
        const unsigned ctas = cluster_cta_count();   // private to each CTA
        cluster_wait();
        unsigned sum = 0;
        for (unsigned i = 0; i < ctas; ++i) sum += written[i];
        if (threadIdx.x == 0) written[4 + cluster_cta_rank()] = 100 * ctas + sum;
    """
    machine.run("plain", statement, [place()] * 4)
    assert machine.get("out", 32).view(np.uint32).tolist() == [10, 11, 12, 13, *[446] * 4]


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_pipeline_of_a_cluster(machine, stages):
    """CTA 0 loads each tile for both CTAs by multicast. In each CTA, 64 threads read the tile and release it at CTA
    0."""
    memory = np.random.default_rng(7).integers(0, 256, 4096, np.uint8)
    machine.put("memory", memory)
    statement = f"""
        __shared__ alignas(128) unsigned char tile[{stages}][256];
        __shared__ Pipeline<{stages}> pipeline;
        if (threadIdx.x == 0) pipeline.init(2 * 64);
        __syncwarp();
        cluster_sync();
        Stage<{stages}> at;
        const unsigned rank = cluster_cta_rank();
        if (threadIdx.x == 64) {{
            for (int i = 0; i < 16; ++i, at.next()) {{
                if (rank == 0) {{
                    Barrier& full = pipeline.acquire_cluster(at, 256);
                    load_multicast(tile[at.index], map, full, Coordinates{{0, 4 * i}}, 3);
                }} else {{
                    pipeline.full[at.index].wait(at.parity ^ 1);   // a phase expects its bytes after the last arrival
                    pipeline.full[at.index].arrive_expect_tx(256);
                }}
            }}
            if (rank == 0) pipeline.drain(at);
        }} else if (threadIdx.x < 64) {{
            for (int i = 0; i < 16; ++i, at.next()) {{
                wait_or_trap(pipeline.full[at.index], at.parity);
                pipeline.wait(at);
                for (int j = threadIdx.x; j < 256; j += 64) out[4096 * rank + 256 * i + j] = tile[at.index][j];
                pipeline.release(at, 0);
            }}
        }}
        __syncwarp();
        cluster_sync();
    """
    machine.run("plain", statement, [place()] * 2, params=MAP)
    assert np.array_equal(machine.get("out", 8192), np.tile(memory, 2))


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_pipeline_of_two_producers(machine, stages):
    """Each producer polls its stage early, and loads half of a tile. Consumers also poll early. Threads release a stage
    one by one, in pairs, and as whole warps. Each arrival counts once.
    """
    memory = np.random.default_rng(8).integers(0, 256, 4096, np.uint8)
    machine.put("memory", memory)
    statement = f"""
        __shared__ alignas(128) unsigned char tile[{stages}][256];
        __shared__ Pipeline<{stages}> pipeline;
        if (threadIdx.x == 0) pipeline.init(64, 2);
        __syncthreads();
        Stage<{stages}> at;
        if (threadIdx.x == 64 || threadIdx.x == 96) {{
            const int half = threadIdx.x / 32 - 2;
            for (int i = 0; i < 16; ++i, at.next()) {{
                Barrier& full = pipeline.acquire(at, 128, pipeline.try_acquire(at));
                load_bulk(tile[at.index] + 128 * half, memory + 256 * i + 128 * half, 128, full);
            }}
        }} else if (threadIdx.x < 64) {{
            for (int i = 0; i < 16; ++i, at.next()) {{
                const bool is_full = pipeline.try_wait(at);
                if (!is_full) wait_or_trap(pipeline.full[at.index], at.parity);
                pipeline.wait(at, is_full);
                for (int j = threadIdx.x; j < 256; j += 64) out[256 * i + j] = tile[at.index][j];
                if (i % 3 == 0) pipeline.release(at);
                else if (i % 3 == 1 && threadIdx.x % 2) pipeline.release(at);
                else if (threadIdx.x % 32 == i) pipeline.release(at);
                else pipeline.release(at);
            }}
        }}
    """
    machine.run("plain", statement, [place()])
    assert np.array_equal(machine.get("out", 4096), memory)


def test_named_barriers_take_turns(machine):
    """Each of two warps waits at its own barrier until the other warp has arrived at this barrier."""
    statement = """
        __shared__ unsigned order[32], next;
        if (threadIdx.x == 0) next = 0;
        __syncthreads();
        const int warp = threadIdx.x / 32;
        if (warp == 1) named_barrier_arrive<1>(64);
        for (int i = 0; i < 16 && warp < 2; ++i) {
            if (warp == 0) named_barrier_sync<1>(64);
            else named_barrier_sync(2, 64);
            if (threadIdx.x % 32 == 0) {
                const unsigned n = *const_cast<volatile unsigned*>(&next);
                order[n] = warp;
                *const_cast<volatile unsigned*>(&next) = n + 1;
            }
            __syncwarp();
            if (warp == 0) named_barrier_arrive<2>(64);
            else if (i < 15) named_barrier_arrive(1, 64);
        }
        __syncthreads();
        if (threadIdx.x < 32) reinterpret_cast<unsigned*>(out)[threadIdx.x] = order[threadIdx.x];
    """
    machine.run("plain", statement, [place()])
    assert machine.get("out", 128).view(np.uint32).tolist() == [0, 1] * 16
