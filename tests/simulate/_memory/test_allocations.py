"""Tests of accesses to a GPU's memory for watched launches, in which an error of the driver becomes an exception."""

import pytest
from cuda.bindings import driver

from cuda_tma.simulate._memory import allocations


def test_an_error_of_the_driver_is_raised():
    allocations._require((driver.CUresult.CUDA_SUCCESS, 7))
    with pytest.raises(
        RuntimeError, match="the driver returned CUDA_ERROR_ILLEGAL_ADDRESS; check whether an earlier launch"
    ):
        allocations._require((driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,))
