// Launches of a C++ program in several sizes, for run_trial.py: nvcc embeds PTX, and links its static runtime.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t error_ = (call);                                                         \
        if (error_ != cudaSuccess) {                                                         \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(error_));              \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

__constant__ float weights[4] = {0.25f, 0.5f, 0.75f, 1.0f};
__device__ int counter;

__global__ void axpy(float a, const float* x, float* y, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) y[at] = a * x[at] + y[at];
}

__global__ void weighted(const float* x, float* y, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) y[at] = x[at] * weights[at % 4];
}

template <typename T> __global__ void reduced(const T* x, T* out, int n) {
    extern __shared__ unsigned char memory[];
    T* sums = reinterpret_cast<T*>(memory);
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = at < n ? x[at] : T(0);
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

__global__ void transposed(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        right[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

__global__ void counted(const int* x, int* bins, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) atomicAdd(&bins[x[at] % 32], 1);
    if (at == 0) atomicAdd(&counter, 1);
}

struct Table {
    const float* rows[4];
    int lengths[4];
};

__global__ void gathered(Table table, const float* const* pointers, float* out) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < table.lengths[row]; i += blockDim.x)
        out[row * 1024 + i] = table.rows[row][i] + pointers[row][i];
}

// A bulk copy into shared memory that an mbarrier counts: PTX ISA, "cp.async.bulk".
__global__ void bulk(const float* in, float* out, int n) {
    __shared__ alignas(128) float tile[1024];
    __shared__ alignas(8) uint64_t barrier;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(n * 4) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                     "l"(in + blockIdx.x * n), "r"(n * 4), "r"(at)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }" ::"r"(at)
                 : "memory");
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = tile[i] + 1;
}

template <typename T> T* array(const std::vector<T>& values) {
    T* memory;
    CHECK(cudaMalloc(&memory, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

static void run(int n) {
    std::vector<float> values(n);
    std::vector<int> integers(n);
    for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i % 97) / 7, integers[i] = i * 7;
    float *x = array(values), *y = array(values), *out = array(std::vector<float>(4096));
    int *numbers = array(integers), *bins = array(std::vector<int>(32)), *sums = array(std::vector<int>(256));
    int blocks = (n + 127) / 128;
    for (int repeat = 0; repeat < 3; ++repeat) axpy<<<blocks, 128>>>(2.0f, x, y, n);
    weighted<<<blocks, 128>>>(x, y, n);
    reduced<float><<<blocks, 128, 512>>>(x, out, n);
    reduced<int><<<blocks, 128, 512>>>(numbers, sums, n);
    counted<<<blocks, 128>>>(numbers, bins, n);
    CHECK(cudaDeviceSynchronize());
    int side = 1;
    while ((side + 1) * (side + 1) <= n && side < 64) ++side;
    dim3 grid((side + 15) / 16, (side + 15) / 16), block(16, 16);
    transposed<<<grid, block>>>(x, y, side, side);
    product<<<grid, block>>>(x, x, out, side);
    Table table = {{x, y, x, y}, {n < 1024 ? n : 1024, 1, n < 2 ? n : 2, n < 3 ? n : 3}};
    std::vector<const float*> pointers = {x, y, y, x};
    const float** device_pointers = array(pointers);
    gathered<<<4, 64>>>(table, device_pointers, out);
    int part = n / 4 * 4 < 1024 ? n / 4 * 4 : 1024;
    if (part > 0) bulk<<<1, 128>>>(x, out, part);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetLastError());
}

int main() {
    const int sizes[] = {1, 30, 64, 100, 256, 500, 1000, 1024, 2000, 4000};
    for (int n : sizes) run(n);
    std::printf("done\n");
}
