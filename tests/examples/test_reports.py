"""A test that the reports of the examples equal the reports in ``tests/data/reports``."""

import pytest

from tests.support.report_snapshots import EXAMPLES, of_example, on_disk

pytest.importorskip("torch")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_is_as_blessed(name):
    assert of_example(name) == on_disk()[f"examples/{name}"], "if the difference is intended: make bless"


def test_every_example_that_the_simulator_runs_has_a_report():
    from tests.support.simulated_examples import SIZES

    assert {*EXAMPLES} == SIZES.keys()
