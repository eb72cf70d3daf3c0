"""Tests of weak and strong accesses to global memory, and of ld.global.nc, with wrong kernels and their right twins."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._findings import Finding

HEAD = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
#define B blockIdx.x
#define T threadIdx.x
#define LAST_BLOCK(counter) (__threadfence(), atomicAdd(counter, 1) == int(gridDim.x) - 1)
__device__ int add(int* at, const char*) { return atomicAdd(at, 1); }
__device__ void reduce(int* out, const int* row) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;"
                 :: "l"(out), "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void put(int* out, const int* row) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                 :: "l"(out), "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ int get(const int* at) {
    int got;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(got) : "l"(at) : "memory");
    return got;
}
__device__ void set(int* at, int value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(at), "r"(value) : "memory");
}
__device__ int* filled() {
    __shared__ __align__(128) int row[32];
    if (T < 32) row[T] = T;
    fence_proxy_async();
    __syncthreads();
    return row;
}
extern "C" __global__ void kernel(int* out, int* other) {
"""
# Each entry contains the body of a wrong kernel, and the body of its right twin.
PAIRS = {
    "store_and_atomic": (
        "if (B) out[0] = 5; else atomicAdd(out, 1);",
        "if (B) atomicExch(out, 5); else atomicAdd(out, 1);",
    ),
    "load_and_volatile_store": (
        "if (B) out[1] = out[0]; else *(volatile int*)out = 7;",
        "if (B) out[1] = *(volatile int*)out; else *(volatile int*)out = 7;",
    ),
    "histogram_is_cleared": (
        "if (B == 0) out[T % 4] = 0; else atomicAdd(out + T % 4, 1);",
        "if (B == 0) out[4 + T % 4] = 0; else atomicAdd(out + T % 4, 1);",
    ),
    "own_atomics_follow_the_clearing": (
        "if (B == 0) { out[T % 4] = 1; __syncthreads(); } __threadfence(); atomicAdd(out + T % 4, 1);",
        "if (T < 4) atomicAdd(out + T, B == 0); __syncthreads(); __threadfence(); atomicAdd(out + T % 4, 1);",
    ),
    "counter_is_read_by_a_load": (
        "if (T == 0) { atomicAdd(out, 1); other[B] = out[0]; }",
        "if (T == 0) { atomicAdd(out, 1); other[B] = atomicAdd(out, 0); }",
    ),
    "sum_is_read_by_the_last_block": (
        "if (T) return; if (B < 2) atomicAdd(out, 1);if (atomicAdd(other, 1) == gridDim.x - 1) out[1] = out[0];",
        "__shared__ int last; if (T == 0) { atomicAdd(out, 1); last = LAST_BLOCK(other); __threadfence(); }"
        "__syncthreads(); if (last && T == 0) out[1] = out[0];",
    ),
    "counter_is_reset": (
        "if (T == 0) { atomicAdd(out, 1); if (B == 0) out[0] = 0; }",
        "if (T == 0 && atomicAdd(out, 1) == gridDim.x - 1) out[0] = 0;",
    ),
    "flag_is_set_by_a_store": (
        "if (B == 0) { while (*(volatile int*)out == 0) { } } else if (T == 0) out[0] = 1;",
        "if (B == 0) { while (*(volatile int*)out == 0) { } } else if (T == 0) *(volatile int*)out = 1;",
    ),
    "atomics_of_the_block": ("atomicAdd_block(out, 1);", "atomicAdd_block(out + B, 1);"),
    "atomics_of_two_scopes": (
        "if (B) atomicAdd_block(out, 1); else atomicAdd(out, 1);",
        "if (B) atomicAdd_system(out, 1); else atomicAdd(out, 1);",
    ),
    "atomics_of_two_sizes": (
        "if (T == 0) { if (B) atomicAdd(out, 1); else atomicAdd((unsigned long long*)out, 1ull); }",
        "if (T == 0) { if (B) atomicAdd((unsigned long long*)out, 1ull << 32);"
        "else atomicAdd((unsigned long long*)out, 1ull); }",
    ),
    "word_is_written_in_halves": (
        "if (T) return; volatile int* word = out; if (B) { word[0] = 1; word[1] = 2; }"
        "else *(long long*)other = *(volatile long long*)out;",
        "if (T) return; if (B) *(volatile long long*)out = 1 | 2ll << 32;"
        "else { volatile int* word = out; other[0] = word[0]; other[1] = word[1]; }",
    ),
    "store_and_reduction": (
        "int* row = filled(); if (B == 0) { if (T < 32) out[T] = 1; } else if (T == 0) reduce(out, row);",
        "int* row = filled(); if (B == 0) { if (T < 32) atomicAdd(out + T, 1); } else if (T == 0) reduce(out, row);",
    ),
    "store_of_tma_and_atomics": (
        "int* row = filled(); if (B == 0) { if (T == 0) put(out, row); } else if (T < 32) atomicAdd(out + T, 1);",
        "int* row = filled(); if (B == 0) { if (T == 0) { put(out, row); set(other, 1); } return; }"
        "if (T == 0) while (get(other) == 0) { } __syncthreads(); if (T < 32) atomicAdd(out + T, 1);",
    ),
    "row_is_zeroed_before_reductions": (
        "int* row = filled(); if (B == 0) { if (T < 32) out[T] = 1; fence_proxy_async_global(); __syncthreads(); }"
        "if (T == 0) reduce(out, row);",
        "int* row = filled(); if (B == 0 && T < 32) other[T] = 1; if (T == 0) reduce(out, row);",
    ),
    "reduced_row_is_loaded": (
        "int* row = filled(); if (T == 0) { reduce(out, row); other[B] = out[1]; }",
        "__shared__ int last; int* row = filled(); if (T == 0) { reduce(out, row); last = LAST_BLOCK(other + 64);"
        "__threadfence(); } __syncthreads(); if (last && T < 32) other[T] = out[T];",
    ),
    "cached_load_of_own_store": (
        "out[B * 64 + T] = T; __syncthreads(); other[B * 64 + T] = __ldg(out + B * 64 + (T ^ 32));",
        "out[B * 64 + T] = T; __syncthreads(); other[B * 64 + T] = out[B * 64 + (T ^ 32)];",
    ),
    "cached_load_of_the_same_thread": (
        "int* mine = out + B * 64 + T; *mine = T; int got;"
        'asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(got) : "l"(mine) : "memory"); other[B * 64 + T] = got;',
        "int* mine = out + B * 64 + T; other[B * 64 + T] = __ldg(mine) + 1; *mine = T;",
    ),
    "cached_load_behind_a_flag": (
        "if (T) return; if (B == 0) { out[0] = 1; set(other, 1); }"
        "else { while (get(other) == 0) { } other[B] = __ldg(out); }",
        "if (T) return; if (B == 0) { out[0] = 1; set(other, 1); }"
        "else { while (get(other) == 0) { } other[B] = __ldcg(out); }",
    ),
    "cached_load_of_a_counter": (
        "if (T == 0) { atomicAdd(out + B, 1); other[B] = __ldg(out + B); }",
        "if (T == 0) { atomicAdd(out + B, 1); other[B] = __ldcg(out + B); }",
    ),
}
# In the right kernels, blocks exchange values without a fence in the reading thread, or in observation order (PTX ISA).
RIGHT = {
    "compare_and_swap_begins_with_a_load": (
        "int seen = other[0], old; do { old = seen; seen = atomicCAS(other, old, old + 2); } while (seen != old);"
    ),
    "sum_of_floats_by_compare_and_swap": (
        "float* sum = (float*)out; int seen = out[0], old; do { old = seen;"
        "seen = atomicCAS(out, old, __float_as_int(__int_as_float(old) + 0.1f * (B * 64 + T))); } while (seen != old);"
    ),
    "maximum_by_compare_and_swap": (
        "int mine = (B * 64 + T) * 7 % 100, seen = out[0], old; do { old = seen; if (old >= mine) break;"
        "seen = atomicCAS(out, old, mine); } while (seen != old);"
    ),
    "ticket_lock": (
        "if (T) return; int mine = atomicAdd(other, 1); while (*(volatile int*)(other + 1) != mine) { }"
        "__threadfence(); out[0] += 1; __threadfence(); atomicAdd(other + 1, 1);"
    ),
    "spin_lock": (
        "if (T) return; while (atomicCAS(other, 0, 1)) { } __threadfence(); out[0] += 1; __threadfence();"
        "atomicExch(other, 0);"
    ),
    "flag_next_to_its_value": (
        "volatile int2* word = (volatile int2*)(out + 2 * T);"
        "if (B == 0) { word->x = T; __threadfence(); word->y = 1; }"
        "else { while (word->y == 0) { } other[T] = word->x; }"
    ),
    "volatile_partials_of_all_blocks": (
        "__shared__ int last; volatile int* part = out; if (T == 0) { part[B] = B + 1; last = LAST_BLOCK(other); }"
        "__syncthreads(); if (last && T == 0) { int sum = 0; for (int i = 0; i < gridDim.x; ++i) sum += part[i];"
        "part[0] = sum; other[0] = 0; }"
    ),
    "node_is_published": (
        "if (T) return; if (B == 0) { out[1] = 3; __threadfence(); atomicExch(other, 1); }"
        "else { while (atomicAdd(other, 0) == 0) { } atomicAdd(out + 1, 1); }"
    ),
    "atomics_then_a_barrier": ("atomicAdd_block(out + B, 1); __syncthreads(); if (T == 0) other[B] = out[B];"),
    "clearing_then_a_barrier": (
        "if (T == 0) out[B] = 0; __syncthreads(); atomicAdd(out + B, 1); __syncthreads(); if (T == 1) out[B] += 1;"
    ),
    "ring_between_blocks": (
        "if (T) return; if (B == 0) for (int i = 0; i < 6; ++i) { while (get(other) != i) { } out[i % 2] = i;"
        "set(other + 32, i + 1); } if (B == 1) for (int i = 0; i < 6; ++i) { while (get(other + 32) != i + 1) { }"
        "other[64 + i] = out[i % 2]; set(other, i + 1); }"
    ),
    "semaphore_in_order": (
        "if (T == 0) while (get(other) != B) { } __syncthreads(); out[T] += 1; __syncthreads();"
        "if (T == 0) { __threadfence(); set(other, B + 1); }"
    ),
    "grid_barrier": (
        "if (T == 0) atomicAdd(out, B); __syncthreads(); if (T == 0) { __threadfence(); atomicAdd(other, 1);"
        "while (*(volatile int*)other < gridDim.x) { } __threadfence(); } __syncthreads(); out[1 + B] = out[0];"
    ),
    "polled_by_one_thread_and_loaded_by_others": (
        "if (B == 0) { if (T == 0) atomicAdd(out, 1); return; }"
        "if (T == 0) while (*(volatile int*)out == 0) { } __syncthreads(); other[B * 64 + T] = out[0];"
    ),
}


