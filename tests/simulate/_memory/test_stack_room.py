"""Tests of the limit on the local memory of all resident threads."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma.simulate._memory import memory
from cuda_tma.simulate._memory.global_memory import Buffer
from cuda_tma.simulate._memory.memory import Memory
from cuda_tma.simulate._warps.faults import Fault

LANES = 32


@pytest.mark.parametrize(("size_bytes", "fits"), [(4096, True), (4097, False)])
def test_the_limit_holds_for_all_threads_together(monkeypatch, size_bytes, fits):
    monkeypatch.setattr(memory, "LOCAL_BYTES", LANES * 4096)
    of_each = SimpleNamespace(
        _local=Buffer(np.zeros(LANES * 1024, np.uint8)), _stack_bytes=1024, _geometry=SimpleNamespace(lanes=LANES)
    )
    if fits:
        Memory.reserve_stack(of_each, size_bytes)
        assert (of_each._stack_bytes, len(of_each._local.bytes)) == (4096, LANES * 4096)
        return
    with pytest.raises(Fault, match="32 threads at the same time need 262144 bytes of local memory"):
        Memory.reserve_stack(of_each, size_bytes)
