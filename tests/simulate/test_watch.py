"""Tests of watched launches on a fake driver. Arrays replace the GPU's memory, and a Python function replaces the
kernel."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from cuda import core

import cuda_tma
from cuda_tma import simulate
from cuda_tma._compile.compiled import compiled_of
from cuda_tma.simulate._memory import allocations as _allocations
from tests.support.compiled_kernels import compiled_kernel, parameter_sizes
from tests.support.launching import HANDLES, ForeignStream

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<4, 8>>;
extern "C" __global__ void twice(const __grid_constant__ TiledMap<Window> map, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = 2 * tile(threadIdx.x / 8, threadIdx.x % 8);
}

struct Links { int* const* table; int count; };
__device__ int calls = 5;
extern "C" __global__ void follow(Links links) {  // each of the arrays that a table in memory points to
    for (int i = threadIdx.x; i < links.count; i += 32) links.table[i][0] += 100 + calls;
    __syncthreads();
    if (threadIdx.x == 0) calls += 1;
}
"""
OPTIONS = core.ProgramOptions(std="c++17", arch="sm_90a", include_path=cuda_tma.include_path())
STREAM = ForeignStream()
ONE_WARP = {"grid": 1, "block": 32}


class Links(ctypes.Structure):
    _fields_ = (("table", ctypes.c_void_p), ("count", ctypes.c_int))


class Gpu:
    """A fake GPU with arrays as memory, whose kernel is a Python function."""

    def __init__(self, driver, monkeypatch):
        self.driver, self.arrays, self.variables, self.run = driver, [], {}, lambda: None
        launched = driver.cuLaunchKernelEx

        def launch(*arguments):
            self.run()
            return launched(*arguments)

        monkeypatch.setattr(driver, "cuLaunchKernelEx", launch)
        driver.install()
        monkeypatch.setattr(_allocations, "allocation", self.allocation)
        monkeypatch.setattr(_allocations, "copied", lambda at, size: np.array((ctypes.c_uint8 * size).from_address(at)))
        monkeypatch.setattr(_allocations, "synchronize", lambda: None)
        monkeypatch.setattr(_allocations, "variable_address", lambda kernel, name: self.variables.get(name))

    def array(self, *shape, dtype=np.float32):
        """Return zeros at an address that is a multiple of 16."""
        whole = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 16, np.uint8)
        skipped = -whole.ctypes.data % 16
        self.arrays.append(whole[skipped : len(whole) - 16 + skipped].view(dtype).reshape(shape))
        return self.arrays[-1]

    def allocation(self, address):
        for array in self.arrays:
            if array.ctypes.data <= address < array.ctypes.data + array.nbytes:
                return array.ctypes.data, array.nbytes
        return None


@pytest.fixture
def gpu(driver, monkeypatch):
    return Gpu(driver, monkeypatch)


@pytest.fixture
def twice(gpu):
    """Return a kernel, a tensor map of the input, and the output array. By mistake, the kernel adds a number to the
    fourth element."""
    kernel, given, out, error = compiled_kernel(gpu.driver, SOURCE, "twice"), gpu.array(4, 8), gpu.array(32), [0]
    given += np.arange(32).reshape(4, 8)

    def run():
        out[:] = 2 * given.ravel()
        out[3] += error[0]

    gpu.run = run
    options = cuda_tma.parameters_of(kernel)["map"].map_type.options
    params = cuda_tma.params_of(given, options)
    return kernel, cuda_tma.TensorMapDescriptor.from_bytes(cuda_tma.encode(params)), out, error


def test_both_leave_the_same(gpu, twice):
    kernel, tensor_map, out, _ = twice
    before = cuda_tma.launch, cuda_tma.prepare
    with simulate.watch() as found:
        cuda_tma.launch(STREAM, {"grid": 1, "block": 32}, kernel, tensor_map, out.ctypes.data)
    assert (cuda_tma.launch, cuda_tma.prepare) == before and len(gpu.driver.launches) == 1
    (watched,) = found
    assert (watched.kernel, watched.skipped, watched.differences, watched.report.findings) == ("twice", "", (), ())
    assert out[:4].tolist() == [0, 2, 4, 6]


def test_a_difference_is_named(twice):
    kernel, tensor_map, out, error = twice
    error[0] = 1
    with simulate.watch() as found:
        cuda_tma.launch(STREAM, ONE_WARP, kernel, tensor_map, out.ctypes.data)
    ((difference,),) = [watched.differences for watched in found]
    at = out.ctypes.data + 12
    assert (difference.count, difference.address, difference.allocation) == (1, at + 2, out.ctypes.data)
    assert str(difference).startswith(
        f"1 bytes differ in the allocation at 0x{out.ctypes.data:x}, the first at 0x{at + 2:x}"
    )


