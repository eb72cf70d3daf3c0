// A pipeline that loads tiles from global memory into a ring of stages. Threads read and use the tiles, and the CTAs
// synchronize at the end. Macros select the parts (shape.py). Each statement that orders accesses has a name, and the
// macro FAULT leaves one out. __init__.py explains why the statements suffice.

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/scope.cuh>
#include <cuda_tma/store_async.cuh>
#include <cuda_tma/warpgroup.cuh>
#if CONSUMER == 1
#include <cuda_tma/wgmma.cuh>
#endif
using namespace cuda_tma;

enum { TMA, IM2COL, BULK, CP_ASYNC, STORES, ST_ASYNC };   // PRODUCER
enum { LOADS, WGMMA, STORE, REDUCE, STORE_BULK };         // CONSUMER
enum { EACH, WARP, LATE, COUNTED, GROUP, HEADER };        // RELEASE
enum { DIRECT, ATOMIC, STAGED, STAGED_REDUCE };           // EPILOGUE
enum { ALONE, NEIGHBOURS, LANES };                        // EXCHANGE
enum { NO_PEER, PEER_LOADS, PEER_STORES, PEER_ASYNC, PEER_BULK };  // FINISH
enum { NO_HANDOFF, LAST, LAST_ACQ_REL, CHAIN, LAST_LOADED };       // HANDOFF
enum {
    NOTHING, INIT_FENCE, INIT_BARRIER, FULL_WAIT, EMPTY_WAIT, WRITE_FENCE, ARRIVE, RELEASE_FENCE, RELEASE_BARRIER,
    ARRIVE_EMPTY, RELEASE_SCOPE, ACQUIRE_SCOPE, FULL_COUNT, EMPTY_COUNT, TX_BYTES, PARITY, STORE_READ, PRODUCT_WAIT,
    PRODUCT_FENCE, REUSE_WAIT, REUSE_BARRIER, STORE_FENCE, STORE_BARRIER, LAST_WAIT, EXCHANGE_BARRIER,
    EXCHANGE_AGAIN, PEER_BARRIER, PEER_WAIT, PEER_FENCE, CLUSTER_END, HANDOFF_BARRIER, HANDOFF_RELEASE,
    HANDOFF_ACQUIRE, HANDOFF_TOLD, HANDOFF_PROXY, COPY_WAIT
};
#define KEEP(name) if constexpr (FAULT != name)

constexpr unsigned ROWS = 8 * SLICES, PITCH = COLS * sizeof(ELEMENT), SLICE = 8 * PITCH, BYTES = SLICES * SLICE;
constexpr bool COPIES = PRODUCER == TMA || PRODUCER == IM2COL || PRODUCER == BULK;   // through the async proxy
constexpr bool REMOTE = MULTICAST || PRODUCER == ST_ASYNC;        // other CTAs fill or release a stage
constexpr bool READS = CONSUMER == LOADS;                         // through the generic proxy
constexpr bool ONE_READS = CONSUMER == STORE || CONSUMER == REDUCE || CONSUMER == STORE_BULK;

__shared__ __align__(1024) unsigned char tiles[STAGES][BYTES];
__shared__ Pipeline<STAGES> ring;
__shared__ Barrier told;                                          // at the end, by a peer or a copy
__shared__ __align__(128) unsigned buffers[BUFFERS][CONSUMERS], shared_sums[CONSUMERS], inbox[CONSUMERS];
__shared__ __align__(128) unsigned others[32 * CONSUMERS];
__shared__ bool is_last;

struct Given { const ELEMENT* in; unsigned *out, *peers, *partial, *total, *flags; int items; };

__device__ int rank() { return CTAS > 1 ? cluster_cta_rank() : 0; }
__device__ int worker(int shift = 0) {
    if (MULTICAST) return blockIdx.x / CTAS;
    return blockIdx.x - rank() + (rank() + shift) % CTAS;
}
__device__ int workers() { return MULTICAST ? gridDim.x / CTAS : gridDim.x; }

