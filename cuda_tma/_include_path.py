"""The folder of the device headers, for a compiler's include path."""

from __future__ import annotations

from pathlib import Path

__all__ = ["include_path"]


def include_path() -> str:
    """Return the folder in which the compiler finds ``#include <cuda_tma/tma.cuh>``.

    Returns
    -------
    str
        The folder for ``cuda.core.ProgramOptions(include_path=...)``, or for nvcc's ``-I``.

    Examples
    --------
    >>> Path(include_path(), "cuda_tma", "tma.cuh").is_file()
    True
    """
    return str(Path(__file__).parent / "include")
