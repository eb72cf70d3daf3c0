// A GEMM of CUTLASS (github.com/NVIDIA/cutlass, 7107b0553, BSD-3-Clause) for the simulator's tests: D = 2 A B + C / 2 of
// bf16 and f32, persistent, warp-specialized, in clusters of two. The recording contains the device side as PTX, and
// the arguments with which the host launches it. Recorded with CUDA 13.0, from a CUTLASS next to this file:
//     flags="-std=c++17 -arch=sm_90a -Icutlass/include -Icutlass/tools/util/include --expt-relaxed-constexpr -DNDEBUG"
//     nvcc $flags -ptx cutlass_gemm.cu && gzip -9n cutlass_gemm.ptx
//     nvcc $flags -DHOST cutlass_gemm.cu -o launch && ./launch > cutlass_gemm.txt
#ifdef HOST
#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#include <cuda.h>

#include <cstdio>
#include <cstring>

// This function replaces the driver's encoder. It prints its arguments (data type, rank, address, global_dim,
// global_strides, box_dim, element_strides, interleave, swizzle, L2 promotion, OOB fill) and marks the map with 0xC0
// or 0xC1 in each byte.
extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                                   void* address, const cuuint64_t* dim, const cuuint64_t* strides,
                                                   const cuuint32_t* box, const cuuint32_t* element_strides,
                                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                   CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    static int calls = 0;
    printf("map %d %u %p", int(type), rank, address);
    for (unsigned i = 0; i < rank; ++i) printf(" %llu", (unsigned long long)dim[i]);
    for (unsigned i = 0; i + 1 < rank; ++i) printf(" %llu", (unsigned long long)strides[i]);
    for (unsigned i = 0; i < rank; ++i) printf(" %u", box[i]);
    for (unsigned i = 0; i < rank; ++i) printf(" %u", element_strides[i]);
    printf(" %d %d %d %d\n", int(interleave), int(swizzle), int(promotion), int(fill));
    memset(map, 0xC0 + calls++, sizeof *map);
    return CUDA_SUCCESS;
}
#endif

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

namespace cutlass::recorded {
using cute::_1, cute::_2, cute::_64, cute::_128;
using Element = bfloat16_t;
using Tile = cute::Shape<_128, _128, _64>;
using Cluster = cute::Shape<_2, _1, _1>;
using Epilogue = epilogue::collective::CollectiveBuilder<
    arch::Sm90, arch::OpClassTensorOp, Tile, Cluster, epilogue::collective::EpilogueTileAuto, float, float, float,
    layout::ColumnMajor, 4, float, layout::ColumnMajor, 4, epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = gemm::collective::CollectiveBuilder<
    arch::Sm90, arch::OpClassTensorOp, Element, layout::RowMajor, 8, Element, layout::ColumnMajor, 8, float, Tile, Cluster,
    gemm::collective::StageCountAutoCarveout<int(sizeof(Epilogue::SharedStorage))>,
    gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel = gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Mainloop, Epilogue>;
}  // namespace cutlass::recorded

using cutlass::recorded::Kernel, cutlass::recorded::Element;

#ifndef HOST
template __global__ void cutlass::device_kernel<Kernel>(typename Kernel::Params const __grid_constant__);
#else
template <typename T>
T* at(unsigned long long address) { return reinterpret_cast<T*>(address); }

int main() {
    const int m = 192, n = 160, k = 144;
    Kernel::StrideA a_stride{};
    Kernel::StrideB b_stride{};
    Kernel::StrideC c_stride{};
    Kernel::StrideD d_stride{};
    cute::get<0>(a_stride) = k;
    cute::get<0>(b_stride) = k;
    cute::get<1>(c_stride) = m;
    cute::get<1>(d_stride) = m;
    cutlass::KernelHardwareInfo hardware;
    hardware.device_id = 0;
    hardware.sm_count = 2;
    hardware.max_active_clusters = 1;
    const Kernel::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k},
        {at<Element>(0x1122334455660000), a_stride, at<Element>(0x1122334455770000), b_stride},
        {{2.0f, 0.5f}, at<float>(0x1122334455880000), c_stride, at<float>(0x1122334455990000), d_stride},
        hardware};
    alignas(128) static unsigned char bytes[sizeof(Kernel::Params)];
    const auto params = Kernel::to_underlying_arguments(arguments, nullptr);
    memcpy(bytes, &params, sizeof params);
    const dim3 grid = Kernel::get_grid_shape(params), block = Kernel::get_block_shape();
    printf("launch %u %u %u %u %d\nparams ", grid.x, grid.y, grid.z, block.x, int(Kernel::SharedStorageSize));
    for (unsigned char byte : bytes) printf("%02x", byte);
    puts("");
}
#endif
