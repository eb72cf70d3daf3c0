"""Tests of the results of NVRTC: PTX, cubins, parameter types, CUDA C++ constants, and the errors of invalid
sources."""

import re

import numpy as np
import pytest

from cuda_tma import CompileError
from cuda_tma._compile.compiled import Compiled
from cuda_tma._compile.diagnosis import diagnose, diagnose_assembly
from cuda_tma._compile.headers import headers_of
from cuda_tma._compile.nvrtc import compile_source, request

SOURCE = """
namespace n {
template <int... N> struct Box {};
struct Shared { float a[COUNT]; };
template <int N, typename... A> __global__ void grid(Box<2 * N, 8> box, A... rest) {}
__device__ __noinline__ void outlined() {}
}
extern "C" __global__ void plain(int a, const float* b, n::Shared c) {}
__global__ void twice(int a) {}
__global__ void twice(float a) {}
"""


@pytest.mark.parametrize(
    ("name", "lowered", "types"),
    [
        ("plain", "plain", ("integer", "pointer", None)),
        ("n::grid<32, int, char*>", None, (None, "integer", "pointer")),
        ("static_cast<void (*)(float)>(twice)", "_Z5twicef", ("float",)),
    ],
)
def test_a_kernel_has_its_types(name, lowered, types):
    compiled = compile_source(SOURCE, name, target="compute_90a", defines={"COUNT": 25})
    assert compiled.types == types
    assert compiled.lowered_name == (lowered or "_ZN1n4gridILi32EJiPcEEEvNS_3BoxIJXmlLi2ET_ELi8EEEEDpT0_")
    assert f".entry {compiled.lowered_name}(" in compiled.ptx and ".target sm_90a" in compiled.ptx
    assert compiled.cubin == b"" and compiled.dynamic_shared_bytes == 0 and compiled.log == ""


def test_one_compilation_gives_both():
    constants = {"bytes": "sizeof(n::Shared)", "less": "-COUNT", "is": "true", "most": "0x7fffffffffffffff"}
    compiled = compile_source(SOURCE, "plain", target="sm_90a", defines={"COUNT": 25}, constants=constants)
    assert compiled.constants == {"bytes": 100, "less": -25, "is": 1, "most": 2**63 - 1}
    assert compiled.cubin.startswith(b"\x7fELF") and b"plain" in compiled.cubin
    assert re.search(r"^\s*\.loc\s+\d+ 8 ", compiled.ptx, re.M) and not compiled.ptx.endswith("\0")
    assert compiled.target == "sm_90a" and repr(compiled).endswith(f"constants={compiled.constants})")
    assert compiled.parameter_names == ("a", "b", "c")


def test_bytes_that_python_shares_are_not_written_to():
    """The log of a compilation without warnings is one byte. Python shares all bytes objects of length one, so NVRTC
    must not write into the object."""
    compile_source('extern "C" __global__ void k() {}', "k", target="compute_90")
    assert [ord(bytes([code])) for code in (0, 32)] == [0, 32]


def test_our_headers_are_there_but_not_forced():
    source = """
#include <cuda_tma/tma.cuh>
#include <cuda_tma/signature.cuh>
extern "C" __global__ void k(const __grid_constant__ cuda_tma::TensorMap map) {}"""
    compiled = compile_source(source, "k", target="compute_90a")
    assert compiled.types == (None,)
    assert "TensorMap" not in compile_source("__global__ void k() {}", "k", target="compute_75").ptx


DYNAMIC = """
#include <cuda_tma/dynamic_shared.cuh>
template <int N> struct Shared { alignas(512) char bytes[N]; };
extern "C" __global__ void small(char* out) { *out = cuda_tma::dynamic_shared<Shared<700>>().bytes[out[1]]; }
extern "C" __global__ void large(char* out) {
    if (out[0]) *out = cuda_tma::dynamic_shared<Shared<1024 * COUNT>>().bytes[out[1]];
    else *out = cuda_tma::dynamic_shared<char>();
}
extern "C" __global__ void none(char* out) { *out = 1; }
"""