@pytest.mark.parametrize(("settings", "found"), [({}, {"race": 15, "early-exit": 12}), ({"sanitize": False}, {})])
def test_wrong_kernels_are_also_found(gpu, settings, found):
    kernel = compiled_kernel(gpu.driver, SOURCE.replace("    full.wait(0);\n", ""), "twice")
    given, out = gpu.array(4, 8), gpu.array(32)
    params = cuda_tma.params_of(given, cuda_tma.parameters_of(kernel)["map"].map_type.options)
    descriptor = cuda_tma.TensorMapDescriptor.from_bytes(cuda_tma.encode(params))
    with simulate.watch(**settings) as launches:
        cuda_tma.launch(STREAM, ONE_WARP, kernel, descriptor, out.ctypes.data)
    (watched,) = launches
    assert {each.kind: each.source[-1].line for each in watched.report.errors} == found


def test_a_prepared_launch_is_one_still(twice):
    kernel, tensor_map, out, error = twice
    with simulate.watch() as found:
        prepared = cuda_tma.prepare(kernel, ONE_WARP, tensor_map, 0)
        assert isinstance(prepared, cuda_tma.PreparedLaunch) and len(prepared) == 2
        prepared[1] = out.ctypes.data
        prepared(STREAM)
        error[0] = 1
        prepared(STREAM)
    assert [len(watched.differences) for watched in found] == [0, 1]


def test_memory_is_reached_through_structs_tables_and_variables(gpu):
    """In the test, the memory of the kernel's argument contains only the addresses of other memory."""
    kernel, arrays = compiled_kernel(gpu.driver, SOURCE, "follow"), [gpu.array(1, dtype=np.int32) for _ in range(40)]
    table, calls = gpu.array(40, dtype=np.uint64), gpu.array(1, dtype=np.int32)
    table[:], calls[:] = [array.ctypes.data for array in arrays], 7
    gpu.variables["calls"] = calls.ctypes.data

    def run():
        for array in arrays:
            array += 100 + calls
        calls[:] += 1

    gpu.run = run
    links = Links(table.ctypes.data, 40)
    with simulate.watch() as found:
        # At the second launch, the variable contains the result of the first launch.
        for _ in range(2):
            cuda_tma.launch(STREAM, ONE_WARP, kernel, links)
    assert [(watched.differences, watched.report.errors) for watched in found] == [((), ())] * 2
    assert [array[0] for array in arrays] == [107 + 108] * 40
    gpu.run = lambda: arrays[33].fill(0)
    with simulate.watch() as found:
        cuda_tma.launch(STREAM, ONE_WARP, kernel, links)
    assert arrays[33].ctypes.data in [difference.allocation for difference in found[0].differences]


def test_ptx_is_taken_from_its_owner(gpu, twice):
    """In the test, a kernel belongs to a Program of cuda.core, which the package finds by the name of the kernel."""
    kernel, tensor_map, out, _ = twice
    compiled, handle = compiled_of(kernel), next(HANDLES)
    gpu.driver.kernels[handle] = compiled.lowered_name, parameter_sizes(compiled)
    other = core.Kernel.from_handle(handle)
    code = core.ObjectCode.from_ptx(compiled.ptx.encode())
    arguments = STREAM, ONE_WARP, other, tensor_map, out.ctypes.data
    for given in (code, compiled.ptx, compiled.ptx.encode()):
        texts = []
        with simulate.watch(ptx=texts) as found:
            cuda_tma.launch(*arguments)
            texts[:] = [given]
            cuda_tma.launch(*arguments)
        assert "the PTX of the kernel is unknown; compile it with cuda_tma.compile" in found[0].skipped
        assert (found[1].kernel, found[1].skipped, found[1].differences) == ("twice", "", ())
    program = core.Program(SOURCE, "c++", OPTIONS)
    with simulate.watch(ptx=[program]) as found:
        cuda_tma.launch(*arguments)
        program.compile("cubin")
        cuda_tma.launch(*arguments)
    assert [bool(watched.skipped) for watched in found] == [True, False]
    with simulate.watch(ptx=[code, compiled.ptx + "// another\n"]) as found:
        cuda_tma.launch(*arguments)
    assert found[0].skipped == "2 of the PTX texts passed to watch() have a kernel of this name"
    with simulate.watch(ptx=[core.ObjectCode.from_cubin(b"cubin")]) as found:
        cuda_tma.launch(*arguments)
    assert found[0].skipped == "the ObjectCode is of type 'cubin'; pass the result of compile('ptx')"


