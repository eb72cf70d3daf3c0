"""Builds the extension modules: a C compiler and Python's headers are enough (no CUDA toolkit)."""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = Extension(
    "cuda_tma.*",
    ["cuda_tma/*.pyx"],
    # -w: the C is Cython's, and so would be the warnings. memset: gcc writes "rep stos" for the 100 to 500 bytes that a
    # descriptor clears, which takes longer than the C library's.
    extra_compile_args=["-O2", "-g0", "-w", "-fno-builtin-memset"],
)

setup(
    ext_modules=cythonize(
        EXTENSIONS,
        build_dir="build/cython",  # the generated C stays out of the package
        compiler_directives={"language_level": 3, "embedsignature": True},
    )
)