def test_dynamic_shared_memory_is_the_kernels_own():
    found = {
        name: compile_source(DYNAMIC, name, target="sm_90a", defines={"COUNT": 200}).dynamic_shared_bytes
        for name in ("small", "large", "none")
    }
    assert found == {"small": 1024, "large": 1024 * 200, "none": 0}


def test_assembly_may_have_lines_that_end_a_block():
    """An earlier version of the log parser added the memory of another kernel after an assembly line that looks like
    the end of a block."""
    source = DYNAMIC.replace("if (out[0])", 'asm volatile("{\\n.reg .pred p;\\n}\\n");\n    if (out[0])')
    compiled = compile_source(source, "small", target="compute_90a", defines={"COUNT": 200})
    assert "\n}\n" in compiled.ptx.partition(".entry large(")[2] and compiled.dynamic_shared_bytes == 1024


def test_functions_that_are_not_inlined_count_for_every_kernel():
    ptx = (
        ".func f(\n)\n{\n\t// cuda_tma::dynamic_shared 32\n\tret;\n}\n"
        ".visible .entry k(\n)\n{\n\t// cuda_tma::dynamic_shared 16\n\tret;\n}\n"
        ".visible .entry kk(\n)\n{\n\t// cuda_tma::dynamic_shared 64\n\tret;\n}\n"
    )
    sizes = [Compiled("k", name, "", "sm_90a", ptx, b"").dynamic_shared_bytes for name in ("k", "kk", "other")]
    assert sizes == [32, 64, 32]


def test_too_strict_an_alignment_is_refused():
    source = DYNAMIC.replace("alignas(512)", "alignas(2048)")
    with pytest.raises(CompileError, match=r"dynamic_shared\.cuh\(\d+\): static assertion failed.* aligned to 1024"):
        compile_source(source, "small", target="compute_90a", defines={"COUNT": 1})


# ---- options ----

KERNEL = 'extern "C" __global__ void k() {}'


def options_of(**given):
    return request(KERNEL, "k", target="sm_90a", **given).options


def test_arguments_override_defaults():
    assert {"--std=c++17", "-lineinfo", "--gpu-architecture=sm_90a"} <= set(options_of())
    for given in (["-std=c++20"], ["--std=c++20"], ["--std", "c++20"]):
        assert [o for o in options_of(options=given) if "c++" in o] == given[-1:]
    for given in (["-G"], ["--generate-line-info"]):
        assert "-lineinfo" not in options_of(options=given) and options_of(options=given)[-1] == given[0]
    compiled = compile_source(KERNEL, "k", target="sm_90a", options=("-std=c++20", "-G"))
    assert compiled.log == "" and ".target sm_90a, debug" in compiled.ptx


def test_numpy_numbers_are_numbers():
    given = {"A": np.int64(-7), "B": np.bool_(True), "C": np.float32(0.5), "D": np.float64(1e22)}
    macros = ["-DA=-7", "-DB=1", "-DC=0.5", "-DD=1e+22"]
    assert [option for option in options_of(defines=given) if option.startswith("-D")] == macros


