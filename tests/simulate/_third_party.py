"""The functions and values that several tests of third-party kernels share."""

from __future__ import annotations

import sysconfig
from pathlib import Path

ROOTS = (
    Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "include"),
    Path("/usr/local/cuda/include"),
)
INCLUDES = [path for root in ROOTS for path in (root, root / "cccl") if (path / "cuda" / "ptx").exists()]
TOOLKIT = [root for root in ROOTS if (root / "cooperative_groups.h").exists()]
