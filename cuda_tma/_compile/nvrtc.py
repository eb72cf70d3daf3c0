"""The compilation of CUDA C++ to PTX and machine code by NVRTC, without a driver.

NVRTC also reports constants, and the types of the kernel's parameters. To report them, NVRTC instantiates the templates
of ``signature.cuh`` for name expressions. The compilation includes ``signature.cuh`` automatically before the source.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._budget import KERNEL_BYTES
from .._errors import CompileError
from .._files import text_of_file
from .._include_path import include_path
from .compiled import Compiled

__all__ = ["Request", "compile_source", "encoded", "request"]

Source = str | os.PathLike[str]
SIGNATURE_HEADER = Path(include_path(), "cuda_tma", "signature.cuh")
# Each entry contains a default option, its spellings, and the options that replace or disable the default.
_DEFAULTS = {
    "--std=c++17": ("--std", "-std"),
    "-lineinfo": ("-lineinfo", "--generate-line-info", "-G", "--device-debug"),
}
# With an option in _LINKER_OPTIONS, NVRTC generates input for a linker, which the driver cannot load.
_LINKER_OPTIONS = ("-dlto", "--dlink-time-opt", "-dc", "--device-c", "-rdc=true", "--relocatable-device-code=true")
_OLD_LANGUAGE = re.compile(r"--?std=c\+\+(03|11|14)")
_SYNTAX_OPTIONS = ("-fdevice-syntax-only", "--fdevice-syntax-only")
_TARGET_OPTIONS = ("--gpu-architecture", "-arch")


class Request(NamedTuple):
    """All inputs of a compilation, except the headers and the NVRTC library."""

    source: str
    file: str  # The compiler searches the folder of the source file for headers in quotes.
    name: str
    target: str
    options: tuple[str, ...]  # The tuple contains the default options and the user's options.
    constants: tuple[tuple[str, str], ...]


def request(
    source: Source,
    name: str,
    *,
    target: str,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] | None = None,
    constants: Mapping[str, str] | None = None,
) -> Request:
    """Return a request from a user's arguments, after their checks and with their defaults.

    The parameters are those of :func:`compile_source`.
    """
    _check_name(name)
    text, file = _text_of(source, name)
    return Request(
        text,
        file,
        name,
        target,
        (f"--gpu-architecture={target}", *_all_options(_checked_options(options)), *_macros(defines or {})),
        _checked_constants(constants or {}),
    )


def compile_source(
    source: Source,
    name: str,
    *,
    target: str,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] | None = None,
    constants: Mapping[str, str] | None = None,
) -> Compiled:
    """Compile one kernel with cuda_tma's headers on the include path. Do not keep the result.

    Parameters
    ----------
    source : str or path
        The CUDA C++ text, or the path of a file with the text.
    name : str
        The kernel's name in C++: ``"gemm"``, ``"gemm<64>"``, ``"ns::gemm"``. For one of several overloads, write
        ``"static_cast<void (*)(float)>(scale)"``.
    target : str
        ``"sm_90a"`` for PTX and a cubin, or ``"compute_90a"`` for PTX only.
    defines : mapping, optional
        Macros by name. The macro of a number or string has that value, True is 1, False is 0, and None defines a macro
        without a value.
    options : sequence of str, optional
        NVRTC's options. ``--std=c++17`` and ``-lineinfo`` are added unless they are present.
    constants : mapping of str to str, optional
        C++ integer expressions by name, such as ``{"bytes": "sizeof(Shared)"}``.

    Returns
    -------
    Compiled

    Raises
    ------
    CompileError
        If NVRTC refuses the source. The error contains the line and NVRTC's log.
    RuntimeError
        If NVRTC is not installed.

    Examples
    --------
    >>> source = 'extern "C" __global__ void fill(float* out) { out[threadIdx.x] = VALUE; }'
    >>> compiled = compile_source(source, "fill", target="sm_90a", defines={"VALUE": 1.5})
    >>> compiled.lowered_name, compiled.types, ".entry fill(" in compiled.ptx
    ('fill', ('pointer',), True)
    """
    return run(request(source, name, target=target, defines=defines, options=options, constants=constants))


def run(asked: Request) -> Compiled:
    """Compile a request."""
    # The import is local, because a kernel from the disk cache does not need regular expressions.
    from .source_text import parameter_names

    nvrtc = load()
    signature = f"&cuda_tma::parameters<decltype(+({asked.name}))>"
    # The expression has no cast, so that NVRTC refuses a value that is not an integer or is too large.
    constants = {key: f"&cuda_tma::constant<({expression})>" for key, expression in asked.constants}
    with _program(nvrtc, asked) as program:
        for expression in (asked.name, signature, *constants.values()):
            _require(nvrtc, nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        options = [os.fsencode(option) for option in asked.options]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc, program, "ProgramLog").strip()
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _refused(asked, log or str(result))
        lowered = _require(nvrtc, nvrtc.nvrtcGetLoweredName(program, asked.name.encode())).decode()
        return Compiled(
            asked.name,
            lowered,
            _require(nvrtc, nvrtc.nvrtcGetLoweredName(program, signature.encode())).decode(),
            asked.target,
            _text(nvrtc, program, "PTX"),
            _bytes(nvrtc, program, "CUBIN"),
            parameter_names(asked.source, asked.name),
            {
                key: _value(_require(nvrtc, nvrtc.nvrtcGetLoweredName(program, expression.encode())).decode())
                for key, expression in constants.items()
            },
            log,
        )


def _refused(asked: Request, log: str) -> CompileError:
    # The import takes 8 ms, so it runs only after a failed compilation.
    from .diagnosis import diagnose, diagnose_assembly, is_of_assembler

    what = asked.source, asked.file, asked.name, asked.target
    if not is_of_assembler(log):
        return diagnose(log, *what)
    target = asked.target.replace("sm_", "compute_")  # NVRTC does not run ptxas for a target such as compute_90a.
    options = (f"--gpu-architecture={target}", *asked.options[1:])
    return diagnose_assembly(log, run(asked._replace(target=target, options=options)).ptx, *what)


# ---- arguments ----


def _text_of(source: Source, name: str) -> tuple[str, str]:
    if isinstance(source, os.PathLike):
        # The encoding is UTF-8 in any locale, and the function removes a byte order mark, which NVRTC refuses.
        text = text_of_file(source, KERNEL_BYTES, "surrogateescape")
        file = str(Path(source).absolute())
    elif isinstance(source, str):
        words = re.findall(r"\w+", name)
        text, file = source, f"{words[0] if words else 'kernel'}.cu"
    else:
        raise TypeError(f"source is a {type(source).__name__}; pass CUDA C++ as a str, or the path of a file")
    if re.fullmatch(r"[^\n(){};]*\.(?:cu|cuh|cc|cpp|cxx|h|hpp|txt)\s*", text):
        raise ValueError(
            f"source is {text!r}, which is not CUDA C++; to compile a file, pass its path: pathlib.Path({text!r})"
        )
    if "\0" in text:
        raise ValueError(
            f"source has a null character at index {text.index(chr(0))}, at which the compiler would stop reading; "
            "remove it"
        )
    return text, file


def encoded(source: str) -> bytes:
    """Return the bytes of a source. The bytes equal those of the source's file even if the file is not UTF-8."""
    return source.encode("utf-8", "surrogateescape")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name is a {type(name).__name__}; pass the kernel's C++ name as a str")
    if not name.strip() or "\n" in name:
        raise ValueError(f'name is {name!r}; pass the kernel\'s C++ name, such as "gemm" or "gemm<64>"')