def test_macros_are_written_as_cpp_reads_them():
    given = {"A": 1, "B": True, "C": False, "D": None, "E": "unsigned char", "F": 1.5, "G(x)": "(x + 1)"}
    macros = ["-DA=1", "-DB=1", "-DC=0", "-DD", "-DE=unsigned char", "-DF=1.5", "-DG(x)=(x + 1)"]
    assert [option for option in options_of(defines=given) if option.startswith("-D")] == macros
    source = "static_assert(A + B + C + D + F + G(sizeof(E)) == 6.5); " + KERNEL
    assert compile_source(source, "k", target="compute_90", defines=given).lowered_name == "k"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"source": b"code"}, TypeError, "source is a bytes; pass CUDA C"),
        ({"name": 7}, TypeError, "name is a int"),
        ({"name": " "}, ValueError, "name is ' '; pass"),
        ({"options": "-G"}, TypeError, "options are '-G'; pass NVRTC's options as a list of str"),
        ({"options": [1]}, TypeError, r"options are \[1\]"),
        ({"options": ["-arch=sm_80"]}, ValueError, "'-arch=sm_80' selects a target"),
        ({"options": ("-G", "-dlto")}, ValueError, "'-dlto' produces code that still has to be linked; use Program"),
        ({"defines": {"1A": 1}}, ValueError, "defines has '1A'"),
        ({"defines": {"A": [1]}}, TypeError, r"defines\['A'\] is a list"),
        ({"defines": {"A": float("inf")}}, ValueError, r"defines\['A'\] is inf, for which C\+\+ has no literal"),
        ({"defines": {"A": np.float32("nan")}}, ValueError, r"defines\['A'\] is nan"),
        ({"defines": {"A": np.ones(2)}}, TypeError, r"defines\['A'\] is a ndarray"),
        ({"options": ["-rdc", "true"]}, ValueError, "'-rdc' produces code that"),
        (
            {"options": ["-std=c++11"]},
            ValueError,
            r"'-std=c\+\+11' selects a standard before C\+\+17, which the headers of cuda_tma need; leave it out",
        ),
        ({"options": ["--std", "c++14"]}, ValueError, "'--std' selects a standard before"),
        ({"options": ["-fdevice-syntax-only"]}, ValueError, "produces no code that can be launched; leave it out"),
        ({"constants": {3: "4"}}, TypeError, "constants has 3: '4'; pass a name and a C"),
        ({"constants": {"a": 4}}, TypeError, "constants has 'a': 4; pass"),
        ({"source": "kernels/gemm.cu"}, ValueError, r"pass its path: pathlib\.Path\('kernels/gemm.cu'\)"),
        ({"source": KERNEL + "\0"}, ValueError, "a null character at index 33, at which the compiler would stop"),
    ],
)
def test_an_invalid_argument_object_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        request(**{"source": KERNEL, "name": "k", "target": "sm_90a", **given})


def test_a_file_is_a_source(tmp_path):
    (tmp_path / "near.cuh").write_text("using type = char;\n")
    (tmp_path / "kernel.cu").write_text('#include "near.cuh"\nextern "C" __global__ void k(type a) { error; }\n')
    with pytest.raises(CompileError, match=r'kernel\.cu\(2\): identifier "error" is undefined') as refused:
        compile_source(tmp_path / "kernel.cu", "k", target="compute_90a")
    assert (refused.value.file, refused.value.line) == (str(tmp_path / "kernel.cu"), 2)
    (tmp_path / "kernel.cu").write_text('#include "near.cuh"\nextern "C" __global__ void k(type a) {}\n')
    assert compile_source(tmp_path / "kernel.cu", "k", target="compute_90a").types == ("integer",)


def test_a_file_need_not_be_plain_utf_8(tmp_path):
    """The source file begins with a byte-order mark, and contains a comment that is not in UTF-8."""
    path = tmp_path / "kernel.cu"
    path.write_bytes(b'\xef\xbb\xbf#include "near.cuh"\n// \xe9\n' + KERNEL.replace("()", "(type a)").encode())
    (tmp_path / "near.cuh").write_text("using type = char;\n")
    assert compile_source(path, "k", target="compute_90a").types == ("integer",)
    asked = request(path, "k", target="compute_90a")
    assert str(tmp_path / "near.cuh") in headers_of(asked.source, asked.file, asked.options)


@pytest.mark.parametrize("expression", ["1.5", "18446744073709551615ull", "", "nonsense"])
def test_a_constant_is_the_requested_one(expression):
    with pytest.raises(CompileError, match=f"^{expression!r} was requested: not a constant integer: "):
        compile_source(KERNEL, "k", target="compute_90a", constants={"a": expression})


# ---- compile errors ----


