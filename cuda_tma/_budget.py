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

KERNEL_BYTES = 32 << 20  # KERNEL_BYTES limits the size of a file of PTX or C++.
COMPILER_BYTES = 8 << 30  # COMPILER_BYTES limits the memory of NVRTC. A kernel of CUTLASS needs half of COMPILER_BYTES.
# TOKENS limits the tokens of a PTX text, and suffices for 32 MB of PTX from a compiler. A token takes 150 bytes in
# memory.
TOKENS = 4 << 20
NESTING = 100  # NESTING limits the depth of nested brackets, braces and signs.
# ALIGNMENT_BYTES limits the alignment of a variable. A swizzled destination of TMA needs an alignment of 1024 bytes.
ALIGNMENT_BYTES = 1 << 16
MODULE_BYTES = 1 << 30  # MODULE_BYTES limits the size of all variables of a module together.
VARIABLES = 1 << 14  # VARIABLES limits the variables that a module declares outside functions.
PARAMETER_BYTES = 32_764  # PARAMETER_BYTES limits a function's parameters (PTX ISA 9.0, "Kernel Function Parameters").
REGISTERS = 1 << 19  # REGISTERS limits the registers that a module declares.
NAME_BYTES = 64 << 20  # NAME_BYTES limits the total size of the names of inlined functions in a module.

# ---- launches ----

# CALL_DEPTH limits the nested calls of a thread: its stack of 256 KiB has room for 64 bytes per call.
CALL_DEPTH = 4096
STACK_BYTES = 1 << 18  # STACK_BYTES limits the local memory of a thread.
LOCAL_BYTES = 1 << 30  # LOCAL_BYTES limits the local memory of all threads that run at the same time.
# REGISTER_BYTES limits the registers, in all nested calls, of the threads that run at the same time.
REGISTER_BYTES = 1 << 30
# OUTPUT_CHARACTERS limits the output that a launch prints. The default buffer of CUDA for printf
# (cudaLimitPrintfFifoSize) has 1 MiB.
OUTPUT_CHARACTERS = 4 << 20
# TEXT_CHARACTERS limits a text in a kernel's memory, and the output of one conversion of printf.
TEXT_CHARACTERS = 1 << 16

# ---- other limits ----

# DEMANGLED_CHARACTERS limits the length of a demangled C++ name.
DEMANGLED_CHARACTERS = 1 << 20
MANGLED_CHARACTERS = 4096  # MANGLED_CHARACTERS limits the length of a mangled C++ name.
# LAYOUT_STEPS limits the product of the number of elements and the number of modes of a layout.
LAYOUT_STEPS = 2 << 20
# COMPLAINT_CHARACTERS limits the standard error of a command, and suffices for 400 lines of a compiler.
COMPLAINT_CHARACTERS = 1 << 15
PATH_CHARACTERS = 4096  # PATH_CHARACTERS limits the length of a file name in the input (PATH_MAX of Linux).
RECORDED_BYTES = 2 << 30  # RECORDED_BYTES limits the memory in the recording of one launch.
BASELINE_BYTES = 64 << 20  # BASELINE_BYTES limits the size of a report with known findings.
RECORDING_TEXT_BYTES = 256 << 20  # RECORDING_TEXT_BYTES limits the size of the list of launches in a recording.
SOURCE_BYTES = 4 << 20  # SOURCE_BYTES limits the size of a header, and of a source file from which findings show lines.
# SUPPRESSIONS_BYTES limits the size of a file with suppressions, and suffices for ten thousand suppressions.
SUPPRESSIONS_BYTES = 1 << 20
