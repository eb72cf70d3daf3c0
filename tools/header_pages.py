"""The pages for the headers of ``cuda_tma/include/cuda_tma``, which are generated from the headers' comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cuda_tma import include_path

# The headers in INTERNAL contain parts of other headers, and macros for those parts.
INTERNAL = ("macros.cuh", "macros_end.cuh", "wgmma_macros.cuh", "wgmma_macros_end.cuh", "refuse.cuh", "signature.cuh")
NAMESPACE = "namespace cuda_tma {"
TOKEN = re.compile(
    r"(?P<section>// ---- [^\n]* ----\n)|(?P<comment>(?://[^\n]*\n[ \t]*)+)|(?P<directive>\#(?:[^\n]*\\\n)*[^\n]*\n)"
    r"|(?P<blank>\n[ \t]*\n)|(?P<string>\"(?:\\.|[^\"\\])*\"|R\"\w*\(.*?\)\w*\")|(?P<char>.)",
    re.DOTALL,
)
NAME = re.compile(r"(operator\s*[^\s(]+|~?\w+)\s*\(")
KIND = re.compile(r"^(?:template <.*?> )?(struct|enum(?: class)?|namespace) (?:alignas\([^)]*\) )?(\w+(?:<[^{;]*>)?)")


@dataclass
class Entry:
    """The declarations after one comment, in order, with the members of a struct."""

    comment: str = ""
    declarations: list[str] = field(default_factory=list)
    members: list[Entry] = field(default_factory=list)
    section: str = ""
    scope: str = ""

    @property
    def names(self) -> list[str]:
        """Return the declared names, each of them once, with their namespace in the namespace of the headers."""
        return [self.scope + name for name in dict.fromkeys(filter(None, map(name_of, self.declarations)))]


def header_pages() -> dict[str, str]:
    """Return every page by its name, and the index of the pages."""
    headers = [path for path in sorted((Path(include_path()) / "cuda_tma").glob("*.cuh")) if path.name not in INTERNAL]
    pages = {f"{path.stem}.md": header_page(path.name, path.read_text()) for path in headers}
    rows = "".join(f"| [`{path.name}`]({path.stem}.md) | {_first_sentence(path.read_text())} |\n" for path in headers)
    names = "\n".join(path.stem for path in headers)
    return pages | {"index.md": _INDEX.format(rows=rows, names=names)}


def header_page(name: str, text: str) -> str:
    """Return the page of one header."""
    parts = [f"# `{name}`\n", f"```cpp\n#include <cuda_tma/{name}>\n```\n", markdown(introduction(text))]
    level = "##"
    for entry in entries_of(text):
        if entry.section:
            level = "###"
            parts.append(f"## {entry.section[:1].upper()}{entry.section[1:]}\n")
        parts += _shown(entry, level)
    parts.append(f"The file: [`{name}`](../../cuda_tma/include/cuda_tma/{name})\n")
    return "\n".join(parts)


def introduction(text: str) -> str:
    """Return the comment at the beginning of a header."""
    (comment,) = re.findall(r"\A(?://[^\n]*\n)+", text)
    lines = [line.removeprefix("//").removeprefix(" ") for line in comment.splitlines()[2:]]
    return re.sub(r"^cuda_tma/\w+\.cuh: (\w)", lambda found: found[1].upper(), "\n".join(lines))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", introduction(text).replace("\n", " "))[0].replace("|", "\\|")


def _shown(entry: Entry, level: str) -> Iterator[str]:
    if names := ", ".join(f"`{name}`" for name in entry.names):
        yield f"{level} {names}\n"
        yield "```cuda\n" + "\n".join(_synopsis(entry)) + "\n```\n"
        yield markdown(entry.comment)


def _synopsis(entry: Entry) -> Iterator[str]:
    """Yield the declarations without bodies, and the members of a struct with their comments."""
    *others, last = entry.declarations
    yield from others
    if not entry.members:
        yield last
        return
    yield last.removesuffix(";") + " {"
    for index, member in enumerate(entry.members):
        lines = [*(f"// {line}".rstrip() for line in member.comment.splitlines()), *_synopsis(member)]
        yield from [""] * bool(index)
        yield from ("    " + line if line else "" for each in lines for line in each.split("\n"))
    yield "};"


def markdown(comment: str) -> str:
    """Return a comment as Markdown. Text that is indented by four blanks becomes code."""
    lines = [line if line.startswith("    ") else _escaped(line) for line in comment.splitlines()]
    text = re.sub(r"((?:^    .*\n|^\n(?=    ))+)", _code, "\n".join(lines) + "\n", flags=re.MULTILINE)
    return text


def _escaped(line: str) -> str:
    """Escape Markdown's special characters outside backticks."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]~])", r"\\\1", part) for part in parts)


