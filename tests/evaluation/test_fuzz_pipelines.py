"""Tests of random pipelines: the sanitizer has a finding if and only if a necessary statement is missing.

`make fuzz` runs a thousand pipelines (`evaluation/fuzzing/fuzz_pipelines.py`).
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.pipelines import SCHEDULES, Pipeline, faults_of, pipelines, run

SOME = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)  # fmt: skip


@settings(SOME, max_examples=20)
@given(pipelines())
def test_right_kernels_have_no_findings(pipeline):
    # The skipped pipelines are correct, and each takes half a minute.
    assume(not (pipeline.handoff == "CHAIN" and pipeline.producer == "ST_ASYNC"))
    outcome = run(pipeline)
    assert outcome.is_clean, outcome


@settings(SOME, max_examples=15)
@given(pipelines(), st.data())
def test_an_absent_statement_is_found(pipeline, data):
    faults = [fault for fault in faults_of(pipeline) if fault not in ("INIT_FENCE", "INIT_BARRIER")]
    assume(faults)
    fault = data.draw(st.sampled_from(faults))
    assert run(pipeline, fault, until_error=True).errors, fault


def test_every_statement_has_a_pipeline_in_which_it_matters():
    """The test's pipelines contain faults that random pipelines rarely contain."""
    shapes = {
        "WRITE_FENCE": Pipeline(producer="STORES", consumer="STORE"),
        "COPY_WAIT": Pipeline(producer="CP_ASYNC", groups=True),
        "RELEASE_SCOPE": Pipeline(multicast=True, ctas=2, grid=2, slices=2, items=4),
        "ACQUIRE_SCOPE": Pipeline(finish="PEER_STORES", ctas=2, grid=2),
        "CLUSTER_END": Pipeline(finish="PEER_LOADS", ctas=2, grid=2),
        "HANDOFF_PROXY": Pipeline(handoff="LAST_LOADED", grid=2),
    }
    for fault, shape in shapes.items():
        assert fault in faults_of(shape)
        assert run(shape, fault, SCHEDULES[:1]).errors, fault
