"""Tests of the content of the package's two error classes, and of the errors' transfer between processes."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from cuda_tma import check, emulate
from cuda_tma._errors import TensorMapError, TensorMapFault
from cuda_tma.rules._explain import refusal
from tests.support.descriptors import LEGAL


def again(error):
    """Return one copy of the error from each method of copying."""
    protocols = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    return [*protocols, copy.copy(error), copy.deepcopy(error)]


def test_a_fault_contains_the_error_of_the_hardware():
    fault = TensorMapFault("column 1 is not aligned", "CUDA_ERROR_ILLEGAL_INSTRUCTION")
    assert str(fault) == "CUDA_ERROR_ILLEGAL_INSTRUCTION: column 1 is not aligned"
    assert fault.cuda_error == "CUDA_ERROR_ILLEGAL_INSTRUCTION" and isinstance(fault, RuntimeError)


class NamedFault(TensorMapFault):
    pass


@pytest.mark.parametrize("kind", [TensorMapFault, NamedFault])
def test_a_fault_is_copied_and_pickled(kind):
    fault = kind("column 1 is not aligned", "CUDA_ERROR_X")
    fault.where = "line 3"
    for other in again(fault):
        assert type(other) is kind and str(other) == str(fault) and other.args == fault.args
        assert (other.cuda_error, other.where) == ("CUDA_ERROR_X", "line 3")
        assert [str(third) for third in again(other)] == [str(fault)] * len(again(other))


def test_a_refusal_is_copied_and_pickled_with_its_violations():
    wrong = replace(LEGAL, global_strides=(8, 12288), l2_promotion=9)
    error = refusal(wrong, check(wrong))
    assert len(error.violations) == 2 and isinstance(error, ValueError)
    for other in again(error):
        assert type(other) is TensorMapError and str(other) == str(error) and other.violations == error.violations


def test_violations_are_a_tuple():
    (violation,) = check(replace(LEGAL, l2_promotion=9))
    assert TensorMapError("no", [violation]).violations == (violation,) and TensorMapError("no").violations == ()


def load(column):
    return emulate.load(replace(LEGAL, global_address=0), np.zeros(1 << 19, np.uint8), (column, 0, 0)).tx_bytes


def test_a_process_pool_passes_a_fault_to_its_caller():
    """A process pool that cannot read a worker's error would wait forever or break."""
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(load, 4).result(timeout=60) == 4096
        with pytest.raises(TensorMapFault, match="^CUDA_ERROR_ILLEGAL_INSTRUCTION: ") as fault:
            pool.submit(load, 1).result(timeout=60)
        assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_INSTRUCTION"
