"""Builds the extension modules: a C compiler and Python's headers are enough (no CUDA toolkit)."""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = Extension(
    "cuda_tma.*",
    ["cuda_tma/*.pyx"],
    extra_compile_args=["-O2", "-g0", "-w"],  # -w: the C is Cython's, and so would be the warnings
)

setup(
    ext_modules=cythonize(
        EXTENSIONS,
        build_dir="build/cython",  # the generated C stays out of the package
        compiler_directives={"language_level": 3, "embedsignature": True},
    )
)