@pytest.mark.parametrize(
    ("source", "name", "found"),
    [
        (
            "__global__ void k(int a) {\n\n    foo(a);\n}\n",
            "k",
            "kernel 'k' does not compile for sm_90a: k.cu(3): identifier \"foo\" is undefined\n\n"
            'k.cu(3): error: identifier "foo" is undefined\n      foo(a);\n      ^',
        ),
        ("#include <absent.h>\n" + KERNEL, "k", 'k.cu(1): cannot open source file "absent.h"; name its folder by'),
        *(
            (
                f"#include <{header}>\n" + KERNEL,
                "k",
                f'k.cu(1): cannot open source file "{header}"; NVRTC has no headers of the host: printf(), ',
            )
            for header in ("assert.h", "cstdint", "stdlib.h", "vector")
        ),
        (
            "#define TRAP \\\n  asm volatile(\"nonsense;\")\n__global__ void k() {\n  TRAP;\n}",
            "k",
            "k.cu(4): Not a name of any known instruction: 'nonsense', in the PTX 'nonsense;'\n\n    TRAP;\n    ^",
        ),
        (
            "namespace n { __global__ void gemm() {} template <int N> __global__ void copy() {} }",
            "gemm",
            "there is no kernel 'gemm': identifier \"gemm\" is undefined. Its kernels are n::gemm, n::copy<...>; "
            "did you mean n::gemm?",
        ),
        ("__global__ void scale() {}", "x", "no kernel 'x': identifier \"x\" is undefined. Its kernels are scale"),
        ("__device__ void k() {}", "k", "The source has no kernel: none of its functions is __global__"),
        (
            "__global__ void k(int) {} __global__ void k(float) {}",
            "k",
            'Name one of them by its type: "static_cast<void (*)(float)>(k)"',
        ),
        ("template <int N> __global__ void k() { static_assert(N > 3, \"small\"); }", "k<3>", "failed with \"small\""),
    ],
)  # fmt: skip
def test_the_fault_is_reported(source, name, found):
    with pytest.raises(CompileError) as refused:
        compile_source(source, name, target="sm_90a")
    assert found in str(refused.value).replace("\t", "    ")
    assert refused.value.log in str(refused.value) or "there is no kernel" in str(refused.value)


def test_a_refusal_of_a_header_is_reported_at_the_call():
    source = """#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<UINT8, Box<8, 16>>;
template <typename Other> __global__ void k(const __grid_constant__ TiledMap<Window> map) {
    __shared__ Other tile;
    __shared__ Barrier full;
    load(tile, map, full, Coordinates{0, 0});
}"""
    with pytest.raises(CompileError) as refused:
        compile_source(source, "k<Tile<UINT8, Box<8, 32>>>", target="compute_90a")
    assert (refused.value.file, refused.value.line) == ("k.cu", 7)
    said = re.escape(
        'does not compile for compute_90a: k.cu(7): static assertion failed with "the map moves another tile'
    )
    assert re.search(said + r".*\n\n      load\(tile, map, full, Coordinates\{0, 0\}\);\n", str(refused.value))


def test_a_known_place_is_reported():
    with pytest.raises(CompileError) as refused:
        compile_source('\n__global__ void k() { asm("nonsense;"); }', "k", target="sm_90a")
    assert (refused.value.file, refused.value.line) == ("k.cu", 2)
    with pytest.raises(CompileError, match="unrecognized option --nonsense") as refused:
        compile_source(KERNEL, "k", target="sm_90a", options=["--nonsense"])
    assert (refused.value.file, refused.value.line) == ("", 0)


