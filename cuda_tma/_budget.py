"""Limits on input from elsewhere (PTX, names, files, texts), each stated here only.

A limit protects the process that judges a stranger's kernel. It lies far above the sizes that real kernels have.
"""

from __future__ import annotations

__all__ = ["CALL_DEPTH", "KERNEL_BYTES", "LAYOUT_STEPS", "OUTPUT_CHARACTERS", "PATH_CHARACTERS"]
__all__ += ["SOURCE_BYTES", "TEXT_CHARACTERS", "name_steps"]

CALL_DEPTH = 4096  # calls within calls of a thread: its stack of 256 KiB has 64 bytes for each
KERNEL_BYTES = 32 << 20  # of a file of PTX or C++
LAYOUT_STEPS = 2 << 20  # elements of a layout times its modes; 128 x 512 of tensor memory have 1/32 of that
OUTPUT_CHARACTERS = 4 << 20  # that a launch prints; CUDA's buffer, cudaLimitPrintfFifoSize, has 1 MiB
PATH_CHARACTERS = 4096  # of a file that input names: PATH_MAX of Linux
SOURCE_BYTES = 4 << 20  # of a source file, of which a finding shows lines
TEXT_CHARACTERS = 1 << 16  # of a text in a kernel's memory, and of one conversion of printf

_NAME_STEPS, _NAME_STEPS_OF_CHARACTER = 4096, 16


def name_steps(name: str) -> int:
    """Return the steps, of one type or one copied part each, in which a mangled name must be read."""
    return _NAME_STEPS + _NAME_STEPS_OF_CHARACTER * len(name)
