"""The functions and values that several tests of the device header's scopes share."""

from __future__ import annotations

# One thread stores data with a copy and sets a flag. Another thread reads the flag, and then loads the data with a
# copy.
TELL = """
    __shared__ alignas(128) unsigned char tile[4096];
    load_bulk(tile, bytes, 4096, full);
    wait_or_trap(full, {turn});
    store_bulk({there}, tile, 4096);
    commit_group();
    wait_group();
    store_release<Scope::{scope}>(reinterpret_cast<unsigned*>({there} + 4096), {turn} + 1u);
"""
BE_TOLD = """
    const unsigned long long start = nanoseconds();
    while (load_acquire<Scope::{scope}>(reinterpret_cast<const unsigned*>(memory + 4096)) != {turn} + 1u)
        if (nanoseconds() - start > 60000000000ull) __trap();
    fence_proxy_async_global();
    __shared__ alignas(128) unsigned char seen[4096];
    load_bulk(seen, memory, 4096, full);
    wait_or_trap(full, {turn});
    store_bulk(out, seen, 4096);
    commit_group();
    wait_group();
"""
ONE_THREAD = """
    if (threadIdx.x) return;
    full.init(1);
    fence_barrier_init();
    full.arrive_expect_tx(4096);
"""
