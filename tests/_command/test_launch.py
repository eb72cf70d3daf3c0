"""Tests of kernel arguments that the user writes on the command line of `cuda-tma run`."""

from __future__ import annotations

import pytest

from cuda_tma._command.launch import argument


@pytest.mark.parametrize(
    ("text", "number"), [("0x10", 16), ("0XfF", 255), ("-0x8", -8), ("10", 10), ("007", 7), ("-12", -12)]
)
def test_a_number_with_an_x_is_hexadecimal_and_others_are_decimal(text, number):
    assert argument(text) == number
