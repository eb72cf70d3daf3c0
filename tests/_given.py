"""Shared by the tests of ``given`` and their neighbors."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma._errors import TensorMapError

LARGE = np.zeros((100, 700), np.int64)
LARGE_SHOWN = r"a numpy.ndarray of shape \(100, 700\) and dtype int64"


def refuses(message, call, *arguments):
    """A TensorMapError that begins so, in a few words however large the arguments are."""
    with pytest.raises(TensorMapError, match=f"^{message}") as refusal:
        call(*arguments)
    assert len(str(refusal.value)) < 400