def test_a_refusal_of_our_headers_is_a_sentence_at_the_calling_line(tmp_path, monkeypatch):
    sentence = "cuda_tma_error__this_is_wrong__declare_it_as___grid_constant___Map"
    (tmp_path / "refuse.cuh").write_text(f"""
__device__ __forceinline__ void refuse() {{ asm volatile("{sentence};"); }}
__device__ __forceinline__ void load(int a) {{ if (a > 3) refuse(); }}
""")
    source = """#include <refuse.cuh>
__device__ void inlined(int a) {
    load(a + 1);
}
extern "C" __global__ void k(int a) { inlined(a); }
"""
    monkeypatch.setattr("cuda_tma._compile.diagnosis.include_path", lambda: str(tmp_path))
    with pytest.raises(CompileError) as refused:
        compile_source(source, "k", target="sm_90a", options=[f"-I{tmp_path}"])
    assert "k.cu(3): this is wrong: declare it as __grid_constant__ Map\n\n      load(a + 1);\n      ^" in str(
        refused.value
    )
    assert (refused.value.file, refused.value.line) == ("k.cu", 3)
    assert "-DCUDA_TMA_NO_REFUSALS" in options_of(options=["-Ofc=max"])
    assert "-DCUDA_TMA_NO_REFUSALS" in options_of(options=["--Ofast-compile", "max"])
    assert "-DCUDA_TMA_NO_REFUSALS" not in options_of(options=["-Ofc=min"])


def test_the_line_is_shown_where_nvrtc_shows_none():
    """NVRTC of CUDA 12.0 reports the error of the test's source without the source line."""
    log = 'k.cu(2): error: identifier "foo" is undefined\n\n1 error detected in the compilation of "k.cu".'
    for file, shown in (("k.cu", "is undefined\n\n    foo();\n\n"), ("other.cu", "is undefined\n\n")):
        assert f"{shown}{log}" in str(diagnose(log, "void k() {\n  foo();\n}", file, "k", "sm_90a"))
    # The source has no line 2, so the log refers to a line of a #line directive.
    assert "line" not in str(diagnose(log, "one line", "k.cu", "k", "sm_90a"))


def test_reasons_of_a_refused_copy():
    """In CUDA 12.0, the text of NVRTC's error ends after the name of the function."""
    source = "#include <cuda_tma/tma.cuh>\n__global__ void k() { __shared__ cuda_tma::Barrier b; auto c = b; }"
    with pytest.raises(CompileError, match=r"\(2\): function .* is a deleted function: a Barrier must stay"):
        compile_source(source, "k", target="sm_90a")
    log = (
        'k.cu(2): warning #1444-D: function "T::T(const T &)"\n(1): here was declared deprecated ("take T&")\n\n'
        'k.cu(2): error: function "T::T(const T &)"\n(1): here cannot be referenced -- it is a deleted function'
    )
    assert "take T&" in str(diagnose(log, "", "k.cu", "k", "sm_90a"))


def test_an_error_without_a_compilers_remedy_gets_one():
    with pytest.raises(
        CompileError, match=r"for sm_777a: nvrtc: error: .* \(-arch\); this NVRTC is older than the device: pip"
    ):
        compile_source(KERNEL, "k", target="sm_777a")
    with pytest.raises(CompileError, match=r'source file "absent.h"; name its folder by options=\["-I/folder"\]; CUDA'):
        compile_source("#include <absent.h>\n", "k", target="sm_90a")
    # CUDA 12 prints the size of shared memory in hexadecimal.
    log = "ptxas error   : Entry function 'k' uses too much shared data (0x19010 bytes, 0xc000 max)"
    assert (
        "k' uses too much shared data (0x19010 bytes, 0xc000 max); use cuda_tma::dynamic_shared<T>() of "
        "dynamic_shared.cuh for more than 48 KB" in str(diagnose(log, KERNEL, "k.cu", "k", "sm_90a"))
    )


def test_ptx_without_places_is_accepted():
    log = "ptxas application ptx input, line 2; error   : nonsense"
    for ptx in ("a;\nb;\n", "\t.loc\t1 1 1\nb;\n"):
        error = diagnose_assembly(log, ptx, KERNEL, "k.cu", "k", "sm_90a")
        assert (error.file, error.line) == ("", 0) and "for sm_90a: nonsense, in the PTX 'b;'" in str(error)


def test_an_invalid_constant_is_named():
    with pytest.raises(CompileError, match=r"'sizeof\(Shard\)' was requested: .*\"Shard\" is undefined"):
        compile_source(KERNEL, "k", target="sm_90a", constants={"bytes": "sizeof(Shard)"})
