"""Limits on untrusted input (PTX, names, files, texts). The package defines each limit only in this module.

A limit protects the process that checks an untrusted kernel, and is far above the sizes of real kernels.
"""

from __future__ import annotations

__all__ = [
    "ALIGNMENT_BYTES",
    "BASELINE_BYTES",
    "CALL_DEPTH",
    "COMPILER_BYTES",
    "KERNEL_BYTES",
    "LAYOUT_STEPS",
    "LOCAL_BYTES",
    "MODULE_BYTES",
    "NAME_BYTES",
]
__all__ += ["NESTING", "OUTPUT_CHARACTERS", "PARAMETER_BYTES", "PATH_CHARACTERS", "REGISTERS", "REGISTER_BYTES"]
__all__ += [
    "RECORDED_BYTES",
    "RECORDING_TEXT_BYTES",
    "SOURCE_BYTES",
    "STACK_BYTES",
    "SUPPRESSIONS_BYTES",
    "TEXT_CHARACTERS",
    "TOKENS",
    "VARIABLES",
]
__all__ += ["COMPLAINT_CHARACTERS", "DEMANGLED_CHARACTERS", "MANGLED_CHARACTERS"]

# ---- PTX texts ----

KERNEL_BYTES = 32 << 20  # A file of PTX or C++ has at most this size.
COMPILER_BYTES = 8 << 30  # NVRTC may take this memory. A kernel of CUTLASS needs half of it.
# A PTX text has at most this number of tokens, as in 32 MB from a compiler. A token takes 150 bytes in memory.
TOKENS = 4 << 20
NESTING = 100  # Brackets, braces and signs are nested to at most this depth.
ALIGNMENT_BYTES = 1 << 16  # A variable has at most this alignment. TMA's swizzles need 1024.
MODULE_BYTES = 1 << 30  # The variables of a module have at most this size in all.
VARIABLES = 1 << 14  # A module declares at most this number of variables outside functions.
PARAMETER_BYTES = 32_764  # A function's parameters have at most this size (PTX ISA 9.0, "Kernel Function Parameters").
REGISTERS = 1 << 19  # A module declares at most this number of registers.
NAME_BYTES = 64 << 20  # The names of inlined functions have at most this size, summed over all places.

# ---- launches ----

CALL_DEPTH = 4096  # A thread nests at most this number of calls. Its stack of 256 KiB has 64 bytes for each call.
STACK_BYTES = 1 << 18  # A thread's local memory has at most this size.
LOCAL_BYTES = 1 << 30  # The threads that run at the same time have at most this local memory in all.
REGISTER_BYTES = 1 << 30  # The registers of the threads that run at the same time have at most this size, in all calls.
# A launch prints at most this number of characters. CUDA's buffer (cudaLimitPrintfFifoSize) has 1 MiB.
OUTPUT_CHARACTERS = 4 << 20
TEXT_CHARACTERS = 1 << 16  # A text in a kernel's memory, and one conversion of printf, have at most this length.

# ---- other files, and texts ----

# A demangled C++ name has at most this length. The bound counts the name's references to its own parts.
DEMANGLED_CHARACTERS = 1 << 20
MANGLED_CHARACTERS = 4096  # The C++ runtime reads a name of at most this length.
# The elements of a layout times its modes are at most this number. Tensor memory of 128 x 512 has 1/32 of it.
LAYOUT_STEPS = 2 << 20
COMPLAINT_CHARACTERS = 1 << 15  # A command's standard error has at most this length. A compiler writes 400 lines in it.
PATH_CHARACTERS = 4096  # A file name in the input has at most this length (PATH_MAX of Linux).
RECORDED_BYTES = 2 << 30  # The memory of one recorded launch has at most this size.
BASELINE_BYTES = 64 << 20  # A report of known findings has at most this size.
RECORDING_TEXT_BYTES = 256 << 20  # The list of launches of a recording has at most this size.
SOURCE_BYTES = 4 << 20  # A header, or a source file with excerpts for findings, has at most this size.
# A file of suppressions has at most this size, which is enough for ten thousand suppressions.
SUPPRESSIONS_BYTES = 1 << 20