// ---- the beginning ----

constexpr unsigned PEERS = MULTICAST ? CTAS : 1;                  // CTAs that release a stage
constexpr unsigned RELEASES = ONE_READS || RELEASE == GROUP ? 1 : RELEASE == WARP || RELEASE == LATE ? CONSUMERS / 32 : CONSUMERS;
constexpr unsigned FILLS = PRODUCER == CP_ASYNC || PRODUCER == STORES ? PRODUCERS : PRODUCER == ST_ASYNC ? 1 : LOADERS;

__device__ void begin() {
    if (threadIdx.x == STARTER) {
        for (int i = 0; i < STAGES; ++i) {
            ring.full[i].init(FILLS + (FAULT == FULL_COUNT));
            ring.empty[i].init(PEERS * RELEASES + (FAULT == EMPTY_COUNT));
        }
        told.init(FINISH == PEER_STORES ? CONSUMERS : 1);
        KEEP(INIT_FENCE) fence_barrier_init();
    }
    KEEP(INIT_BARRIER) {
        __syncwarp();
        if (CTAS > 1) cluster_sync();
        else __syncthreads();
    }
}

// ---- producers ----

__device__ void copy_tile(Stage<STAGES> at, const TensorMap& map, const Given& given, int item, int loader) {
    Barrier& full = ring.full[at.index];
    full.arrive_expect_tx(BYTES / LOADERS + (FAULT == TX_BYTES ? 16 : 0));
    if constexpr (PRODUCER == IM2COL) {
        load_im2col(tiles[at.index], map, full, Coordinates{0, 0, item}, Offsets{0});
        return;
    }
    for (int s = MULTICAST ? rank() : loader; s < SLICES; s += MULTICAST ? CTAS : LOADERS) {
        void* to = tiles[at.index] + s * SLICE;
        const int row = (item * SLICES + s) * 8;
        const unsigned short mask = (1 << CTAS) - 1;
        if constexpr (PRODUCER == TMA && MULTICAST) load_multicast(to, map, full, Coordinates{0, row}, mask);
        else if constexpr (PRODUCER == TMA) load(to, map, full, Coordinates{0, row});
        else if constexpr (MULTICAST) load_bulk_multicast(to, given.in + row * COLS, SLICE, full, mask);
        else load_bulk(to, given.in + row * COLS, SLICE, full);
    }
}

__device__ void write_tile(Stage<STAGES> at, const Given& given, int item, unsigned p) {
    Barrier& full = ring.full[at.index];
    const auto* from = reinterpret_cast<const unsigned char*>(given.in) + size_t(item) * BYTES;
    if constexpr (PRODUCER == CP_ASYNC) {
        for (unsigned i = 16 * p; i < BYTES; i += 16 * PRODUCERS)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_address(tiles[at.index] + i)), "l"(from + i) : "memory");
        if constexpr (!READS || GROUPS) {
            asm volatile("cp.async.commit_group;" ::: "memory");
            KEEP(COPY_WAIT) asm volatile("cp.async.wait_group 0;" ::: "memory");
            if (!READS) KEEP(WRITE_FENCE) fence_proxy_async();
            KEEP(ARRIVE) full.arrive();
        } else {
            KEEP(ARRIVE) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full.address()) : "memory");
        }
    } else if constexpr (PRODUCER == STORES) {
        for (unsigned i = 4 * p; i < BYTES; i += 4 * PRODUCERS)
            *reinterpret_cast<unsigned*>(tiles[at.index] + swizzle<SWIZZLE>(i)) = *reinterpret_cast<const unsigned*>(from + i);
        if (!READS) KEEP(WRITE_FENCE) fence_proxy_async();
        KEEP(ARRIVE) full.arrive();
    } else {
        const int next = (rank() + 1) % CTAS;
        if (p == 0) full.in_cta(next).arrive_expect_tx(BYTES + (FAULT == TX_BYTES ? 16 : 0));
        for (unsigned i = 4 * p; i < BYTES; i += 4 * PRODUCERS)
            store_async(reinterpret_cast<unsigned*>(tiles[at.index] + i), next, *reinterpret_cast<const unsigned*>(from + i), full);
    }
}

