"""What the compiler's log says is wrong, as an error that names the place, the kernel and the remedy."""

from __future__ import annotations

import difflib
import re

from ..errors import CompileError

__all__ = ["diagnose", "diagnose_assembly", "is_of_assembler", "kernels_of"]

# gemm.cu(3): error: identifier "foo" is undefined; catastrophic errors, and numbered ones.
_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$", re.MULTILINE
)
# In place of a file: the expressions whose lowered names were asked for, each as a pragma that the log shows.
_EXPRESSIONS = "__nv_name_map"
# ptxas application ptx input, line 23; error   : Not a name of any known instruction: 'nonsense'
_ASSEMBLER_ERROR = re.compile(r"^ptxas .*?, line (?P<line>\d+); error\s*: (?P<text>.*)$", re.MULTILINE)
_LOCATION = re.compile(r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+(?P<column>\d+)")
_CONSTANT = re.compile(
    r"#pragma nv_mangled_name &cuda_tma::constant<\(long long\)\((?P<expression>.*)\)>$", re.MULTILINE
)
_PAREN = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_COMMENTS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|\[\[.*?\]\]|\b(?:__\w+__|alignas)\s*" + _PAREN, re.DOTALL
)
_SCOPES_AND_KERNELS = re.compile(
    r"\bnamespace\s*(?P<space>[\w:]*)\s*\{|(?P<open>\{)|(?P<close>\})"
    r"|(?P<template>\btemplate\b[^;{}()]*)?__global__\b[^(){};]*?\b(?P<kernel>\w+)\s*\("
)


def diagnose(log: str, source: str, file: str, name: str, target: str) -> CompileError:
    """The error for a log: of the compiler's front end, or of the options."""
    errors = [*_ERROR.finditer(log)]
    elsewhere = [error for error in errors if error["file"] != _EXPRESSIONS]
    if elsewhere:
        first = elsewhere[0]
        return _error(name, target, first["file"], int(first["line"]), first["text"], log)
    if not errors:
        return CompileError(f"kernel {name!r} does not compile for {target}:\n\n{log}", log)
    text, constant = errors[0]["text"], _CONSTANT.search(log)
    if constant and f"nv_mangled_name {name}\n" not in log:
        return CompileError(f"{constant['expression']!r} was asked for, and is no constant integer: {text}", log, file)
    return CompileError(f"there is no kernel {name!r}: {text}. {_remedy(source, name, text)}", log, file)


def is_of_assembler(log: str) -> bool:
    """Whether it was ptxas that refused, which knows the PTX alone."""
    return _ASSEMBLER_ERROR.search(log) is not None


def diagnose_assembly(log: str, ptx: str, source: str, file: str, name: str, target: str) -> CompileError:
    """The error for ptxas' log: at the line of the source that the PTX comes from."""
    error = _ASSEMBLER_ERROR.search(log)
    assert error is not None
    before = ptx.splitlines()[: int(error["line"])]
    text = f"{error['text']}, in the PTX {before[-1].strip()!r}"
    place = next(filter(None, map(_LOCATION.match, reversed(before))), None)
    if place is None:
        return CompileError(f"kernel {name!r} does not compile for {target}: {text}\n\n{log}", log)
    (found,) = re.findall(rf'^\s*\.file\s+{place["file"]} "(.*?)"', ptx, re.MULTILINE)
    line = int(place["line"])
    own = found.endswith(file)
    shown = source.splitlines()[line - 1] if own and line <= source.count("\n") + 1 else ""
    caret = " " * (int(place["column"]) - 1) + "^"
    return _error(name, target, file if own else found, line, text, f"  {shown}\n  {caret}\n\n{log}" if shown else log)


def _error(name: str, target: str, file: str, line: int, text: str, log: str) -> CompileError:
    message = f"kernel {name!r} does not compile for {target}: {file}({line}): {text}\n\n{log}"
    return CompileError(message, log, file, line)


def _remedy(source: str, name: str, text: str) -> str:
    if "overloaded" in text:
        return f'Name one of them by its type: "static_cast<void (*)(float)>({name})"'
    kernels = kernels_of(source)
    if not kernels:
        return "The source has no kernel: none of its functions is __global__"
    near = difflib.get_close_matches(name, kernels, 1)
    return f"Its kernels are {', '.join(kernels)}" + (f"; did you mean {near[0]}?" if near else "")


def kernels_of(source: str) -> list[str]:
    """The kernels that a source defines, as they are written; macros are not expanded, and headers not read.

    Examples
    --------
    >>> kernels_of("__global__ void a() {} namespace n { template <int N> __global__ void b(int x) {} }")
    ['a', 'n::b<...>']
    """
    scopes: list[str] = []
    found: list[str] = []
    for token in _SCOPES_AND_KERNELS.finditer(_COMMENTS.sub(" ", source)):
        if token["kernel"]:
            path = [*filter(None, scopes), token["kernel"]]
            found.append("::".join(path) + ("<...>" if token["template"] else ""))
        elif token["close"]:
            del scopes[-1:]
        else:
            scopes.append(token["space"] or "")
    return list(dict.fromkeys(found))