def _checked_options(options: object) -> tuple[str, ...]:
    if options is None:
        return ()
    if isinstance(options, str) or not isinstance(options, Sequence) or not all(isinstance(o, str) for o in options):
        raise TypeError(f'options are {options!r}; pass NVRTC\'s options as a list of str, such as ["--use_fast_math"]')
    for option, value in zip(options, [*options[1:], ""][: len(options)], strict=True):
        if option.split("=")[0] in _TARGET_OPTIONS:
            raise ValueError(
                f"option {option!r} selects a target, but compile() always compiles for the device; leave it out"
            )
        if option in _LINKER_OPTIONS or f"{option}={value}" in _LINKER_OPTIONS:
            raise ValueError(
                f"option {option!r} produces code that still has to be linked; use Program and Linker of cuda.core "
                "instead"
            )
        if _OLD_LANGUAGE.fullmatch(option) or _OLD_LANGUAGE.fullmatch(f"{option}={value}"):
            raise ValueError(
                f"option {option!r} selects a standard before C++17, which the headers of cuda_tma need; leave it out, "
                "or pass a later standard"
            )
        if option in _SYNTAX_OPTIONS:
            raise ValueError(f"option {option!r} produces no code that can be launched; leave it out")
    return tuple(options)


def _all_options(given: tuple[str, ...]) -> Iterator[str]:
    spelled = {option.split("=")[0] for option in given}
    yield from (default for default, spellings in _DEFAULTS.items() if spelled.isdisjoint(spellings))
    yield f"--include-path={include_path()}"
    yield f"--pre-include={SIGNATURE_HEADER}"
    if re.search(r"(--Ofast-compile|-Ofc)[ =]max", " ".join(given)):
        # The header refuse.cuh is disabled, because --Ofast-compile=max does not remove dead code.
        yield "-DCUDA_TMA_NO_REFUSALS"
    yield from given


