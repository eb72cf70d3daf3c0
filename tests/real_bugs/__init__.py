"""Bugs of public repositories, each reduced to a kernel of this project. The option ``-DFIXED`` compiles the fixed
kernel.

A kernel's first lines describe the test: `thread` (repository and number of the public discussion), `bug`, `fix`,
`kind` and `severity` of the finding; `grid`, `block`, `cluster`, `tiles`, `box` and `order` of the launch. The line of
the expected finding ends in ``// culprit``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ENTRY = re.compile(r"// (\w+): (.*(?:\n//   +.*)*)")


@dataclass(frozen=True, slots=True)
class RealBug:
    """A kernel with a bug of a public repository, and the expected finding.

    Attributes
    ----------
    name : str
        The name of its file.
    source : str thread : str The public discussion, as ``owner/name#number``. bug, fix : str
        The defect, and its fix.
    kind, severity : str
        The kind and severity of the finding.
    grid, block, cluster, tiles : int
        The launch; `tiles` is an argument of the kernel.
    box : tuple of int
        The box of both maps, in tensor order.
    order : str
        The order of asynchronous copies in which the sanitizer reports the finding.
    """

    name: str
    source: str
    thread: str
    bug: str
    fix: str
    kind: str
    severity: str = "error"
    grid: int = 1
    block: int = 128
    cluster: int = 1
    tiles: int = 1
    box: tuple[int, ...] = (128,)
    order: str = "early"

    @property
    def culprit(self) -> int:
        """Return the number of the source line with the mark ``// culprit``."""
        (line,) = [number for number, text in enumerate(self.source.split("\n"), 1) if "// culprit" in text]
        return line


def real_bugs() -> list[RealBug]:
    """Return the bugs of all kernels in the folder, by name."""
    return [_read(path) for path in sorted(Path(__file__).parent.glob("*.cu"))]


def _read(path: Path) -> RealBug:
    source = path.read_text()
    entries = {key: re.sub(r"\n//   +", " ", value) for key, value in _ENTRY.findall(source.split("\n\n")[0])}
    numbers = {key: int(entries.pop(key)) for key in ("grid", "block", "cluster", "tiles") if key in entries}
    box = tuple(map(int, entries.pop("box", "128").split()))
    return RealBug(path.stem, source, **entries, **numbers, box=box)
