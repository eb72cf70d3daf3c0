"""The functions and values that the tests of ``wgmma_model`` share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "evaluation" / "recordings"))
import numpy as np
from wgmma_cases import FORMATS
from wgmma_model import rounded


def encoded(element: str, integers: np.ndarray) -> np.ndarray:
    """Return small integers as bit patterns of a data type."""
    if element not in FORMATS:
        return integers.astype(np.uint8)
    return rounded(FORMATS[element], integers, np.zeros_like(integers), FORMATS[element].mantissa_bits, False) << (
        FORMATS[element].padding_bits
    )
