"""Several kernels of one source, by cuda.core's Program; kept, as it has the PTX that `watch()` asks for."""

from cuda.core import Program, ProgramOptions

import cuda_tma

PROGRAMS: list[Program] = []


def compiled(source, arch, names=()):
    """The cubin of all kernels with these names, and of those that are ``extern "C"``."""
    options = ProgramOptions(std="c++17", arch=f"sm_{arch}", include_path=cuda_tma.include_path())
    PROGRAMS.append(Program(source, "c++", options))
    return PROGRAMS[-1].compile("cubin", name_expressions=tuple(names))
