"""Wrong uses of tensor memory and tcgen05, each with its fixed twin (``-DFIXED``).

``public/`` contains defects of public repositories, reduced to kernels of this project. ``rules/`` contains one kernel
for each rule of the PTX ISA, and ``scales/`` contains the kernels of block scales. All kernels were written from the
rules, before the checks. The first lines of a kernel state its `source`, the `bug` and the `kind` of the finding. They
also state the number of threads (`block`) if it is not 128, and the number of CTAs of the one cluster in the grid
(`cluster`) if it is not 1. A finding may name each line that ends in ``// culprit``. If the sanitizer finds nothing in
a wrong kernel, the field `missed` of the kernel contains the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
_ENTRY = re.compile(r"// (\w+): (.*(?:\n//   +.*)*)")
PRELUDE = (_FOLDER / "prelude.cuh").read_text()


@dataclass(frozen=True, slots=True)
class WrongUse:
    """A wrong kernel.

    Attributes
    ----------
    name, text : str
        The name and the text of the file.
    source, bug : str
        The public thread or the section of the PTX ISA, and the defect.
    kinds : tuple of str
        The kinds of finding that are right.
    block, cluster : int
    missed : str
        The reason why the sanitizer does not find the defect; usually empty.
    prelude : str
        Code that precedes the text of the kernel.
    """

    name: str
    text: str
    source: str
    bug: str
    kinds: tuple[str, ...]
    block: int = 128
    cluster: int = 1
    missed: str = ""
    prelude: str = PRELUDE

    @property
    def code(self) -> str:
        """Return the CUDA C++ of the kernel, in which each line has the same number as in the file."""
        return f'{self.prelude}\n#line 1 "{self.name}.cu"\n{self.text}'

    @property
    def culprits(self) -> set[int]:
        """Return the numbers of the source lines that a finding may contain."""
        return {number for number, line in enumerate(self.text.splitlines(), 1) if line.endswith("// culprit")}


def wrong_uses(folder: str, home: Path = _FOLDER) -> list[WrongUse]:
    """Return the wrong kernels of a folder, by name; the parent folder contains their prelude."""
    prelude = (home / "prelude.cuh").read_text()
    return [_read(path, prelude) for path in sorted((home / folder).glob("*.cu"))]


def _read(path: Path, prelude: str) -> WrongUse:
    text = path.read_text()
    entries = {key: re.sub(r"\n//   +", " ", value) for key, value in _ENTRY.findall(text.split("\n\n")[0])}
    kinds = tuple(entries["kind"].split(", "))
    block, cluster = int(entries.get("block", "128")), int(entries.get("cluster", "1"))
    missed = entries.get("missed", "")
    return WrongUse(path.stem, text, entries["source"], entries["bug"], kinds, block, cluster, missed, prelude)
