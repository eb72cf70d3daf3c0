import random
import shutil
import struct
import subprocess

import numpy as np
import pytest
from cuda.bindings import nvrtc
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import TensorMapDataType as T
from cuda_tma import simulate
from cuda_tma._compile.nvrtc import SIGNATURE_HEADER, compile_source
from cuda_tma._compile.parameter_types import described_types, types_in_table, types_of_name
from cuda_tma._compile.plain_names import plain_name
from cuda_tma._map_type import MapPointer, MapType

TILE = MapType(mode="tiled", tile_dim=(64, 64), data_type=T.FLOAT16, swizzle=3)
IM2COL = MapType(mode="im2col", tile_dim=(64, 64), data_type=T.FLOAT16, swizzle=3, rank=4)

# The table contains declarations, and the type of each parameter. The compiler of the host mangles names as NVRTC does.
DECLARATIONS = [
    ("void k()", ()),
    ("void k(int a, float b, double c, bool d)", ("integer", "float", "float", "bool")),
    ("void k(const float* a, float* __restrict__ b, int (*c)[4])", ("pointer", "pointer", "pointer")),
    ("void k(unsigned char a, long long b, unsigned long c, char16_t d)", ("integer", "integer", "integer", None)),
    ("namespace n { struct M {}; void k(M a, const M* b, float c) {} }", (None, "pointer", "float")),
    ("namespace n { namespace m { struct M {}; } void k(m::M a, m::M b, int c) {} }", (None, None, "integer")),
    ("template <typename T, int N> void k(T a, T* b, float c) {}\ntemplate void k<float, 3>(float, float*, float);",
     ("float", "pointer", "float")),
    ("template <bool B, typename T, typename U> void k(U a, T b) {}\ntemplate void k<true, int, bool>(bool, int);",
     ("bool", "integer")),
    ("template <typename T> struct V { T x; };\nvoid k(V<float> a, V<V<int>> b, double c) {}", (None, None, "float")),
    ("struct M {}; void k(M a, M* b, M* c, M d, int e)", (None, "pointer", "pointer", None, "integer")),
    ("template <typename T> void k(T a, T b, T* c, const T* d) {}\n"
     "template void k(float, float, float*, const float*);",
     ("float", "float", "pointer", "pointer")),
    ("namespace n { template <typename T, typename U> void k(U a, T b, T c, U d) {}\n"
     "template void k<int, float>(float, int, int, float); }", ("float", "integer", "integer", "float")),
    ("template <typename T, int N> void k(T (*a)[N], T b) {}\ntemplate void k<float, 3>(float (*)[3], float);",
     ("pointer", "float")),
    ("__attribute__((used)) static void k(float a)", ("float",)),
    ("namespace { __attribute__((used)) void k(float a) {} }", ("float",)),
    ("template <typename T> struct V { T x; };\ntemplate <typename T> void k(T const a, V<T> b, T c) {}\n"
     "template void k(float, V<float>, float);", ("float", None, "float")),
    ("struct __half { short x; }; struct __nv_bfloat16 { short x; };\nvoid k(__half a, __nv_bfloat16 b, __half* c)",
     ("float", "float", "pointer")),
    ("void k(__int128 a, float b, _Complex float c, long double d)", (None, "float", None, None)),
    ("namespace n { struct A {}; struct B { struct C {}; }; }\n"
     "void k(n::A a, n::B::C b, const n::B* c, n::B::C* d, float e, n::A* f)",
     (None, None, "pointer", "pointer", "float", "pointer")),
    ("enum E { x }; void k(E a, int b)", (None, "integer")),
    ("template <typename... T> void k(T... a, int* b) {}\ntemplate void k<int, float, char*>(int, float, char*, int*);",
     ("integer", "float", "pointer", "pointer")),
    ("template <typename... T> void k(float b, T... a) {}\ntemplate void k<>(float);", ("float",)),
    ("template <typename... T> void k(const T*... a, float b, T... c) {}\n"
     "template void k<int, float>(const int*, const float*, float, int, float);",
     ("pointer", "pointer", "float", "integer", "float")),
    ("template <typename... T> struct V {};\ntemplate <typename... T> void k(V<T...> a, float b, V<T>... c, T... d) "
     "{}\ntemplate void k<int, float>(V<int, float>, float, V<int>, V<float>, int, float);",
     (None, "float", None, None, "integer", "float")),
    ("template <int... N> struct M {};\ntemplate <int... N> void k(M<N...> a, M<N>... b, float c) {}\n"
     "template void k<1, 2>(M<1, 2>, M<1>, M<2>, float);", (None, None, None, "float")),
    ("template <int N> struct M {};\ntemplate <int N> void k(M<2 * N> a, float b, M<2 * N>* c) {}\n"
     "template void k<3>(M<6>, float, M<6>*);", (None, "float", "pointer")),
    ("template <int N> void k(float (*a)[2 * N + sizeof(int)], float b) {}\ntemplate void k<3>(float (*)[10], float);",
     ("pointer", "float")),
    ("template <typename T, int N> struct M {};\n"
     "template <typename T, int N> void k(M<T, (N > 2 ? -N : int(sizeof(T)))> a, T b) {}\n"
     "template void k<float, 3>(M<float, -3>, float);", (None, "float")),
    ("template <typename T> struct A { static const int n = 4; };\ntemplate <int N> struct M {};\n"
     "template <typename T> void k(M<A<T>::n> a, T b) {}\ntemplate void k<float>(M<4>, float);", (None, "float")),
    ("constexpr int twice(int n) { return 2 * n; }\ntemplate <int N> struct M {};\n"
     "template <int N> void k(M<twice(N)> a, int b) {}\ntemplate void k<3>(M<6>, int);", (None, "integer")),
    ("float f(float x, int) { return x; }\ntemplate <float (*F)(float, int)> void k(int b, float a) {}\n"
     "template void k<f>(int, float);", ("integer", "float")),
    ("template <typename T> T f(T x) { return x; }\ntemplate <int (*F)(int)> void k(float a, int b) {}\n"
     "template void k<f<int>>(float, int);", ("float", "integer")),
    ("template <int N, bool B> void k(float a) {}\ntemplate void k<-3, true>(float);", ("float",)),
    ("struct C { int x; };\nvoid k(int C::* a, int (C::*b)(float), C* c, float d)", (None, None, "pointer", "float")),
    ("typedef float v4 __attribute__((vector_size(16)));\nvoid k(v4 a, v4* b, v4 c, float d)",
     (None, "pointer", None, "float")),
    ("void k(float a, int (&b)[4], float&& c, int d)", ("float", None, None, "integer")),
    ("void k(void (*a)(int, float) noexcept, void (*b)(), float c)", ("pointer", "pointer", "float")),
    ("struct A { typedef float type; };\ntemplate <typename T> void k(typename T::type a, T* b, T c, int d) {}\n"
     "template void k<A>(float, A*, A, int);", (None, "pointer", None, "integer")),
    ("#include <cstddef>\nvoid k(std::byte a, std::nullptr_t b, const std::byte* c, std::byte d, int e)",
     (None, None, "pointer", None, "integer")),
    ("void k(char16_t a, char32_t b, float d)", (None, None, "float")),
    ("float f(int);\ntemplate <typename T> void k(decltype(f(T::n))* a, T b, float c) {}\n"
     "struct A { static constexpr int n = 2; };\ntemplate void k<A>(float*, A, float);", ("pointer", None, "float")),
    ("namespace n { template <typename T> struct V { struct I {}; }; }\n"
     "void k(n::V<float>::I a, n::V<float>* b, float c)",
     (None, "pointer", "float")),
    ("namespace n { struct A {}; template <typename T> void k(A a, T b, A* c) {}\n"
     "template void k<float>(A, float, A*); }",
     (None, "float", "pointer")),
    ("#include <typeinfo>\nnamespace std { struct B {}; namespace m { struct C {}; } }\n"
     "void k(std::m::C a, std::B* b, std::m::C* c, int d)", (None, "pointer", "pointer", "integer")),
    ("void k(" + ", ".join(f"struct S{i}* a{i}" for i in range(40)) + ", S0* b, S38* c, S39* d, float e)",
     ("pointer",) * 43 + ("float",)),
]  # fmt: skip


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("nm")), reason="needs gcc and nm")
@pytest.mark.parametrize(("declaration", "kinds"), DECLARATIONS)
def test_kinds_of_mangled_types(declaration, kinds, tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text(declaration + ("\n" if declaration.endswith(("}", ";")) else " {}\n"))
    subprocess.run(["gcc", "-c", "-std=c++17", "-xc++", str(source), "-o", str(tmp_path / "k.o")], check=True)
    names = subprocess.run(["nm", str(tmp_path / "k.o")], capture_output=True, text=True, check=True).stdout.split()
    (name,) = [word for word in names if word.startswith("_Z") and "1k" in word]
    assert types_of_name(name) == kinds


# The mangled names were written by gcc, nvcc 13.0, and NVRTC 12.4 and 13.5, for machines without a compiler.
MANGLED = [
    ("_Z4axpyfPKfPfi", ("float", "pointer", "pointer", "integer")),
    ("_Z1kfi.kd", ("float", "integer")),
    ("_Z2k1ILi3EEv1MIXmlLi2ET_EEfPS1_S0_IXqugtT_Li2ET_Lm4EEE", (None, "float", "pointer", None)),
    ("_Z2k2IJifPfEEvfDpT_", ("float", "integer", "float", "pointer")),
    ("_Z1kIJifEEvDpT_DpPS0_", ("integer", "float", "pointer", "pointer")),
    ("_Z2k3IJLi1ELi2EEEv1PIJXT_EEEDp1MIXT_EEf", (None, None, None, "float")),
    ("_Z1kPA_fA_i", ("pointer", None)),
    ("_Z1kv", ()),
    ("_ZN1a1b1kENS0_1MEfPS1_", (None, "float", "pointer")),
    ("_Z1kPVKfS0_f", ("pointer", "pointer", "float")),
    ("_Z1kN1n1VIfE1IES2_f", (None, None, "float")),
    ("_Z1kILi3EfEvT0_", ("float",)),
    ("_Z1kILN1n1EE1EEvf", ("float",)),
    ("_Z1kIiEv1MIXcl5twiceIT_ELi2EEEEf", (None, "float")),
    ("_Z1kIJifEEvDpPT_1AS3_f", ("pointer", "pointer", None, None, "float")),
    ("_Z1kIXtl6ConfigLi1ELi2EEEEvfi", ("float", "integer")),
    ("_Z1mIXtl3Subtl6ConfigLi1ELi2EELf40200000EEEfEvT0_i", ("float", "integer")),
    ("_Z2ttI1WEvT_IiEfS2_", (None, "float", None)),
    ("_Z1kIXadL_Z2glEEEvfi", ("float", "integer")),
    ("_Z1hIfLi4EEv1MIXsr3TwoIPT_XT0_EEE5valueEJ3TwoIS2_Li3EEEES2_PfPS4_", (None, "pointer", "pointer", "pointer")),
    ("_Z1dILi4EEv1MIXsr4HalfIXT_EE2In4DeepIXT_EEE1wEJPfN2ns5PlainEEES1_PS3_", (None, "pointer", "pointer")),
    ("_Z1fIN4HalfILi3EE2InEEv1MIXsrNT_4DeepILi3EEE1wEJPfEES5_PN2ns5PlainE", (None, None, "pointer")),
    ("_Z1eIN2ns5PlainEEv1MIXsrT_1pEJPfS1_EES4_PS1_", (None, "pointer", "pointer")),
    (
        "_Z1kN8cuda_tma8TiledMapINS_4TileILNS_8DataTypeE6ENS_3BoxIJLi64ELi64EEEELNS_7SwizzleE3EEELNS_7Oob"
        "FillE0ELNS_11L2PromotionE0EEENS_9Im2colMapIS6_Li4ELS7_0ELS8_0EEEPKS9_",
        (TILE, IM2COL, MapPointer(TILE)),
    ),
    (
        "_Z1gILi64EEvN8cuda_tma8TiledMapINS0_4TileILNS0_8DataTypeE6ENS0_3BoxIJXdvmlLi2ET_Li2EEXT_EEEELNS0_7SwizzleE3E"
        "EELNS0_7OobFillE0ELNS0_11L2PromotionE0EEENS1_INS2_ILS3_6ENS4_IJXqugtT_Li1ELi2ELi3EEEEELS6_0EEELS8_0ELS9_0EEEi",
        (None, None, "integer"),
    ),
    (
        "_Z1nI3CfgEvNT_3MapEN8cuda_tma8TiledMapINS3_4TileIXsrS1_1tENS3_3BoxIJXsrS1_1nELi8EEEELNS3_7SwizzleE0EEELNS3_"
        "7OobFillE0ELNS3_11L2PromotionE0EEEf",
        (None, None, "float"),
    ),
    (
        "_Z1k" + "".join(f"3A{chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(40)) + "6__halfS13_",
        (None,) * 40 + ("float", "float"),
    ),
]


@pytest.mark.parametrize(("name", "kinds"), MANGLED)
def test_kinds_of_mangled_names(name, kinds):
    assert types_of_name(name) == kinds


@pytest.mark.parametrize(
    "name",
    [
        "kernel", "", "_Z", "_Z9short", "_ZN3abc", "_Z1kQz", "_Z1kIi", "_Z1kN", "_Z1kDz", "_Z1kS_", "_Z1kfT_",
        "_Z1kIfEvT0_", "_Z1kP", "_Z1kIXmlLi2ET_", "_Z1kIX?EEvf", "_Z1kA4f",
        # The demangler of libstdc++ 12 does not return for the name in the next line.
        "_Z1dILi4EEv1MIXsr4HalfIXT_EE2InDeepIXT_EEE1wEJPfN2ns5PlainEEES1_PS3_",
        "_Z" + "P" * 100_000, "_Z1k", "_Z1kf\0", "_Z1kfé",
    ],
)  # fmt: skip
def test_unreadable_text_is_not_guessed(name):
    assert types_of_name(name) is None


@given(st.sampled_from([name for name, _ in MANGLED]), st.data())
def test_the_parser_accepts_damaged_names(name, data):
    """For a mangled name that is truncated or has one different letter, the parser returns parameter kinds or None."""
    at = data.draw(st.integers(2, len(name)))
    letter = data.draw(st.sampled_from(["", *"ITSJXELNDpvoPKA_1"]))
    found = types_of_name(name[:at] + letter + name[at + 1 :])
    assert found is None or {each for each in found if not isinstance(each, MapType | MapPointer)} <= {
        "integer", "float", "bool", "pointer", None}  # fmt: skip


# ---- random signatures, as NVRTC reports them ----

HEADER = """
namespace cuda_tma {
enum DataType : int { UINT8, UINT16, UINT32, INT32, UINT64, INT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT32_FTZ,
                      TFLOAT32, TFLOAT32_FTZ, U4_ALIGN8B, U4_ALIGN16B, U6_ALIGN16B };
enum Swizzle : int { SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B, SWIZZLE_128B_ATOM_32B,
                     SWIZZLE_128B_ATOM_32B_FLIP_8B, SWIZZLE_128B_ATOM_64B };
enum OobFill : int { OOB_FILL_NONE, OOB_FILL_NAN };
enum L2Promotion : int { L2_PROMOTION_NONE, L2_PROMOTION_64B, L2_PROMOTION_128B, L2_PROMOTION_256B };
template <int... Extents> struct Box {};
template <DataType, typename, Swizzle = SWIZZLE_NONE> struct Tile {};
template <typename, OobFill = OOB_FILL_NONE, L2Promotion = L2_PROMOTION_NONE> struct TiledMap {};
template <typename, int, OobFill = OOB_FILL_NONE, L2Promotion = L2_PROMOTION_NONE> struct Im2colMap {};
}
namespace n { struct Plain {}; template <typename...> struct Many {}; enum Choice { one }; }
using Called = void (*)(float, n::Plain);
using namespace cuda_tma;
"""
OTHERS = [
    ("int", "integer"), ("unsigned long long", "integer"), ("signed char", "integer"), ("float", "float"),
    ("double", "float"), ("bool", "bool"), ("const float*", "pointer"), ("n::Plain", None),
    ("n::Plain* const*", "pointer"), ("n::Many<int, n::Plain, n::Many<>>", None), ("n::Choice", None),
    ("Called", "pointer"),
]  # fmt: skip


def random_map(draw):
    """Draw the C++ type of a typed map, whose values the device header may refuse."""
    data_type, swizzle, fill = draw.choice([*T]), draw.randrange(7), draw.randrange(2)
    others = {"data_type": data_type, "swizzle": swizzle, "oob_fill": fill, "l2_promotion": draw.randrange(4)}
    if draw.random() < 0.25:
        tile_dim = draw.randint(1, 1024), draw.randint(1, 256)
        return MapType(mode="im2col", tile_dim=tile_dim, rank=draw.randint(3, 5), **others)
    return MapType(mode="tiled", tile_dim=tuple(draw.randint(1, 256) for _ in range(draw.randint(1, 5))), **others)


def random_parameter(draw, maps):
    """Draw a parameter's C++ type and value. The same map can occur twice, so that names contain substitutions."""
    if draw.random() < 0.5:
        return draw.choice(OTHERS)
    if not maps or draw.random() < 0.5:
        maps.append(random_map(draw))
    found = draw.choice(maps)
    return draw.choice([(str(found), found), (f"const {found}", found), (f"const {found}*", MapPointer(found))])


def random_kernel(draw, name):
    """Draw a kernel's declaration, its name, and the types of its parameters. Some kernels are templates, and some have
    a pack of parameters in the middle."""
    maps = []
    parameters = [random_parameter(draw, maps) for _ in range(draw.randint(0, 6))]
    types = [written for written, _ in parameters]
    written = list(types)
    count = draw.randint(0, len(parameters)) if draw.random() < 0.6 else 0
    template, named = "", name
    if count and draw.random() < 0.5:
        template, written[:count] = "template <typename... P>", ["P..."]
    elif count:
        template = f"template <{', '.join(f'typename P{i}' for i in range(count))}>"
        written[:count] = [f"P{i}" for i in range(count)]
    if template:
        named = f"{name}<{', '.join(types[:count])}>"
    declared = ", ".join(f"{each} a{i}" for i, each in enumerate(written))
    return f"{template} __global__ void {name}({declared}) {{}}", named, tuple(meant for _, meant in parameters)


def reported(kernels, source):
    """Return the parameter types of a source's kernels from the compiler's table and from the mangled names."""
    asked = {named: f"&cuda_tma::parameters<decltype(+({named}))>" for named in kernels}
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None)
    for expression in (*asked, *asked.values()):
        nvrtc.nvrtcAddNameExpression(program, expression.encode())
    options = [b"--std=c++17", b"--gpu-architecture=compute_90", f"--pre-include={SIGNATURE_HEADER}".encode()]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1] + 1)  # NVRTC writes the log into the bytes object.
    nvrtc.nvrtcGetProgramLog(program, log)
    assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    content = bytes(nvrtc.nvrtcGetPTXSize(program)[1] + 1)
    nvrtc.nvrtcGetPTX(program, content)
    ptx = content.decode()
    for named, expression in asked.items():
        own, table = (nvrtc.nvrtcGetLoweredName(program, each.encode())[1].decode() for each in (named, expression))
        yield described_types(ptx, own, table), types_of_name(own)


