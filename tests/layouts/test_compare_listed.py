"""Tests of lists of numbers in comparisons of layouts, which end after a number of items."""

import pytest

from cuda_tma.layouts import _compare, _exchange


@pytest.mark.parametrize(("module", "between", "end"), [(_compare, ", ", ", ..."), (_exchange, " ", " ...")])
def test_a_list_ends_after_its_longest_length(module, between, end):
    most = module._MOST_LISTED
    whole = between.join(map(str, range(most)))
    assert module._listed(tuple(range(most))) == whole
    assert module._listed(tuple(range(most + 1))) == whole + end
    assert module._listed((7,)) == "7"
