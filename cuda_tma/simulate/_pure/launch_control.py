"""The instruction clusterlaunchcontrol.query_cancel (PTX ISA, "clusterlaunchcontrol.query_cancel").

The response consists of four words: x, y and z of the first CTA of the canceled cluster, and 1. After a failed request,
all words are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

_SECTION = "clusterlaunchcontrol.query_cancel"
_AXES = tuple(f"get_first_ctaid::{axis}" for axis in "xyz")


@entry("clusterlaunchcontrol")
def queries(s: Spelling) -> Pure:
    if not s.flag("query_cancel"):
        s.unknown()
    s.type("b128")
    if s.flag("is_canceled"):
        s.type("pred")
        return pure(_SECTION, "pred", "b128", lambda a: _words(a)[..., 3] != 0)
    if s.flag("get_first_ctaid"):
        s.type("b32")
        s.choice("v4")
        return pure(_SECTION, "b32 b32 b32 b32", "b128", lambda a: tuple(np.moveaxis(_words(a), -1, 0)))
    axis = _AXES.index(s.choice(*_AXES))
    s.type("b32")
    return pure(_SECTION, "b32", "b128", lambda a: _words(a)[..., axis])


def _words(a: Array) -> Array:
    return np.ascontiguousarray(np.asarray(a)[..., None]).view("<u4").reshape(*np.shape(a), 4)
