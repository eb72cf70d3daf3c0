// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/macros_end.cuh: undefines the macros of macros.cuh.

#undef CUDA_TMA_MULTICAST
#undef CUDA_TMA_COMPLETE
#undef CUDA_TMA_STORE_OPERANDS
#undef CUDA_TMA_LOAD_OPERANDS
#undef CUDA_TMA_IM2COL
#undef CUDA_TMA_OFFSETS
#undef CUDA_TMA_PIXELS
#undef CUDA_TMA_TILED
#undef CUDA_TMA_RANK
#undef CUDA_TMA_HINTED
#undef CUDA_TMA_ASM
