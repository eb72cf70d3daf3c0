"""Tests of the deadline of a watchdog as a macro of the compilation."""

import re

import numpy as np
import pytest

from cuda_tma import _compile_kernel
from cuda_tma._compile_kernel import _DEADLINE, _LONGEST_MS, _with_watchdog


@pytest.mark.parametrize("given", [1, 500, np.int32(7), _LONGEST_MS])
def test_a_deadline_is_a_macro(given):
    assert _with_watchdog(None, given) == {_DEADLINE: int(given)}
    assert _with_watchdog({"N": 3}, given) == {"N": 3, _DEADLINE: int(given)}


def test_without_a_deadline_the_macros_stay():
    defines = {"N": 3, _DEADLINE: 7}
    assert _with_watchdog(defines, None) is defines and _with_watchdog(None, None) is None


@pytest.mark.parametrize("given", [0, -1, _LONGEST_MS + 1, True, False, 1.5, "500"])
def test_a_value_that_no_deadline_has(given):
    with pytest.raises(ValueError, match=re.escape(f"watchdog_ms={given!r}; pass milliseconds, 1 to {_LONGEST_MS}")):
        _with_watchdog(None, given)


def test_two_deadlines():
    message = f"watchdog_ms=5 and defines['{_DEADLINE}']=7 set the same macro; pass only watchdog_ms"
    with pytest.raises(ValueError, match=re.escape(message)):
        _with_watchdog({_DEADLINE: 7}, 5)
    assert _compile_kernel._with_watchdog({}, 5) == {_DEADLINE: 5}