def test_types_of_random_kernels():
    """The compiler's table and the mangled names of a hundred random kernels give equal types."""
    draw = random.Random(13)
    kernels = [random_kernel(draw, f"k{index}") for index in range(100)]
    own, inner = kernels[:50], kernels[50:]
    source = "\n".join([HEADER, *(text for text, _, _ in own), "namespace m {", *(text for text, _, _ in inner), "}"])
    names = [named for _, named, _ in own] + [f"m::{named}" for _, named, _ in inner]
    for (text, _, types), (of_table, of_name) in zip(kernels, reported(names, source), strict=True):
        assert of_table == types, text
        assert of_name in (types, None), text


def test_types_of_every_kind():
    kinds = dict.fromkeys(
        ["char", "signed char", "unsigned char", "wchar_t", "short", "unsigned short", "int"], "integer"
    )
    kinds |= dict.fromkeys(["unsigned", "long", "unsigned long", "long long", "unsigned long long"], "integer")
    kinds |= dict.fromkeys(["float", "double", "__half", "__nv_bfloat16"], "float") | {
        "bool": "bool",
        "const int": "integer",
    }
    kinds |= dict.fromkeys(["char16_t", "char32_t", "E", "S", "int S::*", "decltype(nullptr)", "S&"])
    kinds |= dict.fromkeys(["void*", "const S* const", "void (*)(int)", "int (*)[3]", "Declared<int>*"], "pointer")
    source = """
struct __half { short bits; }; struct __nv_bfloat16 { short bits; };
enum E { one }; struct S { int a; };
template <typename T> struct Declared { static_assert(sizeof(T) == 0, "it is never used"); };
template <typename... T> __global__ void k(T...) {}
extern "C" __global__ void none() {}"""
    compiled = compile_source(source, f"k<{', '.join(kinds)}>", target="compute_90")
    assert compiled.types == tuple(kinds.values())
    assert compile_source(source, "none", target="compute_90").types == ()


