"""Write ``docs/sanitizer.md``: each kind of finding by a kernel that has it, what the simulator says, and the mend.

What stands around that is in ``sanitizer_page.md``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from finding_kernels import KERNELS, LAUNCHES

from cuda_tma import simulate
from cuda_tma._command.excerpts import described
from cuda_tma._command.sources import Sources

_MOST_STEPS = 10_000  # a kernel of these ends before, or never


def page() -> str:
    """The whole of it."""
    parts = {"{kinds}": "\n".join(map(_section, simulate.KINDS)), "{shown}": _shown("missing-proxy-fence")}
    text = Path(__file__).with_name("sanitizer_page.md").read_text()
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], text)


def lines_of(kind: str, side: str) -> str:
    """A kernel's source: `side` is ``"-"``, as it is wrong, or ``"+"``, mended."""
    return "".join(line[1:] for line in KERNELS[kind].splitlines(keepends=True) if line[0] in (" ", side))


@cache
def reported(kind: str, side: str) -> simulate.Report:
    """What a launch of it tells."""
    return launched(kind, lines_of(kind, side), simulate.Device())


def launched(kind: str, source: str | Path, gpu: simulate.Device) -> simulate.Report:
    """What a launch of a kernel in its place tells."""
    kernel = gpu.compile(source, kind.replace("-", "_"))
    tiles, values = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    config = simulate.Config(**{"grid": 1, "block": 32, **LAUNCHES.get(kind, {})})
    return gpu.launch(config, kernel, gpu.create_tensor_map(tiles, box_dim=(32,)), values, max_steps=_MOST_STEPS)


def _section(kind: str) -> str:
    said = "\n".join(_without_folders(str(finding)) for finding in reported(kind, "-").findings[:1])
    changed = "\n".join(line for line in KERNELS[kind].splitlines() if line[0] in "+-")
    text = simulate.KINDS[kind]
    return _SECTION.format(kind=kind, text=text[0].upper() + text[1:], bad=lines_of(kind, "-"), said=said, mend=changed)


def _shown(kind: str) -> str:
    """What ``cuda-tma sanitize`` shows of a kernel, with lines of its source."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(lines_of(kind, "-"))
        (finding, *_) = launched(kind, path, simulate.Device()).findings
        return _without_folders("".join(text for text, _ in described(finding, Sources(path))))


def _without_folders(text: str) -> str:
    """Paths as names, and of headers no lines: the page is the same wherever it is written, and as they grow."""
    return re.sub(r"(\.cuh):\d+", r"\1", re.sub(r"\S*/(\w+\.cuh?:)", r"\1", text))


_SECTION = """### {kind}

{text}.

```cpp
{bad}```

```text
{said}
```

The fix:

```diff
{mend}
```
"""

if __name__ == "__main__":
    (Path(__file__).parent.parent / "docs" / "sanitizer.md").write_text(page())
