"""Tests of the parser that finds the kernels of a source, and the names of their parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma._compile.source_text import kernels_of, parameter_names


def test_kernels_are_found_in_a_source():
    source = """
// __global__ void comment() {}
/* __global__ void another() {} */
const char* text = "__global__ void quoted() {";
namespace a::b { namespace { __global__ void inner(); } struct S { int x; }; }
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__((A + 1) * 128, 1)
first(int a) { if (a) { } }
template <typename T, int N>
static __global__ [[maybe_unused]] void second(T (&a)[N]) {}
__global__ void first(float a);
"""
    assert kernels_of(source) == ["a::b::inner", "first", "second<...>"]
    assert kernels_of("}}} __global__") == []


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("", ()),
        ("void", ()),
        ("int a, float* b, const float *__restrict__ c, unsigned", ("a", "b", "c", "")),
        ("const __grid_constant__ cuda_tma::TensorMap a_map, int rows = (1, 2)", ("a_map", "rows")),
        ("TiledMap<Tile<UINT8, Box<2, (4 > 3)>>> a, Box<1>b, S const&c, T&&... rest", ("a", "b", "c", "rest")),
        ("int (*f)(int, float), float (&a)[4], int b[], int c[2][3], int (* const d)[4]", ("f", "a", "b", "c", "d")),
        ("int /* a, b */ c, // d\n long long e, [[maybe_unused]] bool f, TensorMap", ("c", "e", "f", "")),
    ],
)
def test_parameters_have_the_names_of_the_source(parameters, names):
    kernel = f"__global__ void __launch_bounds__(128) k({parameters}) {{}}"
    source = f"void k(int x);\nnamespace n {{ template <class T> {kernel} }}"
    for name in ("n::k<float(int)>", "k", "&n::k<(1 > 2)>"):
        assert parameter_names(source, name) == names


def test_ambiguous_names_are_unknown():
    source = "__global__ void k(int a) {} __global__ void k(float b); __global__ void other(int c, int d);"
    assert parameter_names(source, "static_cast<void (*)(float)>(k)") == () == parameter_names(source, "absent")
    assert parameter_names(source, "static_cast<void (*)(int, int)>(other)") == ("c", "d")
    assert parameter_names("__global__ void k(int a); __global__ void k(int a) {}", "k") == ("a",)


@given(st.text("kab(){}<>,*&=[] \n/\"'") | st.text())
def test_the_parser_accepts_damaged_texts(text):
    assert isinstance(kernels_of(text + "__global__ void k(" + text), list)
    assert isinstance(parameter_names("__global__ void k(" + text + ") {}", text + "k"), tuple)
