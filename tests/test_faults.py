"""What goes wrong on a GPU, as recorded there, and what is said of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import record_faults
from fault_cases import CASES, HOST
from fault_kernels import GIVEN, SOURCE

KERNEL = re.compile(r'extern "C" __global__ (?:__cluster_dims__\(2\) )?void (\w+)')


def test_every_case_can_be_run():
    """Its kernel is there and takes what it is given, its map has bytes; no kernel is there for nothing."""
    kernels = {case.kernel for case in CASES.values()}
    of_host = {name for name in kernels if name.startswith(HOST)}
    assert of_host == set(record_faults._HOST)
    assert set(record_faults.BLOCKING) <= set(CASES)
    assert kernels - of_host | {"healthy"} == set(KERNEL.findall(SOURCE))
    for case in CASES.values():
        assert set(case.arguments) <= {*GIVEN, "address_offset"}, case.name
        assert len(record_faults.raw_map(case, 4096)) == 128, case.name


def test_the_kernels_compile():
    assert b"cluster_multicast" in record_faults.compiled()
