"""The conversion of a compiler's log to an error with the place, the kernel and the remedy."""

from __future__ import annotations

import difflib
import re

from cuda.bindings import __version__ as bindings_version

from .._errors import CompileError
from .._include_path import include_path
from .source_text import kernels_of

__all__ = ["NVRTC_WHEEL", "diagnose", "diagnose_assembly", "diagnose_refusal", "is_of_assembler", "nvrtc_wheel"]

# The pattern matches an error of the compiler, such as `gemm.cu(3): error: identifier "foo" is undefined`.
_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$", re.MULTILINE
)
# The pattern matches `instantiation of "void load(...)" at line 20 of k.cu`. If the line contains no file name, the
# file of the error contains the instantiation.
_INSTANTIATED = re.compile(r'^ +instantiation of ".*" at line (\d+) of (.+)$', re.MULTILINE)
# The pattern matches a message that ends in `declared deprecated ("take a reference")`.
_DEPRECATED = re.compile(r'declared deprecated \("(.+)"\)')
# For an error in a name expression, the log of NVRTC contains "__nv_name_map" in place of a file name.
_EXPRESSIONS = "__nv_name_map"
# The pattern matches an error of ptxas, such as `ptxas application ptx input, line 23; error : Unknown symbol`.
_ASSEMBLER_ERROR = re.compile(r"^ptxas .*?, line (?P<line>\d+); error\s*: (?P<text>.*)$", re.MULTILINE)
# The pattern matches `.loc 4 41 1, function_name L3, inlined_at 3 48 9`, which contains file, line and column. The
# directive for an inlined function also contains the place of the call.
_LOCATION = re.compile(r"^\s*\.loc\s+(?P<at>\d+ \d+ \d+)(?:.*inlined_at (?P<call>\d+ \d+ \d+))?", re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+(\d+) "(.*?)"', re.MULTILINE)
# The pattern matches an error of the assembler that contains a message of the header refuse.cuh. In a message of
# refuse.cuh, _ stands for a space, and __ stands for a colon.
_OWN_SENTENCE = re.compile(r"Not a name of any known instruction: 'cuda_tma_error__(\w+)'")

# The PTX of a refused kernel contains the message as an instruction.
_REFUSAL = re.compile(r"^[ \t]*cuda_tma_error__(\w+);", re.MULTILINE)


def nvrtc_wheel(bindings: str) -> str:
    """Return the package that contains NVRTC for a version of cuda-bindings.

    The package for CUDA 12 has another name.

    >>> nvrtc_wheel("12.9.4"), nvrtc_wheel("13.0.3")
    ('nvidia-cuda-nvrtc-cu12', 'nvidia-cuda-nvrtc')
    """
    return "nvidia-cuda-nvrtc" + "-cu12" * bindings.startswith("12.")


NVRTC_WHEEL = nvrtc_wheel(bindings_version)
# The table contains remedies for errors of the compiler whose messages contain no remedy. Each key is a part of a
# message of the compiler.
_REMEDIES = {
    "open source file": 'name its folder by options=["-I/folder"]; CUDA\'s own headers are in '
    'cuda.pathfinder.find_nvidia_header_directory("cudart")',
    "--gpu-architecture": f"this NVRTC is older than the device: pip install --upgrade {NVRTC_WHEEL}",
    "too much shared data": "use cuda_tma::dynamic_shared<T>() of dynamic_shared.cuh for more than 48 KB",
}
# The pattern matches headers of the C or C++ library, which NVRTC lacks, and which cuda.h and cuda_runtime.h include.
_HOST_HEADER = re.compile(
    r'open source file "(?:c?(?:assert|ctype|errno|float|limits|math|stdarg|stddef|stdint|stdio|stdlib|string|time)'
    r'(?:\.h)?|algorithm|array|functional|iostream|memory|tuple|type_traits|utility|vector)"'
)
_OF_HOST = (
    "NVRTC has no headers of the host: printf(), assert() and math need none, <cuda/std/...> of CCCL has the rest, and "
    "a tensor map is cuda_tma::TensorMap of <cuda_tma/tensor_map.cuh>, without cuda.h. On the simulator such a file "
    "runs as nvcc's PTX: nvcc -ptx -lineinfo -arch=sm_90a"
)
_CONSTANT = re.compile(r"#pragma nv_mangled_name &cuda_tma::constant<\((?P<expression>.*)\)>$", re.MULTILINE)


def diagnose(log: str, source: str, file: str, name: str, target: str) -> CompileError:
    """Return the error for a log of the compiler's front end, or for a log about invalid options."""
    errors = [*_ERROR.finditer(log)]
    elsewhere = [error for error in errors if error["file"] != _EXPRESSIONS]
    if elsewhere:
        first = elsewhere[0]
        place, line = _caller(first, log) or (first["file"], int(first["line"]))
        is_shown = "^" in log and place == first["file"]  # NVRTC 12.0 does not print the source line.
        shown = "" if is_shown or place != file else _line(source, line)
        return _error(name, target, place, line, first["text"] + _reason(first, log), shown + log)
    if not errors:
        text = " ".join(log.partition("\n")[0].split())
        return CompileError(f"kernel {name!r} does not compile for {target}: {text}{_remedy(log)}\n\n{log}", log)
    text, constant = errors[0]["text"], _CONSTANT.search(log)
    if constant and f"nv_mangled_name {name}\n" not in log:
        return CompileError(f"{constant['expression']!r} was requested: not a constant integer: {text}", log, file)
    return CompileError(f"there is no kernel {name!r}: {text}. {_other_name(source, name, text)}", log, file)


def _caller(error: re.Match[str], log: str) -> tuple[str, int] | None:
    """Return the place in the user's code that instantiated a template of the package with an error."""
    if not error["file"].startswith(include_path()):
        return None
    following = _ERROR.search(log, error.end())
    calls = _INSTANTIATED.findall(log[error.end() : following.start() if following else len(log)])
    return next(((file, int(line)) for line, file in calls if not file.startswith(include_path())), None)


def _reason(error: re.Match[str], log: str) -> str:
    """Return the reason why a function is deleted.

    The package's headers state the reason in the warning of a deprecation.
    """
    reasons = _DEPRECATED.findall(log[: error.start()]) if "deleted function" in error["text"] else []
    return f": {reasons[-1]}" if reasons else ""


def is_of_assembler(log: str) -> bool:
    """Return whether the log is from ptxas, which compiles PTX."""
    return _ASSEMBLER_ERROR.search(log) is not None


def diagnose_assembly(log: str, ptx: str, source: str, file: str, name: str, target: str) -> CompileError:
    """Return the error for a log of ptxas, with the source line of the faulty PTX."""
    error = _ASSEMBLER_ERROR.search(log)
    assert error is not None
    before = ptx.splitlines()[: int(error["line"])]
    own = _OWN_SENTENCE.fullmatch(error["text"])
    text = _sentence(own[1]) if own else f"{error['text']}, in the PTX {before[-1].strip()!r}"
    return _of_ptx(text, "\n".join(before), ptx, source, file, name, target, log)


def diagnose_refusal(ptx: str, source: str, file: str, name: str, target: str) -> CompileError | None:
    """Return the error for PTX that contains a refusal of the package's headers.

    The error equals the error from the assembler.
    """
    found = _REFUSAL.search(ptx)
    if found is None:
        return None
    return _of_ptx(_sentence(found[1]), ptx[: found.end()], ptx, source, file, name, target, "")


def _of_ptx(text: str, before: str, ptx: str, source: str, file: str, name: str, target: str, log: str) -> CompileError:
    """Return the error for the last instruction in a part of PTX, with the instruction's line in the source."""
    place = _place(before, dict(_FILE.findall(ptx)))
    if place is None:
        return CompileError(f"kernel {name!r} does not compile for {target}: {text}\n\n{log}", log)
    found, line, column = place
    is_own = bool(file) and found.endswith(file)
    shown = _line(source, line, column) if is_own else ""
    return _error(name, target, file if is_own else found, line, text, shown + log)


def _line(source: str, line: int, column: int = 0) -> str:
    """Return a line of the source with a caret below a known column.

    Return an empty text if the line does not exist.
    """
    lines = source.splitlines()
    if line > len(lines):
        return ""
    return f"  {lines[line - 1]}\n" + (f"  {' ' * (column - 1)}^\n\n" if column else "\n")


def _sentence(name: str) -> str:
    """Convert ``declare_it_as___shared___and__try`` to "declare it as __shared__ and: try"."""
    parts = re.split(r"___(\w+?)___", name)
    parts[::2] = [part.replace("__", ": ").replace("_", " ") for part in parts[::2]]
    parts[1::2] = [f" __{keyword}__ " for keyword in parts[1::2]]
    return "".join(parts)


def _place(before: str, files: dict[str, str]) -> tuple[str, int, int] | None:
    """Return file, line and column of the last instruction in a part of PTX.

    For an instruction of the package's headers, return the place of the call.
    """
    place = call = ""
    for found in reversed([*_LOCATION.finditer(before)]):
        if call and found["at"] != call:
            continue
        place = found["at"]
        if not found["call"] or not files.get(place.split()[0], "").startswith(include_path()):
            break
        place = call = found["call"]
    number, line, column = place.split() if place else ("", 0, 0)
    return (files[number], int(line), int(column)) if number in files else None


def _error(name: str, target: str, file: str, line: int, text: str, log: str) -> CompileError:
    message = f"kernel {name!r} does not compile for {target}: {file}({line}): {text}{_remedy(text)}\n\n{log}"
    return CompileError(message, log, file, line)


def _remedy(text: str) -> str:
    if _HOST_HEADER.search(text):
        return f"; {_OF_HOST}"
    return "".join(f"; {remedy}" for part, remedy in _REMEDIES.items() if part in text)


def _other_name(source: str, name: str, text: str) -> str:
    if "overloaded" in text:
        return f'Name one of them by its type: "static_cast<void (*)(float)>({name})"'
    kernels = kernels_of(source)
    if not kernels:
        return "The source has no kernel: none of its functions is __global__"
    near = difflib.get_close_matches(name, kernels, 1)
    return f"Its kernels are {', '.join(kernels)}" + (f"; did you mean {near[0]}?" if near else "")
