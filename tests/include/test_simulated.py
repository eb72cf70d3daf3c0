"""Kernels that tests/gpu runs on hardware, on the simulator: the same results, and no findings.

A test here has the name of the test there.
"""

import pytest

from tests.gpu import test_header_cluster, test_header_order, test_header_replace, test_header_scope
from tests.support.simulated_machine import Machine

THERE = (test_header_cluster, test_header_order, test_header_replace, test_header_scope)
# These need two devices, or two kernels that are resident at once; the third takes 5 s here, and shows nothing more.
ON_HARDWARE_ALONE = {"test_a_flag_between_gpus", "test_dependent_grids", "test_tensor_map_written_by_another_cta"}


@pytest.fixture
def machine():
    return Machine()


globals().update(
    (name, value)
    for module in THERE
    for name, value in vars(module).items()
    if name.startswith("test_") and callable(value) and name not in ON_HARDWARE_ALONE
)