def test_each_kernel_of_a_source_has_its_own_types():
    """In the test, a cast selects an overload of a kernel. The name of an extern "C" kernel contains no types."""
    source = """
__global__ void scale(float a) {}
__global__ void scale(int a, float* b) {}
namespace n { extern "C" __global__ void plain(bool a) {} }"""
    for name, types in [
        ("static_cast<void (*)(float)>(scale)", ("float",)),
        ("static_cast<void (*)(int, float*)>(scale)", ("integer", "pointer")),
        ("n::plain", ("bool",)),
    ]:
        assert compile_source(source, name, target="compute_90").types == types


# ---- kernels of other compilers ----


def test_a_macro_next_to_a_kernel_describes_it():
    source = """
#include <cuda_tma/kernel.cuh>
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
extern "C" __global__ void plain(const __grid_constant__ TiledMap<Tile<FLOAT16, Box<64, 64>, SWIZZLE_128B>> a, int b) {}
namespace n { __global__ void inner(float a) {} }
CUDA_TMA_KERNEL(plain);
namespace n { CUDA_TMA_KERNEL(inner); }"""
    ptx = compile_source(source, "plain", target="compute_90a").ptx
    assert described_types(ptx, "plain") == (TILE, "integer")
    assert described_types(ptx, "_ZN1n5innerEf") == ("float",)
    assert described_types(ptx, "other") is None
    loaded = simulate.Device().load(ptx, "plain")
    assert [each.type for each in loaded.parameters] == [TILE, "integer"]


