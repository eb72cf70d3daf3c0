"""Tests on the simulator with kernels that tests/gpu runs on hardware. The results are equal, and the sanitizer has no
finding. A test for the simulator has the same name as the corresponding test in tests/gpu.
"""

import pytest

from tests.gpu import test_header_cluster, test_header_order, test_header_replace, test_header_scope
from tests.support.simulated_machine import Machine

THERE = (test_header_cluster, test_header_order, test_header_replace, test_header_scope)
# Two of the tests need two devices, or two kernels that run at the same time. The test of a tensor map takes 5 s on the
# simulator, and tests no further property.
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