SCALED = """
template <int Times, typename Number> __global__ void scaled(Number* out) { out[threadIdx.x] *= Times; }
__global__ void counted(int* out) { out[threadIdx.x] += 1; }
"""


def test_ptx_is_found_by_the_name_that_a_compiler_gives(gpu):
    """For templates and functions that are not extern "C", the driver has only the mangled name."""
    names = "scaled<3, float>", "scaled<2, int>", "counted"
    program = core.Program(SCALED, "c++", OPTIONS)
    lowered = program.compile("cubin", name_expressions=names).symbol_mapping
    numbers = np.arange(32, dtype=np.int32)
    gpu.arrays.append(numbers)

    def double():
        numbers[:] *= 2

    for name, run, differ in (
        ("scaled<2, int>", double, False),
        ("scaled<3, float>", double, True),
        ("counted", lambda: np.add(numbers, 1, out=numbers), False),
    ):
        handle, gpu.run = next(HANDLES), run
        gpu.driver.kernels[handle] = lowered[name].decode(), [8]
        with simulate.watch(ptx=[program]) as found:
            cuda_tma.launch(STREAM, ONE_WARP, core.Kernel.from_handle(handle), numbers.ctypes.data)
        assert (found[0].skipped, bool(found[0].differences)) == ("", differ), name


def test_an_unwatched_launch_gives_the_reason_and_runs(gpu, twice):
    kernel, tensor_map, out, _ = twice
    arguments = ONE_WARP, kernel, tensor_map, out.ctypes.data
    with simulate.watch(most_bytes=100) as found:
        cuda_tma.launch(STREAM, *arguments)
    with simulate.watch(launches_of_each=1) as more:
        gpu.driver.capturing = (STREAM.handle,)
        cuda_tma.launch(STREAM, *arguments)
        gpu.driver.capturing = ()
        cuda_tma.launch(STREAM, *arguments)
        cuda_tma.launch(STREAM, *arguments)
    assert len(gpu.driver.launches) == 4 and [each.report is None for each in more] == [True, False, True]
    reasons = [watched.skipped for watched in (*found, *more)]
    assert reasons[0] in {f"it can access {size} bytes, more than most_bytes=100" for size in (128, 256)}
    assert reasons[1:3] == ["the launch is captured into a graph", ""]
    assert reasons[3] == "the limit of watched launches is reached: launches_of_each=1"


def test_errors_of_a_launch_are_its_own(gpu, twice):
    kernel, tensor_map, out, _ = twice
    with simulate.watch() as found:
        with pytest.raises(TypeError, match="takes 2 arguments, and 3 were given"):
            cuda_tma.launch(STREAM, ONE_WARP, kernel, tensor_map, out.ctypes.data, 3)
        with pytest.raises(ValueError, match="has 2048 threads; pass a block of at most 1024"):
            cuda_tma.launch(STREAM, {"grid": 1, "block": 2048}, kernel, tensor_map, out.ctypes.data)
        gpu.driver.errors["cuLaunchKernelEx"] = 1
        with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE: the driver refused to launch twice"):
            cuda_tma.launch(STREAM, {"grid": 1, "block": 32}, kernel, tensor_map, out.ctypes.data)
    assert found == []


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_in_the_block_ends_the_watch(gpu, error):
    own = cuda_tma.launch, cuda_tma.prepare
    with pytest.raises(error), simulate.watch():
        assert own[0] != cuda_tma.launch and own[1] != cuda_tma.prepare
        raise error
    assert own == (cuda_tma.launch, cuda_tma.prepare)


def test_another_thread_launches_after_the_comparison(gpu, twice):
    """A second thread launches only after the comparison, because its launch would change the memory that the first
    thread compares."""
    kernel, tensor_map, out, _ = twice
    compute, order = gpu.run, []

    def launch():
        cuda_tma.launch(STREAM, ONE_WARP, kernel, tensor_map, out.ctypes.data)

    other = threading.Thread(target=launch)

    def run():
        order.append(threading.current_thread() is other)
        compute()
        if other.ident is None:
            other.start()
            other.join(0.05)
        order.append(threading.current_thread() is other)

    gpu.run = run
    with simulate.watch() as found:
        launch()
        other.join()
    assert order == [False, False, True, True]
    assert [watched.differences for watched in found] == [(), ()]