__device__ void wait_for_room(Stage<STAGES> at) {
    const unsigned parity = at.parity ^ 1 ^ (FAULT == PARITY);
    KEEP(EMPTY_WAIT) {
        if (REMOTE && FAULT != ACQUIRE_SCOPE) ring.empty[at.index].wait_cluster(parity);
        else if (RELEASE == HEADER && FAULT == NOTHING) ring.acquire(at);
        else ring.empty[at.index].wait(parity);
    }
}

__device__ void produce(const TensorMap& map, const Given& given) {
    const unsigned p = threadIdx.x - CONSUMERS;
    if (COPIES && p >= LOADERS) return;
    Stage<STAGES> at;
    for (int item = worker(PRODUCER == ST_ASYNC); item < given.items; item += workers(), at.next()) {
        wait_for_room(at);
        if constexpr (COPIES) copy_tile(at, map, given, item, p);
        else write_tile(at, given, item, p);
    }
}

// ---- consumers ----

__device__ void wait_for_tile(Stage<STAGES> at) {
    KEEP(FULL_WAIT) {
        if (PRODUCER == ST_ASYNC) ring.full[at.index].wait_cluster(at.parity);
        else if (RELEASE == HEADER) ring.wait(at);
        else ring.full[at.index].wait(at.parity);
    }
}

__device__ void arrive_at(Stage<STAGES> at, int cta, unsigned count) {
    if (READS && FAULT != RELEASE_SCOPE) ring.empty[at.index].in_cta(cta).arrive(count);
    else for (unsigned i = 0; i < count; ++i) ring.empty[at.index].in_cta(cta).release_async_read();
}

__device__ void arrive_empty(Stage<STAGES> at, unsigned count = 1) {
    KEEP(ARRIVE_EMPTY) {
        if (MULTICAST) for (int cta = 0; cta < CTAS; ++cta) arrive_at(at, cta, count);
        else if (PRODUCER == ST_ASYNC) arrive_at(at, (rank() + CTAS - 1) % CTAS, count);
        else ring.empty[at.index].arrive(count);
    }
}

__device__ void release(Stage<STAGES> at) {
    constexpr bool fenced = READS && COPIES;
    const unsigned t = threadIdx.x;
    if constexpr (ONE_READS) return arrive_empty(at);
    if constexpr (RELEASE == HEADER && FAULT != RELEASE_FENCE && FAULT != ARRIVE_EMPTY) {
        if (MULTICAST) for (int cta = 0; cta < CTAS; ++cta) fenced ? ring.release(at, cta) : ring.release_async_read(at, cta);
        else fenced ? ring.release(at) : ring.release_async_read(at);
        return;
    }
    if constexpr (fenced && RELEASE != LATE) KEEP(RELEASE_FENCE) fence_proxy_async();
    if constexpr (RELEASE == EACH || RELEASE == HEADER) return arrive_empty(at);
    if constexpr (RELEASE == GROUP) {
        KEEP(RELEASE_BARRIER) named_barrier_sync<1>(CONSUMERS);
        if (t == 0) arrive_empty(at);
        return;
    }
    KEEP(RELEASE_BARRIER) __syncwarp();
    if (t % 32 == 0) {
        if constexpr (fenced && RELEASE == LATE) KEEP(RELEASE_FENCE) fence_proxy_async();
        arrive_empty(at, RELEASE == COUNTED ? 32 : 1);
    }
}

