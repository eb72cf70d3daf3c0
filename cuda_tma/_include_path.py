"""Where the device-side header lies, for a compiler's include path."""

from __future__ import annotations

from pathlib import Path

__all__ = ["include_path"]


def include_path() -> str:
    """The folder to give to the compiler so that ``#include <cuda_tma/tma.cuh>`` is found.

    Returns
    -------
    str
        For ``cuda.core.ProgramOptions(include_path=...)``, or for nvcc's ``-I``.

    Examples
    --------
    >>> Path(include_path(), "cuda_tma", "tma.cuh").is_file()
    True
    """
    return str(Path(__file__).parent / "include")
