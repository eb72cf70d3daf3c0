"""A minimal kernel for each kind of finding, for the page ``docs/sanitizer.md``.

The first column of a line is ``-`` if only the wrong kernel has the line, ``+`` if only the fixed kernel has it, and
blank if both kernels have it.
"""

from __future__ import annotations

LAUNCHES = {
    "cluster": {"grid": 2, "cluster": 2},
    "barrier-divergence": {"block": 64},
    "wgmma-order": {"block": 128},
}
# CAPABILITIES maps a kernel to its compute capability if that is not 9.0.
CAPABILITIES = {"tensor-memory": "10.0", "tcgen05-order": "10.0"}
_HEAD = """ #include <cuda_tma/tma.cuh>
 using namespace cuda_tma;
 extern "C" __global__ void {name}(const __grid_constant__ TensorMap map, int* values) {{
"""
_BODIES = {
    "race": """
     __shared__ int tile[32];
     tile[threadIdx.x] = values[threadIdx.x];
+    __syncwarp();
     values[threadIdx.x] = tile[threadIdx.x ^ 1];
""",
    "missing-proxy-fence": """
     __shared__ __align__(128) int tile[32];
     tile[threadIdx.x] = values[threadIdx.x];
+    fence_proxy_async();
     __syncwarp();
     if (threadIdx.x == 0) {
         store(map, Coordinates{0}, tile);
         commit_group();
         wait_group_read<0>();
     }
""",
    "missing-tensor-map-fence": """
     __shared__ __align__(128) TensorMap changed;
     __shared__ __align__(128) int tile[32];
     __shared__ Barrier full;
     reinterpret_cast<int*>(&changed)[threadIdx.x] = reinterpret_cast<const int*>(&map)[threadIdx.x];
     __syncwarp();
     if (threadIdx.x == 0) {
         full.init(1);
         fence_barrier_init();
         replace_global_address(changed, values);
     }
     __syncwarp();
     TensorMap* made = reinterpret_cast<TensorMap*>(values + 512);
     copy_tensor_map_release(made, changed);
     if (threadIdx.x == 0) {
+        fence_tensor_map_acquire(*made);
         full.arrive_expect_tx(128);
         load(tile, *made, full, Coordinates{0});
     }
     full.wait(0);
     values[threadIdx.x + 32] = tile[threadIdx.x];
""",
    "deadlock": """
     __shared__ Barrier ready;
-    if (threadIdx.x == 0) ready.init(32);
+    if (threadIdx.x == 0) ready.init(1);
     __syncwarp();
     if (threadIdx.x == 0) ready.arrive();
     ready.wait(0);
""",
    "transaction-count": """
     __shared__ __align__(128) int tile[32];
     __shared__ Barrier full;
     if (threadIdx.x == 0) {
         full.init(1);
         fence_barrier_init();
-        full.arrive_expect_tx(64 * sizeof(int));
+        full.arrive_expect_tx(32 * sizeof(int));
         load(tile, map, full, Coordinates{0});
     }
     __syncwarp();
     full.wait(0);
     values[threadIdx.x] = tile[threadIdx.x];
""",
    "barrier-use": """
     __shared__ __align__(128) int tile[32];
     __shared__ Barrier full;
     if (threadIdx.x == 0) {
+        full.init(1);
+        fence_barrier_init();
         full.arrive_expect_tx(sizeof(tile));
         load(tile, map, full, Coordinates{0});
     }
     __syncwarp();
     full.wait(0);
     values[threadIdx.x] = tile[threadIdx.x];
""",
    "early-exit": """
     __shared__ __align__(128) int tile[32];
     tile[threadIdx.x] = values[threadIdx.x];
     fence_proxy_async();
     __syncwarp();
     if (threadIdx.x == 0) {
         store(map, Coordinates{0}, tile);
         commit_group();
+        wait_group_read<0>();
     }
""",
    "misaligned": """
     __shared__ __align__(128) int tile[64];
     __shared__ Barrier full;
     if (threadIdx.x == 0) {
         full.init(1);
         fence_barrier_init();
         full.arrive_expect_tx(128);
-        load(tile + 4, map, full, Coordinates{0});
+        load(tile + 32, map, full, Coordinates{0});
         full.wait(0);
     }
""",
    "out-of-bounds": """
-    values[1024 * blockIdx.x + 1000 + threadIdx.x] = 1;
+    if (threadIdx.x < 24) values[1024 * blockIdx.x + 1000 + threadIdx.x] = 1;
""",
    "map-mismatch": """
     __shared__ __align__(128) int tile[32];
     __shared__ Barrier full;
     if (threadIdx.x == 0) {
         full.init(1);
         fence_barrier_init();
         full.arrive_expect_tx(sizeof(tile));
-        load(tile, map, full, Coordinates{0, 0});
+        load(tile, map, full, Coordinates{0});
         full.wait(0);
     }
""",
    "uninitialized-read": """
     __shared__ int sums[32];
+    sums[threadIdx.x] = 0;
     for (int i = 0; i < 4; ++i) atomicAdd(&sums[threadIdx.x], values[32 * i + threadIdx.x]);
     values[threadIdx.x] = sums[threadIdx.x];
""",
    "wgmma-order": """
     __shared__ __align__(1024) int tile[4096];
     for (int i = threadIdx.x; i < 4096; i += 128) tile[i] = 0;
     fence_proxy_async();
     __syncthreads();
     float sums[32] = {};
+    wgmma_fence();
     const auto* a = reinterpret_cast<const char*>(tile);
     wgmma(sums, MatrixOf<Input::bf16>{k_major(a)}, MatrixOf<Input::bf16>{k_major(a + 8192)});
     wgmma_commit();
     wgmma_wait<0>();
     values[threadIdx.x] = sums[0];
""",
    "tensor-memory": """
     __shared__ unsigned base;
     asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(
         static_cast<unsigned>(__cvta_generic_to_shared(&base))));
+    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
""",
    "tcgen05-order": """
     __shared__ __align__(128) int tile[1024];
     __shared__ Barrier done;
     __shared__ unsigned base;
     for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = i;
     fence_proxy_async();
     asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(
         static_cast<unsigned>(__cvta_generic_to_shared(&base))));
     if (threadIdx.x == 0) {
         done.init(1);
         fence_barrier_init();
     }
     __syncwarp();
     if (threadIdx.x == 0) {  // rows in eights, 128 bytes apart; the halves of a row 2048 bytes apart
         const auto at = static_cast<unsigned>(__cvta_generic_to_shared(tile));
         asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(base),
                      "l"(1ull << 46 | 8ull << 32 | 128ull << 16 | at >> 4));
         asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
             static_cast<unsigned>(__cvta_generic_to_shared(&done))));
     }
+    done.wait(0);
     int value;
     asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(value) : "r"(base));
     asm volatile("tcgen05.wait::ld.sync.aligned;");
-    done.wait(0);
     values[threadIdx.x] = value;
     asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
""",
    "barrier-divergence": """
-    if (threadIdx.x < 32) named_barrier_sync(1, 64);
-    else named_barrier_sync(1, 96);
+    named_barrier_sync(1, 64);
""",
    "cluster": """
     __shared__ __align__(128) int tile[32];
     __shared__ Barrier full;
     if (threadIdx.x == 0) {
         full.init(1);
         fence_barrier_init();
         full.arrive_expect_tx(sizeof(tile));
     }
     cluster_sync();
     if (threadIdx.x == 0 && cluster_cta_rank() == 0)
-        load_multicast(tile, map, full, Coordinates{0}, 0b111);
+        load_multicast(tile, map, full, Coordinates{0}, 0b11);
     full.wait(0);
     cluster_sync();
""",
    "no-progress": """
     volatile int* flag = values;
+    *flag = 1;
     while (*flag == 0) continue;
""",
    "fault": """
-    if (values[threadIdx.x] == 0) __trap();
+    if (values[threadIdx.x] < 0) __trap();
""",
}
_INCLUDES = {
    "missing-tensor-map-fence": " #include <cuda_tma/tensor_map_replace.cuh>\n",
    "wgmma-order": " #include <cuda_tma/wgmma.cuh>\n",
    "barrier-divergence": " #include <cuda_tma/warpgroup.cuh>\n",
}
KERNELS = {
    kind: _INCLUDES.get(kind, "") + _HEAD.format(name=kind.replace("-", "_")) + body.lstrip("\n") + " }\n"
    for kind, body in _BODIES.items()
}
