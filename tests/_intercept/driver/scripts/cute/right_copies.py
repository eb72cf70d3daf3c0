"""A program with three kernels of CuTe DSL, for an elementwise product, a reversal through shared memory, and a 2D load
by TMA. The reversal is also compiled for calls through TVM FFI, which takes torch's tensors."""

import cutlass
import cutlass.utils
import torch
from cutlass import cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def double(values: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    values[thread] = values[thread] * 2.0


@cute.jit
def run_double(values: cute.Tensor):
    double(values).launch(grid=[1, 1, 1], block=[32, 1, 1])


@cute.kernel
def reverse(values: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout(64))
    thread, _, _ = cute.arch.thread_idx()
    tile[thread] = values[thread]
    cute.arch.sync_threads()
    values[thread] = tile[63 - thread]


@cute.jit
def run_reverse(values: cute.Tensor):
    reverse(values).launch(grid=[1, 1, 1], block=[64, 1, 1], smem=256)


@cute.kernel
def load(atom: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout((32, 32)), byte_alignment=128)
    barrier = smem.allocate_array(cutlass.Int64, 1)
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    part = cute.local_tile(source, (32, 32), (1, 0))
    shared, of_global = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(part, 0, 2)
    )
    if thread < 32:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(barrier, 4096)
        cute.copy(atom, of_global, shared, tma_bar_ptr=barrier)
    cute.arch.mbarrier_wait(barrier, 0)
    for row in range(32):
        out[thread, row] = tile[thread, row]


@cute.jit
def run_load(source: cute.Tensor, out: cute.Tensor):
    tiled = cute.make_tensor(source.iterator, cute.make_layout((64, 64), stride=(1, 64)))
    atom, tensor = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), tiled, cute.make_layout((32, 32)), (32, 32), 1
    )
    load(atom, tensor, out).launch(grid=[1, 1, 1], block=[32, 1, 1], smem=8192)


values = torch.arange(32, dtype=torch.float32, device="cuda")
run_double(from_dlpack(values))
assert (values.cpu() == 2 * torch.arange(32)).all()

values = torch.arange(64, dtype=torch.float32, device="cuda")
compiled = cute.compile(run_reverse, from_dlpack(values))
compiled(from_dlpack(values))
assert (values.cpu() == torch.arange(64).flip(0)).all()

values = torch.arange(64, dtype=torch.float32, device="cuda")
tensor = from_dlpack(values, enable_tvm_ffi=True)
compiled = cute.compile(run_reverse, tensor, options="--enable-tvm-ffi")
compiled(values)
compiled(tensor)
compiled(values[:])
assert (values.cpu() == torch.arange(64).flip(0)).all()

source = torch.rand(64, 64, device="cuda")
out = torch.zeros(32, 32, device="cuda")
run_load(from_dlpack(source, assumed_align=16), from_dlpack(out, assumed_align=16))
torch.cuda.synchronize()
assert (out.cpu() == source.cpu().T[32:, :32]).all()
