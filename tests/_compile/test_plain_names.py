"""Tests of demangled names: the package does not demangle a name above a maximal length."""

import pytest

from cuda_tma._budget import MANGLED_CHARACTERS
from cuda_tma._compile import plain_names


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("_Z1fv", 5),
        ("_Z1fS_S_", 8 * 3),
        ("x" * MANGLED_CHARACTERS, MANGLED_CHARACTERS),
        ("x" * (MANGLED_CHARACTERS + 1), float("inf")),
    ],
)
def test_the_bound_on_the_length_of_a_name(name, longest):
    assert plain_names._longest(name) == longest


def test_a_name_that_is_too_long_remains_as_it_is():
    name = "_Z" + "x" * MANGLED_CHARACTERS
    assert plain_names.plain_name(name) == name
