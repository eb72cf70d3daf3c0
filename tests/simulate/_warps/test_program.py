"""A test that the simulator's Program object is complete when its constructor returns."""

import pytest

from cuda_tma.simulate._ptx import parse
from cuda_tma.simulate._warps.program import Program
from cuda_tma.simulate._warps.spaces import RESERVED_SHARED, SHARED_START

PTX = """.version 9.0
.target sm_90
.address_size 64
.func read() {{ .reg .b32 %r<3>; {statement} ret; }}
.visible .entry kernel() {{ .reg .b32 %r<3>; {call} ret; }}
"""
READS_RESERVED = "mov.u32 %r1, %reserved_smem_offset_1;"


@pytest.mark.parametrize(
    ("statement", "call", "first"),
    [
        ("", "call read, ();", SHARED_START),
        (READS_RESERVED, "call read, ();", RESERVED_SHARED),
        # The kernel does not call the function that reads reserved shared memory.
        (READS_RESERVED, "", SHARED_START),
        ("", READS_RESERVED, RESERVED_SHARED),
    ],
)
def test_a_kernel_may_access_reserved_shared_memory_by_its_address(statement, call, first):
    module = parse(PTX.format(statement=statement, call=call))
    assert Program(module, "kernel", {}).shared_first == first
