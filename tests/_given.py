"""The functions and values that the tests of error texts about wrong arguments share."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma._errors import TensorMapError

LARGE = np.zeros((100, 700), np.int64)
LARGE_SHOWN = r"a numpy.ndarray of shape \(100, 700\) and dtype int64"


def refuses(message, call, *arguments):
    """Assert that a call raises a TensorMapError whose text has a given beginning and a limited length."""
    with pytest.raises(TensorMapError, match=f"^{message}") as refusal:
        call(*arguments)
    assert len(str(refusal.value)) < 400
