"""Tests of rare forms of instructions, each of which has its documented effect or causes an error."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config

SOURCE = r"""
extern "C" __global__ void vectors(float* o, unsigned* u) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %2};" ::"l"(o), "f"(1.f), "f"(float(threadIdx.x)));
    asm volatile("red.global.v2.f32.add [%0], {%1, %1};" ::"l"(o + 4), "f"(1.f));
    asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %1};" ::"l"(u), "r"(0x3c003c00));
    asm volatile("red.global.max.noftz.v4.bf16x2 [%0], {%1, %1, %1, %1};" ::"l"(u + 4), "r"(0x3f803f80));
    float a, b;
    asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %3};" : "=f"(a), "=f"(b) : "l"(o + 8), "f"(1.f));
    if (threadIdx.x == 31) o[10] = a + b;
}

extern "C" __global__ void wide(unsigned long long* o) {  // o: 16 bytes to swap, 16 to exchange, results
    const unsigned long long nan = 0x7ff8000000000000;
    unsigned long long a, b, c, d;
    asm volatile("{ .reg .b128 x, y, z, w;\n"
                 "  mov.b128 x, {%4, %5}; mov.b128 y, {%6, %7};\n"
                 "  atom.global.cas.b128 z, [%8], x, y; mov.b128 {%0, %1}, z;\n"
                 "  mov.b128 w, y; atom.global.exch.b128 z, [%9], w; mov.b128 {%2, %3}, z; }"
                 : "=l"(a), "=l"(b), "=l"(c), "=l"(d)
                 : "l"(nan), "l"(1ull), "l"(2ull), "l"(nan), "l"(o), "l"(o + 2) : "memory");
    o[4] = a, o[5] = b, o[6] = c, o[7] = d;
    asm volatile("{ .reg .b128 x; ld.global.b128 x, [%0]; st.global.b128 [%1], x; }" ::"l"(o), "l"(o + 8) : "memory");
}

extern "C" int printf(const char*, ...);
extern "C" __global__ void prints() {
    printf("%s|%10s|%a %a %a %A\n", (const char*)nullptr, (const char*)nullptr, 1.0, -0.15625, 0.0, 1.0 / 3);
    printf("%hd %hu %hhd %hhu %#o %#x\n", 70000, 70000, 300, -1, 8, 255);
    printf("%c%c%3c|\n", 'a', 256 + 'b', 'c');
}