def _macros(defines: Mapping[str, object]) -> Iterator[str]:
    for name, value in defines.items():
        if not isinstance(name, str) or not name.partition("(")[0].isidentifier():
            raise ValueError(f"defines has {name!r}; pass a C++ identifier as the name of a macro")
        yield f"-D{name}" if value is None else f"-D{name}={_written(name, value)}"


def _written(name: str, value: object) -> object:
    """Return the C++ text of a macro's value."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if not isinstance(value, str | int | float):
        raise TypeError(f"defines[{name!r}] is a {type(value).__name__}; pass a str, a number or None")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(
            f'defines[{name!r}] is {value}, for which C++ has no literal; pass an expression, such as "1.0f / 0"'
        )
    return int(value) if isinstance(value, bool) else value


def _checked_constants(constants: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for name, expression in constants.items():
        if not isinstance(name, str) or not isinstance(expression, str):
            raise TypeError(f"constants has {name!r}: {expression!r}; pass a name and a C++ expression, each as a str")
    return tuple(constants.items())


# ---- NVRTC ----


def load() -> Any:
    """Return NVRTC's bindings after loading the library.

    A load takes some 12 ms, so only a compilation loads the library.
    """
    from cuda.bindings import nvrtc

    try:
        error, *_ = nvrtc.nvrtcVersion()
    # Versions 12.9 and 13.x of cuda.bindings raise different errors if the library is missing.
    except Exception as missing:
        from .diagnosis import NVRTC_WHEEL

        raise RuntimeError(
            f"NVRTC, which compiles the kernel, is not installed ({str(missing).splitlines()[0]}): pip install "
            f"{NVRTC_WHEEL}"
        ) from missing
    _require(nvrtc, (error,))
    return nvrtc


@contextmanager
def _program(nvrtc: Any, asked: Request) -> Iterator[Any]:
    program = _require(nvrtc, nvrtc.nvrtcCreateProgram(encoded(asked.source), os.fsencode(asked.file), 0, None, None))
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _require(nvrtc: Any, answer: tuple) -> Any:
    """Return the result of a call of NVRTC. Raise an error if the call failed."""
    result, *values = answer
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC failed: {result}")
    return values[0] if values else None


def _bytes(nvrtc: Any, program: Any, what: str) -> bytes:
    size = _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program))
    # The bindings write to the bytes object, so the object is longer than the objects that Python shares.
    content = bytes(size + 2)
    if size:
        _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, content))
    return content[:size]


def _text(nvrtc: Any, program: Any, what: str) -> str:
    return _bytes(nvrtc, program, what).rstrip(b"\0").decode(errors="replace")


def _value(lowered: str) -> int:
    """Return the number in ``_ZN8cuda_tma8constantILx400EEE``.

    The letter n precedes the digits of a negative number.
    """
    number = lowered.rpartition("ILx")[2].rstrip("E")
    return int(number.replace("n", "-"))
