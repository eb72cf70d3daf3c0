"""Write ``docs/sanitizer.md``, which shows, for each kind of finding, a kernel, the report of the simulator, and the
fix.

The file ``sanitizer_page.md`` contains the rest of the page.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from finding_kernels import CAPABILITIES, KERNELS, LAUNCHES

from cuda_tma import simulate
from cuda_tma._command.excerpts import described
from cuda_tma._command.sources import Sources

_MOST_STEPS = 10_000  # Every kernel on the page either ends within 10,000 steps or never ends.


def page() -> str:
    """Return the whole text of the page."""
    parts = {"{kinds}": "\n".join(map(_section, KERNELS)), "{shown}": _shown("missing-proxy-fence")}
    text = Path(__file__).with_name("sanitizer_page.md").read_text()
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], text)


def lines_of(kind: str, side: str) -> str:
    """Return the source of a kernel: the wrong kernel if `side` is ``"-"``, and the fixed kernel if `side` is
    ``"+"``.
    """
    return "".join(line[1:] for line in KERNELS[kind].splitlines(keepends=True) if line[0] in (" ", side))


@cache
def reported(kind: str, side: str) -> simulate.Report:
    """Return the report of the launch of a kernel."""
    return launched(kind, lines_of(kind, side), simulate.Device(CAPABILITIES.get(kind, "9.0")))


def launched(kind: str, source: str | Path, gpu: simulate.Device) -> simulate.Report:
    """Launch a source in place of a kernel, and return the report."""
    kernel = gpu.compile(source, kind.replace("-", "_"))
    tiles, values = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    config = simulate.Config(**{"grid": 1, "block": 32, **LAUNCHES.get(kind, {})})
    return gpu.launch(config, kernel, gpu.create_tensor_map(tiles, box_dim=(32,)), values, max_steps=_MOST_STEPS)


def _section(kind: str) -> str:
    said = "\n".join(_without_folders(str(finding)) for finding in reported(kind, "-").findings[:1])
    changed = "\n".join(line for line in KERNELS[kind].splitlines() if line[0] in "+-")
    text = simulate.KINDS[kind]
    return _SECTION.format(kind=kind, text=text[0].upper() + text[1:], bad=lines_of(kind, "-"), said=said, fix=changed)


def _shown(kind: str) -> str:
    """Return the output of ``cuda-tma sanitize`` for a kernel, with lines of the kernel's source."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(lines_of(kind, "-"))
        (finding, *_) = launched(kind, path, simulate.Device()).findings
        return _without_folders("".join(text for text, _ in described(finding, Sources(path))))


def _without_folders(text: str) -> str:
    """Replace paths by names, and remove line numbers of headers.

    The page then depends on neither the folder nor the length of the headers.
    """
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
{fix}
```
"""

if __name__ == "__main__":
    (Path(__file__).parent.parent / "docs" / "sanitizer.md").write_text(page())
