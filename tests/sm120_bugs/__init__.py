"""Wrong uses of block scales and narrow elements on sm_120, each with its fixed twin (``-DFIXED``).

The kernels were written from the rules of the PTX ISA. Their first lines have the form of those in
`tests/tcgen05_bugs`. A kernel with a parameter `map` loads 128 elements of 4 bits in each row, with padding.
"""

from __future__ import annotations

from pathlib import Path

from tests.tcgen05_bugs import wrong_uses

_FOLDER = Path(__file__).parent
PRELUDE = (_FOLDER / "prelude.cuh").read_text()
WRONG_USES = wrong_uses("", _FOLDER)