__device__ unsigned exchanged(unsigned sum) {
    if (EXCHANGE == ALONE) return sum;
    const unsigned t = threadIdx.x, other = EXCHANGE == LANES ? t ^ 1 : (t + 1) % CONSUMERS;
    shared_sums[t] = sum;
    KEEP(EXCHANGE_BARRIER) EXCHANGE == LANES ? __syncwarp() : named_barrier_sync<2>(CONSUMERS);
    const unsigned found = shared_sums[other];
    KEEP(EXCHANGE_AGAIN) EXCHANGE == LANES ? __syncwarp() : named_barrier_sync<2>(CONSUMERS);
    return found;
}

__device__ void put(const Given& given, int item, int turn, unsigned value) {
    const unsigned t = threadIdx.x;
    unsigned* to = given.out + (item * PEERS + (MULTICAST ? rank() : 0)) * CONSUMERS;
    if constexpr (EPILOGUE == DIRECT) {
        to[t] = value;
    } else if constexpr (EPILOGUE == ATOMIC) {
        atomicAdd(given.out + t, value);
    } else {
        unsigned* buffer = buffers[turn % BUFFERS];
        if (t == 0) KEEP(REUSE_WAIT) wait_group_read<BUFFERS - 1>();
        KEEP(REUSE_BARRIER) named_barrier_sync<3>(CONSUMERS);
        buffer[t] = value;
        KEEP(STORE_FENCE) fence_proxy_async();
        KEEP(STORE_BARRIER) named_barrier_sync<3>(CONSUMERS);
        if (t == 0) {
            if constexpr (EPILOGUE == STAGED) store_bulk(to, buffer, sizeof(buffers[0]));
            else reduce_bulk<Reduction::add, BulkType::u32>(given.out, buffer, sizeof(buffers[0]));
            commit_group();
        }
    }
}

__device__ unsigned consume_by_loads(const Given& given) {
    unsigned sum = 0;
    int turn = 0;
    Stage<STAGES> at;
    for (int item = worker(); item < given.items; item += workers(), at.next(), ++turn) {
        wait_for_tile(at);
        for (unsigned e = threadIdx.x; e < ROWS * COLS; e += CONSUMERS)
            sum = sum * 31 + *reinterpret_cast<const ELEMENT*>(tiles[at.index] + swizzle<SWIZZLE>(e * sizeof(ELEMENT)));
        release(at);
        put(given, item, turn, exchanged(sum));
    }
    if (EPILOGUE >= STAGED && threadIdx.x == 0) KEEP(LAST_WAIT) wait_group_read<0>();
    return sum;
}

__device__ void consume_by_stores(const TensorMap& map, const Given& given) {
    Stage<STAGES> at, before;
    bool first = true;
    for (int item = worker(); item < given.items; item += workers(), at.next()) {
        wait_for_tile(at);
        for (int s = 0; s < SLICES; ++s) {
            const unsigned char* from = tiles[at.index] + s * SLICE;
            const int to = ((item * PEERS + (MULTICAST ? rank() : 0)) * SLICES + s) * 8;
            if constexpr (CONSUMER == STORE) store(map, Coordinates{0, to}, from);
            else if constexpr (CONSUMER == REDUCE) reduce<Reduction::add>(map, Coordinates{0, 8 * s}, from);
            else store_bulk(reinterpret_cast<ELEMENT*>(given.out) + to * COLS, from, SLICE);
        }
        commit_group();
        KEEP(STORE_READ) wait_group_read<DELAY>();
        if (DELAY && !first) { release(before); before.next(); }
        if (!DELAY) release(at);
        first = false;
    }
    KEEP(LAST_WAIT) wait_group_read<0>();
}

