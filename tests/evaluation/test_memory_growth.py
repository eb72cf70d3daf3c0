"""Tests of the analysis of memory growth in stress_threads.py, which attributes growth to the package or to other
libraries."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "evaluation" / "threads"))

from memory_growth import Alone, grown_alone, others_bytes

# The values were recorded on an H200 with driver 580, cuda.core 1.2.0 and eight threads, which ran for 15 s each.
RECORDED = {
    "torch_alone": Alone(97_383, 8 << 10), "core_graph_alone": Alone(64_215, 13_048 << 10),
    "create": Alone(119_001, 0), "capture": Alone(29_243, 6_060 << 10),
}  # fmt: skip


def test_growth_of_cuda_core_is_not_ours():
    assert grown_alone(RECORDED) == []
    assert others_bytes({"capture": 375_384, "create": 375_434}, RECORDED) >> 20 == 74


def test_growing_works_are_named():
    leaks = RECORDED | {"create": Alone(119_001, 119_001 * 64), "capture": Alone(29_243, 29_243 * 300)}
    assert grown_alone(leaks) == [
        "create alone left 64.0 bytes a work, which other libraries do not explain",
        "capture alone left 91.9 bytes a work, which other libraries do not explain",
    ]
    # Without a measurement of other libraries, the test counts all growth as growth of the package.
    assert grown_alone({"capture": Alone(29_243, 6_060 << 10)}) != []
    assert others_bytes({"capture": 1000}, {}) == 0