extern "C" __global__ void numbers(int i, float f, bool b, unsigned long long l, float* o) {
    o[0] = i; o[1] = f; o[2] = b; o[3] = l;
}
struct Pair { int first; double second; };
__global__ void pair(Pair p, double* o) { o[0] = p.first; o[1] = p.second; }
"""


@pytest.fixture(scope="module")
def gpu():
    return simulate.Device(sanitize=False)


@pytest.fixture(scope="module")
def launched(gpu):
    def launched(name, threads, *arguments):
        report = gpu.launch(Config(1, threads), gpu.compile(SOURCE, name), *arguments)
        report.raise_for_errors()
        return report

    return launched


def test_atomics_of_vectors(launched):
    o, u = np.zeros(16, np.float32), np.zeros(8, np.uint32)
    launched("vectors", 32, o, u)
    assert o[:11].tolist() == [32, 32, 32, 31 * 16, 32, 32, 0, 0, 32, 32, 62]
    # The bits represent 32 in f16, and 1 in bf16.
    assert u.tolist() == [0x50005000, 0x50005000, 0, 0] + [0x3F803F80] * 4


def test_sixteen_bytes_are_compared_as_bits(launched):
    """The simulator compares 16 bytes as bits. As a complex number of NumPy, 16 bytes with a NaN would not equal
    themselves."""
    nan = 0x7FF8000000000000
    o = np.array([nan, 1, 5, 6, *[0] * 6], np.uint64)
    launched("wide", 1, o)
    assert o.tolist() == [2, nan, 2, nan, nan, 1, 5, 6, 2, nan]


def test_printf_as_cuda_has_it(launched):
    first, second, third = launched("prints", 1).output.splitlines()
    assert first == "(null)|    (null)|0x1p+0 -0x1.4p-3 0x0p+0 0X1.5555555555555P-2"
    assert second == "4464 4464 44 255 010 0xff"
    assert third == "ab  c|"


def test_arguments_of_every_kind(launched):
    o = np.zeros(4, np.float32)
    for given in (
        (-3, 2.5, True, 7),
        (np.int32(-3), np.float32(2.5), np.bool_(True), np.uint64(7)),
        (ctypes.c_int(-3), ctypes.c_float(2.5), ctypes.c_bool(True), ctypes.c_ulonglong(7)),
    ):
        o[:] = 0
        launched("numbers", 1, *given, o)
        assert o.tolist() == [-3, 2.5, 1, 7]


class Pair(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_double))


def test_a_struct_as_ctypes_and_numpy_have_it(launched):
    structured = np.zeros((), np.dtype([("first", "i4"), ("second", "f8")], align=True))
    structured["first"], structured["second"] = 8, 8.5
    for given in (Pair(8, 8.5), structured[()], bytes(Pair(8, 8.5))):
        o = np.zeros(2)
        launched("pair", 1, given, o)
        assert o.tolist() == [8, 8.5]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            (np.float32(1), 2.5, True, 7),
            r"argument 0 .*takes an integer of 4 bytes, and np.float32\(1.0\) \(float32, 4 bytes\) was passed",
        ),
        ((ctypes.c_float(1), 2.5, True, 7), r"argument 0 .*takes an integer"),
        ((1, np.int32(2), True, 7), r"argument 1 .*takes a float of 4 bytes, and np.int32\(2\)"),
        ((1, 2.5, np.int8(1), 7), r"argument 2 .*takes a bool"),
        ((1, 2.5, True, np.float64(7)), r"argument 3 .*takes an integer"),
    ],
)
def test_bits_are_not_read_as_another_type(launched, given, text):
    with pytest.raises(TypeError, match=text):
        launched("numbers", 1, *given, np.zeros(4, np.float32))


def test_an_unknown_form_is_reported(gpu):
    """The error for an unknown form of an instruction contains the opcode and the line."""
    for text in ("red.global.add.v4.s7 [%0], {%1};", "atom.global.add.f99 %1, [%0], %1;", "st.global.q32 [%0], %1;"):
        source = f'extern "C" __global__ void k(int* o) {{ int a = 1; asm volatile("{text}" :: "l"(o), "r"(a)); }}'
        with pytest.raises(simulate.UnsupportedInstruction, match=text.split()[0]):
            gpu.compile(source, "k")


IN_REGISTERS = """
.version 8.7
.target sm_90a
.address_size 64
.func (.reg .u32 sum) plus (.reg .u32 a, .reg .f64 b) {
  .reg .u32 t;
  cvt.rzi.u32.f64 t, b;
  add.u32 sum, a, t;
  ret;
}
.func (.param .b32 product) thrice (.param .b32 a) {
  .reg .u32 t;
  ld.param.u32 t, [a];
  mul.lo.u32 t, t, (1 + 2);
  st.param.u32 [product], t;
  ret;
}
.visible .entry k(.param .u64 o) {
  .reg .u32 x, y, z, w;
  .reg .u64 p;
  .reg .f64 five;
  ld.param.u64 p, [o];
  mov.u32 x, %tid.x;
  mad.wide.u32 p, x, 12, p;
  mov.f64 five, 0d4014000000000000;
  call (y), plus, (x, five);
  call (z), plus, (7, 0d4000000000000000);
  call (w), thrice, (x);
  st.global.u32 [p], y;
  st.global.u32 [p+4], z;
  st.global.u32 [p+8], w;
  ret;
}
"""


def test_calls_that_pass_registers_and_numbers(gpu):
    """ptxas accepts calls that pass registers and numbers, although no C++ compiler emits such calls."""
    o = np.zeros((32, 3), np.uint32)
    gpu.launch(Config(1, 32), gpu.load(IN_REGISTERS, "k"), o).raise_for_errors()
    assert o.tolist() == [[x + 5, 9, 3 * x] for x in range(32)]


MAPS = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
__constant__ TensorMap fixed[2];
namespace inner { __device__ TensorMap there; }
static __device__ int calls = 3;
extern "C" __global__ void tiles(const TensorMap* given, int* out) {  // by maps in constant and in global memory
    __shared__ alignas(128) int tile[4][4 * 8];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        fence_tensor_map_acquire(inner::there);
        fence_tensor_map_acquire(*given);
        full.arrive_expect_tx(sizeof tile);
        for (int i = 0; i < 2; ++i) load(tile[i], fixed[i], full, Coordinates{0, 0});
        load(tile[2], inner::there, full, Coordinates{0, 0});
        load(tile[3], *given, full, Coordinates{0, 0});
        calls += 1;
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 4 * 32; i += 32) out[i] = tile[i / 32][i % 32];
}
"""


def test_maps_in_constant_and_in_global_memory():
    gpu = simulate.Device()
    kernel, out = gpu.compile(MAPS, "tiles"), np.zeros((4, 32), np.int32)
    arrays = [np.arange(32, dtype=np.int32).reshape(4, 8) + 100 * i for i in range(4)]
    maps = [np.frombuffer(bytes(gpu.create_tensor_map(each, box_dim=(4, 8))), np.uint8) for each in arrays]
    gpu.variable(kernel, "fixed")[:] = np.concatenate(maps[:2])
    gpu.variable(kernel, "there")[:] = maps[2]
    in_memory = np.zeros(256, np.uint8)
    in_memory[: len(maps[3])] = maps[3]
    gpu.launch(Config(1, 32), kernel, in_memory, out).raise_for_errors()
    assert np.array_equal(out, np.stack([each.ravel() for each in arrays]))
    assert gpu.variable(kernel, "calls").view(np.int32).tolist() == [4]
    with pytest.raises(KeyError, match="the source has 0 variables other; its variables are calls, fixed, there"):
        gpu.variable(kernel, "other")
    with pytest.raises(KeyError, match="tiles is a kernel of another Device"):
        simulate.Device().variable(kernel, "fixed")
