"""Limits on untrusted input (PTX, names, files, texts), each defined only here.

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

KERNEL_BYTES = 32 << 20  # of a file of PTX or C++
COMPILER_BYTES = 8 << 30  # memory that NVRTC may take; a kernel of CUTLASS needs half
TOKENS = 4 << 20  # the tokens of 32 MB of PTX from a compiler; each takes 150 bytes here
NESTING = 100  # nested brackets, braces or signs
ALIGNMENT_BYTES = 1 << 16  # of a variable: TMA's swizzles need 1024
MODULE_BYTES = 1 << 30  # of a module's variables
VARIABLES = 1 << 14  # of a module outside of functions
PARAMETER_BYTES = 32_764  # of a function: PTX ISA 9.0, "Kernel Function Parameters"
REGISTERS = 1 << 19  # of a module
NAME_BYTES = 64 << 20  # of the names of inlined functions, in all places together

# ---- launches ----

CALL_DEPTH = 4096  # nested calls of a thread: its stack of 256 KiB has 64 bytes for each
STACK_BYTES = 1 << 18  # of a thread's local memory
LOCAL_BYTES = 1 << 30  # of all threads that run at the same time
REGISTER_BYTES = 1 << 30  # likewise, in all of their calls
OUTPUT_CHARACTERS = 4 << 20  # printed by a launch; CUDA's buffer, cudaLimitPrintfFifoSize, has 1 MiB
TEXT_CHARACTERS = 1 << 16  # of a text in a kernel's memory, and of one conversion of printf

# ---- other files, and texts ----

DEMANGLED_CHARACTERS = 1 << 20  # of a C++ name, by a bound on its references to its own parts
MANGLED_CHARACTERS = 4096  # of a name that the C++ runtime reads
LAYOUT_STEPS = 2 << 20  # elements of a layout times its modes; 128 x 512 of tensor memory have 1/32 of that
COMPLAINT_CHARACTERS = 1 << 15  # of a command's standard error: 400 lines of a compiler
PATH_CHARACTERS = 4096  # of a file name in the input: PATH_MAX of Linux
RECORDED_BYTES = 2 << 30  # of memory of one recorded launch
BASELINE_BYTES = 64 << 20  # of a report of known findings
RECORDING_TEXT_BYTES = 256 << 20  # of the list of launches of a recording
SOURCE_BYTES = 4 << 20  # of a source file, for excerpts in findings, and of a header
SUPPRESSIONS_BYTES = 1 << 20  # of a file of suppressions: ten thousand of them
