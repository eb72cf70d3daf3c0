"""The build of the extension modules and the driver library, with a C compiler and Python's headers, without CUDA."""

import os
import re
from pathlib import Path
from threading import Lock

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The option -w disables warnings about C code that Cython generates. Without -fno-builtin-memset, gcc clears the 100 to
# 500 bytes of a descriptor by "rep stos", which takes longer than memset of the C library.
FLAGS = ["-g0", "-w", "-fno-builtin-memset"]
EXTENSIONS = [
    Extension(  # The option -O3 vectorizes loops, and the last option prevents fused multiply-add instructions.
        "cuda_tma.simulate._matrix._adder",
        ["cuda_tma/simulate/_matrix/_adder.pyx"],
        include_dirs=["cuda_tma/simulate/_matrix"],
        depends=["cuda_tma/simulate/_matrix/sums.h"],
        extra_compile_args=["-O3", "-ffp-contract=off", *FLAGS],
    ),
    Extension(
        "cuda_tma.simulate._sanitize.model._stamps",
        ["cuda_tma/simulate/_sanitize/model/_stamps.pyx"],
        extra_compile_args=["-O3", *FLAGS],
    ),
    Extension("*", ["cuda_tma/**/*.pyx"], extra_compile_args=["-O2", *FLAGS]),
]
# The driver library of cuda-tma sanitize is one shared library, which also contains a CUDA runtime and does not use
# Python. Wheels contain the library, so that users need no compiler. The file versions.map contains the symbol versions
# that programs request.
INTERCEPT = Path("cuda_tma/_intercept")
VERSIONS = INTERCEPT / "libcudart" / "versions.map"
DRIVER = Extension(
    "cuda_tma._intercept.libcuda.libcuda",
    sorted(map(str, INTERCEPT.glob("libcuda*/**/*.c"))),
    depends=[*sorted(map(str, INTERCEPT.glob("libcuda*/**/*.h"))), str(VERSIONS)],
    extra_compile_args=["-std=gnu11", "-O2", "-g0", "-Wall", "-Wextra"],
    extra_link_args=["-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", f"-Wl,--version-script={VERSIONS}"],
    libraries=["dl", "pthread"],
)
# The library for cuda-tma sanitize --on-gpu intercepts the calls from a program to the driver of the GPU.
ON_GPU = Extension(
    "cuda_tma._intercept.on_gpu.library.libongpu",
    [
        *sorted(map(str, INTERCEPT.glob("on_gpu/library/*.c"))),
        *(str(INTERCEPT / "libcuda" / name) for name in ("images.c", "compilers/programs.c")),
    ],
    depends=[
        *sorted(map(str, INTERCEPT.glob("on_gpu/library/*.h"))),
        *sorted(map(str, INTERCEPT.glob("libcuda/**/*.h"))),
    ],
    extra_compile_args=["-std=gnu11", "-O2", "-g0", "-Wall", "-Wextra"],
    extra_link_args=["-Wl,-soname,libongpu.so"],
    libraries=["dl", "pthread"],
)
# Cython functions have a signature, which help() would print twice with embedsignature. The extensions are safe without
# a GIL (CONTRIBUTING, "Free threading"), so their import must not enable the GIL.
DIRECTIVES = {"language_level": 3, "embedsignature": False, "freethreading_compatible": True}
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Build(build_ext):
    """A build that prints its progress, and that gives the library a name without the version of Python."""

    def build_extensions(self) -> None:
        """Build all extensions, several of them at a time."""
        self.ready, self.lock = 0, Lock()
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Build one extension, and print that the extension is ready."""
        super().build_extension(ext)
        with self.lock:
            self.ready += 1
            print(f"[{self.ready}/{len(self.extensions)}] compiled {ext.name}", flush=True)

    def get_ext_filename(self, fullname: str) -> str:
        """Return the path of an extension below the folder of the package."""
        if fullname.rpartition(".")[2] not in ("libcuda", "libongpu"):
            return super().get_ext_filename(fullname)
        return os.path.join(*fullname.split(".")) + ".so"


# A release sets PROJECT_URL to the address of the repository, such as https://github.com/NAME/cuda_tma. The metadata of
# a release contains the addresses in URLS, and relative links in README.md become links to the repository. Without
# PROJECT_URL, the metadata contains no addresses.
HOME = os.environ.get("PROJECT_URL", "").rstrip("/")
URLS = {"Homepage": "", "Documentation": "/tree/main/docs", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}


def readme() -> str:
    """Return README.md for an index of packages, without pictures and links that refer to files next to it."""
    beside = r"(!?)\[([^]]*)\]\((?!https?:)([^)]*)\)"

    def elsewhere(found: re.Match[str]) -> str:
        mark, words, path = found.groups()
        return f"{mark}[{words}]({HOME}/{'raw' if mark else 'blob'}/main/{path})" if HOME else words

    return re.sub(beside, elsewhere, Path("README.md").read_text(encoding="utf-8"))


def extensions() -> list[Extension]:
    """Translate the Cython sources, and return the extensions to compile."""
    return cythonize(
        [*EXTENSIONS, DRIVER, ON_GPU],
        nthreads=JOBS,
        build_dir="build/cython",  # Cython writes the generated C files to the build folder, and not into the package.
        compiler_directives=DIRECTIVES,
    )


if __name__ == "__main__":  # The guard is necessary, because processes that Cython starts may import this file.
    setup(
        cmdclass={"build_ext": Build},
        options={"build_ext": {"parallel": JOBS}},
        ext_modules=[] if os.environ.get("EXTENSIONS_ARE_BUILT") else extensions(),
        project_urls={name: HOME + path for name, path in URLS.items()} if HOME else {},
        long_description=readme(),
        long_description_content_type="text/markdown",
    )
