"""The compilation of several kernels of one source by cuda.core's Program. The module stores the Program, because
`watch()` needs its PTX."""

from cuda.core import Program, ProgramOptions

import cuda_tma

PROGRAMS: list[Program] = []


def compiled(source, arch, names=()):
    """Return the cubin of the kernels with the given names, and of all ``extern "C"`` kernels."""
    options = ProgramOptions(std="c++17", arch=f"sm_{arch}", include_path=cuda_tma.include_path())
    PROGRAMS.append(Program(source, "c++", options))
    return PROGRAMS[-1].compile("cubin", name_expressions=tuple(names))