def test_without_the_macro_the_types_of_ptx_decide():
    source = """
struct Pair { int a, b; };
extern "C" __global__ void k(int a, float b, double c, float* d, Pair e, unsigned short f, bool g, long long h) {
    *d = a + b + c + e.a + f + g + h; }"""
    gpu = simulate.Device()
    kernel = gpu.load(compile_source(source, "k", target="compute_90a").ptx, "k")
    types = [each.type for each in kernel.parameters]
    assert types[:3] == ["integer", "float", "float"] and types[3] in ("pointer", None)
    assert types[4:] == [None, "integer", None, None]
    out = np.zeros(1, np.float32)
    arguments = [1, 2.0, 3.0, out, np.zeros(2, np.int32).tobytes(), 4, np.bool_(True), np.int64(5)]
    assert gpu.launch(simulate.Config(1, 1), kernel, *arguments).errors == () and out[0] == 16
    with pytest.raises(TypeError, match=r"^argument 0 of kernel k: the parameter takes an integer of 4 bytes"):
        gpu.launch(simulate.Config(1, 1), kernel, 1.5, *arguments[1:])


TABLE = struct.pack("<13i", 1, 1, *[0] * 11) + bytes(48)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[100];",
        "[999999999] = {1};",
        "[9999999999] = {1};",
        "[100] = {300};",
        "[100] = {1, , 1};",
        "[99] = {1};",
        "[100] = {2};",
        "[100] = {255, 255, 255, 255};",
        "[100] = {1" + ", 0" * 1000 + "};",
        "[100] = {1" + " " * 100_000,
    ],
)
def test_an_invalid_table(text):
    ptx = f".global .align 4 .b8 cuda_tma_parameters_of_k{text}"
    assert described_types(ptx, "k") in (None, ())
    assert described_types(ptx, "_Z1kf") in (("float",), ())


@given(st.binary(max_size=200) | st.integers(0, 99).flatmap(
    lambda at: st.binary(max_size=8).map(lambda new: TABLE[:at] + new + TABLE[at + len(new) :])))  # fmt: skip
def test_the_parser_accepts_damaged_tables(content):
    found = types_in_table(content)
    assert found is None or isinstance(found, tuple)
    assert types_in_table(TABLE) == ("integer",)


def test_a_kernel_has_its_name_though_a_parameter_cannot_be_read():
    """In the mangled name, the parameter T1_ refers to a third template argument, but the name has only two."""
    name = "_Z4gemmIiN2ns1AIfEEEvT_T0_T1_"
    assert types_of_name(name) is None and plain_name(name) == "gemm<...>"
