"""Builds the extension modules: a C compiler and Python's headers are enough (no CUDA toolkit)."""

from Cython.Build import cythonize
from setuptools import Extension, setup

MODULES = ("_driver", "_dlpack", "_tensor_map", "_kernel_arg")

setup(
    ext_modules=cythonize(
        [Extension(f"cuda_tma.{name}", [f"cuda_tma/{name}.pyx"], extra_compile_args=["-O2", "-g0"]) for name in MODULES],
        build_dir="build/cython",  # the generated C stays out of the package
        compiler_directives={"language_level": 3, "embedsignature": True},
    )
)
