"""Wrong uses of tensor memory and tcgen05, each with its fixed twin (``-DFIXED``).

``public/`` has defects of public repositories, reduced to kernels of our own; ``rules/`` has one kernel for a rule of
the PTX ISA. Both were written from the rules, before the checks. The first lines of a kernel state its `source`, the
`bug`, the `kind` of the finding and, if they are not 128 and 1, the number of threads (`block`) and of CTAs in the
cluster, which is the grid (`cluster`). A finding may name each line that ends in ``// culprit``.
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
        Of its file.
    source, bug : str
        The public thread or the section of the PTX ISA; the defect.
    kinds : tuple of str
        Kinds of finding, each of which fits.
    block, cluster : int
    """

    name: str
    text: str
    source: str
    bug: str
    kinds: tuple[str, ...]
    block: int = 128
    cluster: int = 1

    @property
    def code(self) -> str:
        """CUDA C++ whose lines are those of the file."""
        return f'{PRELUDE}\n#line 1 "{self.name}.cu"\n{self.text}'

    @property
    def culprits(self) -> set[int]:
        """The lines that a finding may name."""
        return {number for number, line in enumerate(self.text.splitlines(), 1) if line.endswith("// culprit")}


def wrong_uses(folder: str) -> list[WrongUse]:
    """Return the kernels of a folder, by name."""
    return [_read(path) for path in sorted((_FOLDER / folder).glob("*.cu"))]


def _read(path: Path) -> WrongUse:
    text = path.read_text()
    entries = {key: re.sub(r"\n//   +", " ", value) for key, value in _ENTRY.findall(text.split("\n\n")[0])}
    kinds = tuple(entries["kind"].split(", "))
    block, cluster = int(entries.get("block", "128")), int(entries.get("cluster", "1"))
    return WrongUse(path.stem, text, entries["source"], entries["bug"], kinds, block, cluster)