def launched(body: str, blocks: int = 3, cluster: int | None = None, multiprocessor_count: int = 4) -> simulate.Report:
    gpu = simulate.Device(multiprocessor_count=multiprocessor_count, schedules=4)
    kernel = gpu.compile(HEAD + body + "\n}", "kernel")
    arrays = np.zeros(512, np.int32), np.zeros(512, np.int32)
    return gpu.launch(simulate.Config(blocks, 64, cluster), kernel, *arrays)


def of(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{finding.kind}: {finding.message}" for finding in findings]


@pytest.mark.parametrize("name", PAIRS)
def test_a_wrong_kernel_has_a_race_of_its_statement(name: str) -> None:
    errors = launched(PAIRS[name][0]).errors
    assert {finding.kind for finding in errors} == {"race"}, of(errors)
    assert all(finding.source[-1].line == HEAD.count("\n") + 1 for finding in errors)


@pytest.mark.parametrize("name", PAIRS)
def test_its_right_twin_has_no_error(name: str) -> None:
    assert of(launched(PAIRS[name][1]).errors) == []


@pytest.mark.parametrize(
    "name", ["store_and_atomic", "atomics_of_the_block", "counter_is_reset", "store_and_reduction"]
)
def test_blocks_that_follow_each_other_in_one_slot_are_distinct(name: str) -> None:
    wrong, right = (launched(body, blocks=6, multiprocessor_count=1) for body in PAIRS[name])
    assert {finding.kind for finding in wrong.errors} == {"race"}, of(wrong.errors)
    assert of(right.errors) == []


@pytest.mark.parametrize(("blocks", "cluster", "kinds"), [(1, 2, set()), (2, 2, {"race"})])
def test_atomics_of_the_scope_of_a_cluster(blocks: int, cluster: int, kinds: set[str]) -> None:
    body = 'asm volatile("red.relaxed.cluster.global.add.u32 [%0], 1;" :: "l"(out) : "memory");'
    assert {finding.kind for finding in launched(body, blocks, cluster).errors} == kinds


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_has_no_error(name: str) -> None:
    assert of(launched(RIGHT[name]).errors) == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("store_and_atomic", "Conflict and Data-races"),
        ("atomics_of_the_block", "the scope of one does not include the other's thread"),
        ("atomics_of_two_sizes", "in different sizes"),
        ("cached_load_of_own_store", "ld.global.nc may return the value from before the write"),
        ("store_and_reduction", "TMA reduction"),
    ],
)
def test_the_message_names_the_condition_that_fails(name: str, part: str) -> None:
    assert part in str(launched(PAIRS[name][0]))
