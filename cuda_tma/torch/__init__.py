"""Kernels as operators of torch, for eager mode, ``torch.compile`` and ``torch.export``, on GPUs and on the simulator.

The statement ``import cuda_tma.torch`` imports torch. The statement ``import cuda_tma`` does not import torch.
"""

from __future__ import annotations

from ._launches import Launch
from ._operator import operator
from ._outputs import like

__all__ = ["Launch", "like", "operator"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
