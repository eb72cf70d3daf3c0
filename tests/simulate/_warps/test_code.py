"""Tests of the number of bytes of a thread's registers."""

from types import SimpleNamespace

from cuda_tma.simulate._warps.code import Code


def test_the_bytes_of_the_registers_of_a_thread():
    # The key 0 is the element size of predicates.
    of = SimpleNamespace(row_counts={0: 3, 1: 2, 4: 10, 8: 5})
    assert Code.register_bytes.fget(of) == 3 + 2 + 40 + 40