def _code(found: re.Match[str]) -> str:
    lines = found[0].strip("\n").splitlines()
    language = "text" if all(re.match(r"    \w+\.cuh ", line) for line in lines) else "cuda"
    return f"\n```{language}\n" + "\n".join(line[4:] for line in lines) + "\n```\n\n"


def name_of(declaration: str) -> str:
    """Return the name that a declaration introduces, or an empty string for a repeated declaration."""
    if found := re.match(r"CUDA_TMA_FEATURE\((\w+)", declaration):
        return f"has_{found[1]}"
    plain = re.sub(r"^template <.*?>\s*(?=[_a-z])|\[\[.*?\]\]\s*", "", declaration.replace("\n", " "))
    if found := re.match(r"(?:struct|enum class|enum|class) (?:alignas\([^)]*\) )?(\w+)", plain):
        return found[1]
    if found := re.match(r"using (\w+)", plain):
        return found[1]
    if re.match(r"static_assert|extern|friend|enum;", plain) or "is_the_type" in plain:
        return ""
    plain = re.sub(r"__launch_bounds__\([^)]*\)|__attribute__\(.*?\)\)", "", plain)
    if found := NAME.search(plain):
        return found[1]
    found = re.search(r"(\w+)(?:<[\w:, <>&]*>)?(?:\[\w*\])?\s*(?:=[^=].*|\{.*)?;?$", plain)
    return found[1] if found else ""


def entries_of(text: str) -> list[Entry]:
    """Return the declarations in the namespace of a header, in their order."""
    body = text.split(NAMESPACE, 1)[1].rsplit("}  // namespace cuda_tma", 1)[0] if NAMESPACE in text else ""
    return _entries(body)


def _entries(text: str) -> list[Entry]:
    entries: list[Entry] = []
    section, comment, at, apart = "", "", 0, True
    while found := TOKEN.match(text, at):
        kind = found.lastgroup
        if kind == "section":
            section, comment, apart = found[0].strip(" -/\n"), "", True
        elif kind == "comment" and entries and not apart and text[:at].rpartition("\n")[2].strip():
            # A comment on the same line as a declaration belongs to the declaration.
            entries[-1].declarations[-1] += "  " + found[0].splitlines()[0]
            at = text.index("\n", at)
            continue
        elif kind == "comment":
            comment, apart = _uncommented(found[0]), True
        elif kind == "blank":
            comment, apart = "", True
        elif kind == "char" and not found[0].isspace() and found[0] != ";":
            declaration, inner, at = _declaration(text, at)
            if declaration.startswith("namespace "):
                entries += _of_namespace(declaration, inner, comment, section)
                section, comment, apart = "", "", True
                continue
            if apart or not entries:
                entries.append(Entry(comment, section=section))
                section = ""
            entries[-1].declarations.append(declaration)
            entries[-1].members += [member for member in _entries(inner) if member.names] if inner else []
            comment, apart = "", False
            continue
        at = found.end()
    return entries


def _of_namespace(declaration: str, inner: str, comment: str, section: str) -> list[Entry]:
    """Return the entries of an inner namespace, after an entry for the comment on the namespace."""
    entries = _entries(inner)
    for entry in entries:
        entry.scope = f"{declaration.removeprefix('namespace ').removesuffix(';')}::"
    if comment:
        return [Entry(comment, [declaration], section=section), *entries]
    if entries and section:
        entries[0].section = section
    return entries


def _uncommented(text: str) -> str:
    return "\n".join(line.strip().removeprefix("//").removeprefix(" ") for line in text.strip().splitlines())


