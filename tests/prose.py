"""A search for unidiomatic syntax in the repository's prose: Markdown without code, comments, docstrings and other
strings.

``tests/data/prose_patterns.json`` contains the patterns. ``python -m tests.prose`` lowers the budgets in
``tests/data/prose_budget.json`` to the present counts;
``python -m tests.prose -v`` also prints each hit. A budget never rises.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BUDGET = Path(__file__).parent / "data" / "prose_budget.json"
SUFFIXES = {".py", ".pyx", ".pxd", ".md", ".cuh", ".cu", ".h"}
SKIPPED = {"build", "dist", "golden"}
# The build of the site writes the pages in the two folders.
GENERATED = ("docs/errors/", "docs/headers/")

PATTERNS = json.loads((Path(__file__).parent / "data" / "prose_patterns.json").read_text())
_ANYWHERE, _IN_DOCSTRINGS = (
    {name: re.compile(pattern) for name, pattern in PATTERNS[where].items()} for where in ("text", "docstrings")
)

_MARKDOWN_CODE = re.compile(r"```.*?```|`[^`\n]*`|<[^>]*>|\]\([^)]*\)", re.DOTALL)
_QUOTED_CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|>>> .*")
_COMMENTS = re.compile(
    r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+|//[^\n]*"
    r"|(?:^[ \t]*#(?!include|define|if|el|endif|pragma|undef|error)[^\n]*\n?)+"
    r'|""".*?"""',
    re.DOTALL | re.MULTILINE,
)
_MARKS = re.compile(r"^[ \t]*(?://+|#+|\*)", re.MULTILINE)


class Hit(NamedTuple):
    """A place in the prose: its file, the kind of syntax, and the words around it."""

    path: str
    kind: str
    excerpt: str


class Piece(NamedTuple):
    """A paragraph, comment or string as one line."""

    text: str
    is_docstring: bool = False


def hits_in(piece: Piece, path: str = "") -> list[Hit]:
    """Return the hits in one piece of prose."""
    patterns = _ANYWHERE | (_IN_DOCSTRINGS if piece.is_docstring else {})
    return [
        Hit(path, kind, piece.text[max(0, found.start() - 30) : found.end() + 40])
        for kind, pattern in patterns.items()
        for found in pattern.finditer(piece.text)
    ]


@cache
def hits() -> list[Hit]:
    """Return the hits in every file of the repository that contains prose."""
    return [
        hit
        for path in sorted(_prose_files())
        for piece in _pieces(path)
        for hit in hits_in(piece, path.relative_to(ROOT).as_posix())
    ]


def folder_of(path: str) -> str:
    """Return the folder whose budget applies to a file: two levels in the package, otherwise one level."""
    parts = path.split("/")
    depth = 2 if parts[0] == "cuda_tma" else 1
    return "/".join(parts[: min(depth, len(parts) - 1)]) or "."


def _prose_files() -> Iterator[Path]:
    """Yield the files with prose. Do not open hidden folders, because a virtual environment has many files."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
        for path in (Path(folder, name) for name in names):
            is_generated = path.relative_to(ROOT).as_posix().startswith(GENERATED)
            if path.suffix in SUFFIXES and not path.name.startswith(".") and not is_generated:
                yield path


def _pieces(path: Path) -> Iterator[Piece]:
    """Yield the pieces of one file."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        pieces: Iterator[Piece] = map(Piece, re.split(r"\n\s*\n", _MARKDOWN_CODE.sub(" _ ", text)))
    elif path.suffix == ".py":
        pieces = _python(text)
    else:
        pieces = (_comment(found[0]) for found in _COMMENTS.finditer(text))
    for piece in pieces:
        if words := piece.text.split():
            yield piece._replace(text=" ".join(words))


def _comment(text: str) -> Piece:
    quotes = '"' * 3
    return Piece(_MARKS.sub("", text).strip(quotes), is_docstring=text.startswith(quotes))


def _python(text: str) -> Iterator[Piece]:
    comments: list[str] = []
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string.lstrip("#! "))
        elif token.type != tokenize.NL:
            if comments:
                yield Piece(" ".join(comments))
                comments = []
            if token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
                is_docstring = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
                yield Piece(_QUOTED_CODE.sub(" _ ", token.string.strip("rbfRBF\"'")), is_docstring)
            before = token.type


def _lower() -> None:
    found = hits()
    counts = Counter(folder_of(hit.path) for hit in found)
    known = json.loads(BUDGET.read_text()) if BUDGET.exists() else dict(counts)
    lowered = {folder: min(budget, counts[folder]) for folder, budget in sorted(known.items())}
    BUDGET.write_text(json.dumps({folder: budget for folder, budget in lowered.items() if budget}, indent=1) + "\n")
    if "-v" in sys.argv:
        print(*(f"{hit.path}: {hit.kind}: {hit.excerpt}" for hit in found), sep="\n")
    print(f"{len(found)} hits; budgets: {sum(lowered.values())}")


if __name__ == "__main__":
    _lower()