#if CONSUMER == 1
__device__ void consume_by_products(const Given& given) {
    float sums[32] = {};
    Stage<STAGES> at, before;
    bool first = true;
    for (int item = worker(); item < given.items; item += workers(), at.next()) {
        wait_for_tile(at);
        KEEP(PRODUCT_FENCE) wgmma_fence();
        for (int k = 0; k < 64; k += 16)
            wgmma(sums, k_major(tiles[at.index]).advance(2 * k), k_major(tiles[at.index]).advance(2 * k));
        wgmma_commit();
        KEEP(PRODUCT_WAIT) wgmma_wait<DELAY>();
        if (DELAY && !first) { release(before); before.next(); }
        if (!DELAY) release(at);
        first = false;
    }
    wgmma_wait<0>(sums);
    for (int i = 0; i < 32; ++i)
        reinterpret_cast<float*>(given.out)[(blockIdx.x * CONSUMERS + threadIdx.x) * 32 + i] = sums[i];
}
#endif

// ---- one kind of threads: all read, and the first of them loads ahead ----

__device__ unsigned together(const TensorMap& map, const Given& given) {
    unsigned sum = 0;
    int turn = 0, ahead = worker();
    Stage<STAGES> at, to;
    const bool loads = threadIdx.x == STARTER;
    for (int i = 0; loads && i < STAGES && ahead < given.items; ++i, ahead += workers(), to.next())
        copy_tile(to, map, given, ahead, 0);
    for (int item = worker(); item < given.items; item += workers(), at.next(), ++turn) {
        wait_for_tile(at);
        for (unsigned e = threadIdx.x; e < ROWS * COLS; e += CONSUMERS)
            sum = sum * 31 + *reinterpret_cast<const ELEMENT*>(tiles[at.index] + swizzle<SWIZZLE>(e * sizeof(ELEMENT)));
        KEEP(RELEASE_FENCE) fence_proxy_async();
        KEEP(RELEASE_BARRIER) __syncthreads();
        if (loads && ahead < given.items) {
            copy_tile(to, map, given, ahead, 0);
            ahead += workers();
            to.next();
        }
        put(given, item, turn, exchanged(sum));
    }
    if (EPILOGUE >= STAGED && threadIdx.x == 0) KEEP(LAST_WAIT) wait_group_read<0>();
    return sum;
}

// ---- exchange between CTAs of a cluster ----

__device__ unsigned loaded_from(const unsigned* shared, int cta) {
    unsigned value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(cluster_address(shared, cta)) : "memory");
    return value;
}

__device__ void tell_peer(unsigned sum) {
    const unsigned t = threadIdx.x, next = (rank() + 1) % CTAS;
    if (t >= CONSUMERS) return;
    if constexpr (FINISH == PEER_LOADS) {
        inbox[t] = sum;
    } else if constexpr (FINISH == PEER_STORES) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(cluster_address(inbox + t, next)), "r"(sum) : "memory");
        if (FAULT == RELEASE_SCOPE) told.in_cta(next).release_async_read();
        else told.arrive_at(next);
    } else if constexpr (FINISH == PEER_ASYNC) {
        if (t == 0) told.arrive_expect_tx(sizeof(inbox));
        store_async(inbox + t, next, sum, told);
    } else if constexpr (FINISH == PEER_BULK) {
        shared_sums[t] = sum;
        KEEP(PEER_FENCE) fence_proxy_async();
        KEEP(PEER_BARRIER) named_barrier_sync<4>(CONSUMERS);
        if (t == 0) {
            told.arrive_expect_tx(sizeof(inbox));
            send_bulk(inbox, next, shared_sums, sizeof(inbox), told);
        }
    }
}

__device__ void hear_peer(const Given& given) {
    const unsigned t = threadIdx.x;
    if (t >= CONSUMERS || FINISH == NO_PEER) return;
    if constexpr (FINISH != PEER_LOADS) KEEP(PEER_WAIT) {
        if (FAULT == ACQUIRE_SCOPE) told.wait(0);
        else told.wait_cluster(0);
    }
    given.peers[blockIdx.x * CONSUMERS + t] = FINISH == PEER_LOADS ? loaded_from(inbox + t, (rank() + CTAS - 1) % CTAS) : inbox[t];
}

// ---- exchange between CTAs of a grid ----

__device__ void meet() { named_barrier_sync<5>(CONSUMERS); }

