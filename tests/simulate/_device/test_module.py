"""Tests of the search for a kernel by its name in a module's PTX."""

import pytest

from cuda_tma import simulate

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


@pytest.mark.parametrize(("count", "end"), [(1, "it has k0$"), (64, "k63$"), (65, "k63 and 1 more$"), (0, "has none$")])
def test_the_first_names_are_listed(count, end):
    gpu = simulate.Device()
    text = HEAD + "".join(f".visible .entry k{i}() {{ ret; }}\n" for i in range(count)) + ".func f() { ret; }\n"
    with pytest.raises(ValueError, match=f"^the PTX has no kernel other; .*{end}"):
        gpu.load(text, "other")
