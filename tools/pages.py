"""The executable pages of ``docs/``, with their blocks, the output of each block, and the comparison of the output with
the page.

A page is also Markdown for GitHub. The blocks of a page run in order, in one namespace and in a separate folder. The
words after a fence determine the treatment of a block.

The folder contains the repository's ``tests``, with the recordings. Names of files in the folder, and of headers,
appear without their folder. The command ``tools/run_pages.py --write`` updates the header lines.

Kinds of blocks
---------------
- ``python`` runs; ``python gpu`` runs only on a GPU (tests/gpu), and is compiled elsewhere.
- ``sh`` runs in bash; ``cuda-tma`` is the command of this package, and ``python`` is this Python. ``sh not-run`` does
  not run, for example an installation.
- ``cpp load.cu`` is written to that file, which later blocks compile. Any other text (``ini``, ``yaml``, ``python``)
  with a file name after it is also written to its file.
- ``text`` directly after a block that ran is its output; ``...`` matches any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuda_tma import include_path

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = ("tutorial", "how-to", "explanation")
PAGES = tuple(sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")))
FENCE = re.compile(r"^```(?P<language>[\w+-]+)(?: (?P<word>[^\n]*))?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = f'python() {{ "{sys.executable}" "$@"; }}\ncuda-tma() {{ python -m cuda_tma "$@"; }}\n'


@dataclass(frozen=True)
class Block:
    """One block of a page.

    Attributes
    ----------
    language, word : str
        The words after the fence of the block.
    text : str
        The text of the block.
    line : int
        The number of the block's first line in the page, counted from 1.
    shown : str or None
        The output that the page shows, which is the block of text directly after this block.
    span : tuple of int
        The begin and the end of the shown block in characters. Both positions are the place for that block if the page
        has no such block.
    """

    language: str
    word: str
    text: str
    line: int
    shown: str | None
    span: tuple[int, int]

    @property
    def is_run(self) -> bool:
        """Return whether the block runs."""
        return self.language in ("python", "sh") and self.word in ("", "gpu")


@dataclass(frozen=True)
class Ran:
    """The output of a block, and whether Python reached the end of the block."""

    block: Block
    printed: str
    is_whole: bool = True


def blocks_of(text: str) -> tuple[Block, ...]:
    """Return the blocks of a page, without the blocks of output."""
    found = list(FENCE.finditer(text))
    blocks = []
    for index, fence in enumerate(found):
        if fence["language"] == "text" and index and _is_output(found[index - 1], fence, text):
            continue
        behind = found[index + 1] if index + 1 < len(found) else None
        output = behind if behind and behind["language"] == "text" and _is_output(fence, behind, text) else None
        span = (output.start(), output.end()) if output else (fence.end(), fence.end())
        line = text.count("\n", 0, fence.start("text")) + 1
        shown = output["text"] if output else None
        blocks.append(Block(fence["language"], fence["word"] or "", fence["text"], line, shown, span))
    return tuple(blocks)


def _is_output(fence: re.Match[str], behind: re.Match[str], text: str) -> bool:
    return fence["language"] in ("python", "sh") and not text[fence.end() : behind.start()].strip()


def run(text: str, folder: Path, name: str = "page", *, gpu: bool = False) -> Iterator[Ran]:
    """Run the blocks of a page in a folder, and yield each block with its output. Tracebacks contain the page's
    ``name``.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    if not (folder / "tests").exists():
        (folder / "tests").symlink_to(DOCS.parent / "tests")
    for block in blocks_of(text):
        if block.is_run and block.language == "python":
            yield _without_paths(_python(block, names, folder, name, gpu), folder)
        elif block.is_run:
            yield _without_paths(Ran(block, _shell(block, folder)), folder)
        elif block.word and block.word != "not-run":
            (folder / block.word).write_text(block.text)


def _without_paths(ran: Ran, folder: Path) -> Ran:
    printed = ran.printed
    for path in {str(folder), str(folder.resolve()), include_path()}:
        printed = printed.replace(f"{path}/", "")
    return replace(ran, printed=printed)


def _python(block: Block, names: dict[str, Any], folder: Path, name: str, gpu: bool) -> Ran:
    """Run a Python block with the line numbers of the page, so that a traceback contains these numbers."""
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    if block.word == "gpu" and not gpu:
        return Ran(block, block.shown or "")
    is_whole = True
    with contextlib.redirect_stdout(io.StringIO()) as printed, inside(folder):
        try:
            exec(code, names)
        except Exception:
            is_whole = False
            traceback.print_exc(file=printed)
    return Ran(block, printed.getvalue(), is_whole)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Set the working directory to a folder during the block."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _shell(block: Block, folder: Path) -> str:
    paths = os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", COMMANDS + block.text],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def compare(ran: Ran) -> str | None:
    """Return the difference between a page and the output, or None."""
    shown = ran.block.shown or ""
    if ran.is_whole and doctest.OutputChecker().check_output(shown, ran.printed, doctest.ELLIPSIS):
        return None
    return f"line {ran.block.line}: the page shows\n{shown}\nand the block printed\n{ran.printed}"


def with_outputs(text: str, ran: list[Ran]) -> str:
    """Return the page with the output of its blocks.

    An output on the page that contains ``...`` does not change if it matches the new output.
    """
    for each in reversed(ran):
        if each.is_whole and compare(each) is not None:
            begin, end = each.block.span
            output = f"```text\n{each.printed}```" if each.printed else ""
            text = text[:begin] + ("\n\n" if begin == end else "") + output + text[end:]
    return text
