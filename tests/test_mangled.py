import shutil
import subprocess

import pytest

from cuda_tma.mangled import parameter_kinds

# Declarations, compiled by the host compiler (which mangles as NVRTC does), and what each parameter takes.
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
]  # fmt: skip


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("nm")), reason="needs gcc and nm")
@pytest.mark.parametrize(("declaration", "kinds"), DECLARATIONS)
def test_kinds_of_what_a_compiler_mangles(declaration, kinds, tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text(declaration + ("\n" if declaration.endswith(("}", ";")) else " {}\n"))
    subprocess.run(["gcc", "-c", "-std=c++17", "-xc++", str(source), "-o", str(tmp_path / "k.o")], check=True)
    names = subprocess.run(["nm", str(tmp_path / "k.o")], capture_output=True, text=True, check=True).stdout.split()
    (name,) = [word for word in names if word.startswith("_Z")]
    assert parameter_kinds(name) == kinds


@pytest.mark.parametrize("name", ["kernel", "", "_Z", "_Z9short", "_ZN3abc", "_Z1kQz", "_Z1kIi", "_Z1kN"])
def test_what_cannot_be_read_is_not_guessed(name):
    assert parameter_kinds(name) is None