__device__ void hand_on(const Given& given, unsigned sum) {   // to the next CTA
    const unsigned t = threadIdx.x, b = blockIdx.x;
    if (t == 0 && b > 0)
        while ((FAULT == HANDOFF_ACQUIRE ? *(volatile unsigned*)(given.flags + b - 1) : load_acquire(given.flags + b - 1)) == 0) __nanosleep(20);
    KEEP(HANDOFF_TOLD) meet();
    given.partial[b * CONSUMERS + t] = sum + (b > 0 ? given.partial[(b - 1) * CONSUMERS + t] : 0);
    KEEP(HANDOFF_BARRIER) meet();
    if (t == 0) {
        if (FAULT == HANDOFF_RELEASE) *(volatile unsigned*)(given.flags + b) = 1;
        else store_release(given.flags + b, 1u);
    }
}

__device__ void sum_up(const Given& given, unsigned sum) {    // by the last CTA
    const unsigned t = threadIdx.x, n = gridDim.x;
    given.partial[blockIdx.x * CONSUMERS + t] = sum;
    KEEP(HANDOFF_BARRIER) meet();
    if (t == 0) {
        if (HANDOFF == LAST) {
            KEEP(HANDOFF_RELEASE) __threadfence();
            is_last = atomicAdd(given.flags, 1u) == n - 1;
            KEEP(HANDOFF_ACQUIRE) __threadfence();
        } else if (FAULT == HANDOFF_RELEASE) {
            is_last = atomicAdd(given.flags, 1u) == n - 1;
        } else {
            is_last = fetch_add(given.flags, 1u) == n - 1;
        }
        if (HANDOFF == LAST_LOADED && is_last) {
            KEEP(HANDOFF_PROXY) fence_proxy_async_global();
            told.arrive_expect_tx(4 * n * CONSUMERS);
            load_bulk(others, given.partial, 4 * n * CONSUMERS, told);
        }
    }
    KEEP(HANDOFF_TOLD) meet();
    if (!is_last) return;
    if (HANDOFF == LAST_LOADED) KEEP(PEER_WAIT) told.wait(0);
    unsigned total = 0;
    for (unsigned b = 0; b < n; ++b) total += HANDOFF == LAST_LOADED ? others[b * CONSUMERS + t] : given.partial[b * CONSUMERS + t];
    given.total[t] = total;
}

extern "C" __global__ void kernel(const __grid_constant__ TensorMap in_map, const __grid_constant__ TensorMap out_map,
                                  const ELEMENT* in, unsigned* out, unsigned* peers, unsigned* partial, unsigned* total,
                                  unsigned* flags, int items) {
    const Given given{in, out, peers, partial, total, flags, items};
    begin();
    unsigned sum = 0;
    if constexpr (TOGETHER) {
        sum = together(in_map, given);
    } else if (threadIdx.x >= CONSUMERS) {
        produce(in_map, given);
    } else {
        if constexpr (CONSUMER == LOADS) sum = consume_by_loads(given);
#if CONSUMER == 1
        if constexpr (CONSUMER == WGMMA) consume_by_products(given);
#endif
        if constexpr (ONE_READS) if (threadIdx.x == 0) consume_by_stores(out_map, given);
    }
    __syncwarp();
    if constexpr (FINISH != NO_PEER) {
        tell_peer(sum);
        __syncwarp();
        if constexpr (FINISH == PEER_LOADS) KEEP(PEER_WAIT) cluster_sync();
        hear_peer(given);
        __syncwarp();
    }
    if constexpr (HANDOFF != NO_HANDOFF) if (threadIdx.x < CONSUMERS) {
        if constexpr (HANDOFF == CHAIN) hand_on(given, sum);
        else sum_up(given, sum);
    }
    __syncwarp();
    if constexpr (REMOTE || FINISH != NO_PEER) KEEP(CLUSTER_END) cluster_sync();
}
