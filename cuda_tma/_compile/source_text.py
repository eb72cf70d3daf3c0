"""Facts about kernels from the text of a source, for messages and for names of parameters.

The module needs no compiler.

The module does not expand macros or read headers, so its result may be incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["kernels_of", "parameter_names"]

_PAREN = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|\[\[.*?\]\]|\b(?:__\w+__|alignas)\s*" + _PAREN, re.DOTALL
)
_SCOPES_AND_KERNELS = re.compile(
    r"\bnamespace\s*(?P<space>[\w:]*)\s*\{|(?P<open>\{)|(?P<close>\})"
    r"|(?P<template>\btemplate\b[^;{}()]*)?__global__\b[^(){};]*?\b(?P<kernel>\w+)\s*(?P<parameters>" + _PAREN + ")"
)
_NESTED = re.compile(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
# The pattern matches a declarator of a pointer to a function or an array.
_DECLARATOR = re.compile(r"\(\s*[*&]+\s*(?:const\s+)?(\w+)")
_LAST_WORD = re.compile(r"[\w>*&\].]\s*\b(?P<name>[A-Za-z_]\w*)\s*$")
_TYPE_WORDS = {"int", "char", "short", "long", "float", "double", "bool", "unsigned", "signed", "const", "void", "auto"}


def kernels_of(source: str) -> list[str]:
    """Return the names of the kernels in a source, as they are written.

    Examples
    --------
    >>> kernels_of("__global__ void a() {} namespace n { template <int N> __global__ void b(int x) {} }")
    ['a', 'n::b<...>']
    """
    found = ("::".join(path) + ("<...>" if is_template else "") for path, is_template, _ in _kernels(source))
    return list(dict.fromkeys(found))


def parameter_names(source: str, name: str) -> tuple[str, ...]:
    """Return the names of a kernel's parameters, with "" for a parameter without a name.

    Return () if the kernel is missing or ambiguous.

    Examples
    --------
    >>> parameter_names("__global__ void copy(const float* from, float (&to)[4], int) {}", "copy")
    ('from', 'to', '')
    """
    words = set(re.findall(r"\w+", _without_nested(name.replace("(", " ").replace(")", " "))))
    found = {tuple(map(_name, _split(text))) for path, _, text in _kernels(source) if path[-1] in words}
    return found.pop() if len(found) == 1 else ()


def _kernels(source: str) -> Iterator[tuple[list[str], bool, str]]:
    """Yield each kernel's namespaces and name, whether it is a template, and the text of its parameters."""
    scopes: list[str] = []
    for token in _SCOPES_AND_KERNELS.finditer(_NO_CODE.sub(" ", source)):
        if token["kernel"]:
            yield [*filter(None, scopes), token["kernel"]], bool(token["template"]), token["parameters"][1:-1]
        elif token["close"]:
            del scopes[-1:]
        else:
            scopes.append(token["space"] or "")


def _without_nested(text: str, mark: str = "") -> str:
    """Return a text without its parts in brackets, at any depth."""
    before = ""
    while before != text:
        before, text = text, _NESTED.sub(mark, text)
    return text


def _split(text: str) -> list[str]:
    """Split a text at the commas that are outside brackets."""
    parts: list[str] = []
    for part in text.split(","):
        if parts and any(parts[-1].count(left) > parts[-1].count(right) for left, right in ("<>", "()", "[]", "{}")):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return [part for part in parts if part.strip() not in ("", "void")]


def _name(parameter: str) -> str:
    declared = parameter.partition("=")[0]
    if found := _DECLARATOR.search(declared):
        return found[1]
    found = _LAST_WORD.search(re.sub(r"(\[[^\]]*\]\s*)+$", "", declared))
    return found["name"] if found and found["name"] not in _TYPE_WORDS else ""
