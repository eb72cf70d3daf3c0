"""Tests of parameters_of(), which returns a kernel's parameters from the driver, the mangled name and the source."""

import dataclasses

import pytest
from cuda import core

import cuda_tma
from cuda_tma import TensorMapDataType, parameters_of
from cuda_tma._compile.compiled import remember
from cuda_tma._compile.nvrtc import compile_source
from cuda_tma._map_type import MapPointer, MapType
from cuda_tma.kernel_parameters import KernelParameter
from tests.support.launching import CONFIG, HANDLES, ForeignStream

SOURCE = """
#include <cuda_tma/tile.cuh>
#include <cuda_tma/dynamic_shared.cuh>
using namespace cuda_tma;
using Window = Tile<BFLOAT16, Box<2 * ROWS, 64>, SWIZZLE_128B>;
struct Shared { Window tiles[2]; Barrier full; };
struct Pair { int a, b; };
extern "C" __global__ void k(const __grid_constant__ TiledMap<Window> window, const TiledMap<Window>* many, float scale,
                             bool, const __grid_constant__ TensorMap untyped, Pair pair, int* out) {
    dynamic_shared<Shared>().full.init(1);
}
"""
SIZES = [128, 8, 4, 1, 128, 8, 8]
WINDOW = MapType(mode="tiled", tile_dim=(64, 64), data_type=TensorMapDataType.BFLOAT16, swizzle="128B")


@pytest.fixture
def kernel(driver):
    """Return a function that makes a kernel with a given name and given sizes of parameters."""

    def kernel(name, sizes, compiled=None, static_bytes=0):
        handle = next(HANDLES)
        driver.kernels[handle] = (name, sizes)
        driver.shared_bytes[handle] = static_bytes
        kernel = core.Kernel.from_handle(handle)
        if compiled:
            remember(kernel, compiled)
        return kernel

    return kernel


def test_kernels_of_compile_are_known(kernel):
    constants = {"rows": "ROWS"}
    compiled = compile_source(SOURCE, "k", target="sm_90a", defines={"ROWS": 32}, constants=constants)
    found = parameters_of(kernel("k", SIZES, compiled, static_bytes=96))
    assert found.parameters == (
        KernelParameter("window", WINDOW, 112, 128),
        KernelParameter("many", MapPointer(WINDOW), 240, 8),
        KernelParameter("scale", "float", 248, 4),
        KernelParameter("", "bool", 252, 1),
        KernelParameter("untyped", None, 368, 128),
        KernelParameter("pair", None, 496, 8),
        KernelParameter("out", "pointer", 504, 8),
    )
    assert (found.kernel, found.static_shared_bytes, found.constants) == ("k", 96, {"rows": 32})
    # The struct in shared memory has two tiles, and a barrier in the padding after the tiles.
    assert found.dynamic_shared_bytes == 2 * 64 * 128 + 1024
    assert len(found) == 7 and [*found] == [*found.parameters] and found[-1] is found["out"] is found.parameters[6]
    assert found["window"].map_type == WINDOW
    assert [key in found for key in ("window", found[1], "", "none", 0)] == [True, True, False, False, False]
    for name, said in (("scale", "float"), ("untyped", "of another type")):
        with pytest.raises(TypeError, match=f"parameter {name} is not a typed map, but {said}; declare a typed map"):
            print(found[name].map_type)
    assert found["many"].map_type.options == cuda_tma.TensorMapOptions((64, 64), data_type="BFLOAT16", swizzle="128B")


def test_a_kernel_of_another_compiler_has_the_types_of_its_name(kernel):
    found = parameters_of(kernel("_Z4axpyfPKfPfi", [4, 8, 8, 4]))
    assert [(p.name, p.type, p.offset_bytes) for p in found] == [
        ("", "float", 0), ("", "pointer", 8), ("", "pointer", 16), ("", "integer", 24),
    ]  # fmt: skip
    assert (found.kernel, found.static_shared_bytes, found.dynamic_shared_bytes, found.constants) == ("axpy", 0, 0, {})
    assert [p.type for p in parameters_of(kernel("plain", [4, 8]))] == [None, None]
    assert len(parameters_of(kernel("none", []))) == 0


def test_names_of_other_parameters_are_not_shown(kernel):
    """A parameter of a pack has no name in the result, because the source has one name for the whole pack."""
    compiled = compile_source(
        "template <class... A> __global__ void k(int n, A... rest) {}", "k<int, float*>", target="sm_90a"
    )
    assert [(p.name, p.type) for p in parameters_of(kernel("k", [4, 4, 8], compiled))] == [
        ("", "integer"), ("", "integer"), ("", "pointer"),
    ]  # fmt: skip


def test_an_invalid_parameter_is_reported(kernel):
    found = parameters_of(kernel("_Z1kfi", [4, 4]))
    for key in ("window", ""):
        with pytest.raises(KeyError, match=f"kernel k has no parameter '{key}'; use one of \\?, \\?"):
            found[key]
    with pytest.raises(IndexError):
        found[2]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.kernel = "other"
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.constants["a"] = 1
    with pytest.raises(TypeError, match="kernel is a str"):
        parameters_of("k")


def test_an_extern_c_kernel_refuses_a_float_for_an_int(kernel, driver):
    """The bits of 1.5 fit the four bytes of an int. A launch with the types of the source refuses the value."""
    compiled = compile_source('extern "C" __global__ void k(int count) {}', "k", target="sm_90a")
    with pytest.raises(TypeError, match=r"argument 0 \(count\) of kernel k: the parameter takes an integer of 4 bytes"):
        cuda_tma.launch(ForeignStream(), CONFIG, kernel("k", [4], compiled), 1.5)
    cuda_tma.launch(ForeignStream(), CONFIG, kernel("k", [4], compiled), 2)
    assert driver.launches[-1].arguments == [b"\2\0\0\0"]