def _declaration(text: str, at: int) -> tuple[str, str, int]:
    """Return a declaration without its body, the content of a struct, and the position after the declaration."""
    depth, begin = 0, at
    if macro := re.compile(r"CUDA_TMA_[A-Z_]+\([^;{]*?\)(?=\n)").match(text, at):
        return macro[0], "", macro.end()
    while (char := text[at]) != ";" or depth:
        if char == "{" and not depth:
            return _with_body(text, begin, at)
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
        at = found.end() if (found := TOKEN.match(text, at)) and found.lastgroup in ("comment", "string") else at + 1
    return _dedented(text[begin : at + 1]), "", at + 1


def _with_body(text: str, begin: int, brace: int) -> tuple[str, str, int]:
    end = _closing(text, brace)
    head, body = _dedented(text[begin:brace]).rstrip(), text[brace + 1 : end - 1]
    kind = KIND.match(re.sub(r"\s+", " ", head))
    if kind and kind[1].startswith("enum"):
        return f"{head} {{{_dedented(body).rstrip()}\n}};" if "\n" in body else f"{head} {{{body}}};", "", end
    if kind and kind[1] in ("struct", "namespace"):
        return f"{head};", body, end
    # A constant that is an array or is initialized in braces appears with its value.
    if re.search(r"\bconstexpr\b[^(]*$", head):
        return _dedented(text[begin:end]), "", end
    return re.sub(r"\s*=$", "", head) + ";", "", end


def _closing(text: str, at: int) -> int:
    depth = 0
    while True:
        found = TOKEN.match(text, at)
        assert found
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        at = found.end()
        if not depth:
            return at


def _dedented(text: str) -> str:
    """Return the lines without their common indentation."""
    first, *rest = text.splitlines() or [""]
    blank = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    indent = min(blank, 4) if rest and not rest[0].startswith(" " * 8) else 0
    return "\n".join([first.rstrip(), *(line[indent:].rstrip() for line in rest)])


_INDEX = """# The device header

[`tma.cuh`](tma.md) has one function for each PTX instruction: loads and stores of 1 to 5 dimensions, im2col,
multicast, reductions, prefetches, cache policies, barriers, fences, and the shared-memory address of a swizzled byte.
It is C++17, includes only its neighbors, and works with NVRTC and nvcc from CUDA 12.0 on, together with CCCL.

[`tile.cuh`](tile.md) has types of tiles and maps that declare data type, box and swizzle. `load`, `store`, `reduce`
and `arrive_expect_tx` take the byte count from the type, and `tile(row, column)` is an element at its swizzled place.
A tile wider than the swizzle's span consists of several boxes. A tile of another type does not compile.

[`sm100.cuh`](sm100.md) contains the additions of compute capability 10 (`gather4`, `scatter4`, im2col along W, pairs
of CTAs); on other targets, a `static_assert` names the targets that have them. [`pipeline.cuh`](pipeline.md) is a
ring of tiles between a thread that loads and others that compute, in one CTA or in a cluster. [`wgmma.cuh`](wgmma.md)
multiplies loaded tiles on Hopper's tensor cores, with all their types and forms, and [`mma.cuh`](mma.md) on those of
every target. [`tcgen05.cuh`](tcgen05.md) multiplies on the tensor cores of compute capability 10, whose sums are in
[tensor memory](tensor_memory.md), and [`tcgen05_scaled.cuh`](tcgen05_scaled.md) with block scales.

[`tma.cuh`](tma.md) lists common parts of kernels on tensor cores. Among them are [`epilogue.cuh`](epilogue.md), which
stores a tile while the next one multiplies, roles of warps, flags between GPUs, and maps that the GPU changes. The
compiler refuses mistakes that would fail silently (NVRTC 13.4 on): a map that is not a `__grid_constant__`, a tile in
registers, a negative offset.

Each page below contains the comments of its header. [Compile times](../speed.md) show the cost of an include.
`cuda_tma.include_path()` is the folder for `-I`; {{py:func}}`cuda_tma.compile` adds it.

| header | purpose |
|---|---|
{rows}

```{{toctree}}
:hidden:

{names}
```
"""
