"""Tests of random sequences of exact scalar instructions, for which the simulator gives the same bits as the GPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LaunchConfig, ObjectCode, launch
from hypothesis import Phase, given, settings

from tests.support import scalar_sequences as sequences

from .conftest import compute_capability

COUNT = 5000
BATCH = 256


@pytest.fixture(scope="module")
def drawn():
    """Return sequences drawn by Hypothesis, and sequences that contain each form once."""
    found: list[sequences.Program] = []

    @settings(max_examples=COUNT, phases=[Phase.generate], database=None, deadline=None)
    @given(sequences.programs)
    def collect(program):
        found.append(program)

    collect()
    assert len(found) >= COUNT
    return found + sequences.one_of_each()


def done(call):
    error, *rest = call
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return rest[0] if rest else None


def outputs_of(batch, inputs, stream):
    """Return the GPU's output of one launch, with a CTA of one warp for each sequence."""
    kernel = ObjectCode.from_ptx(sequences.ptx_of(batch).encode()).get_kernel("sequences")
    outputs = np.zeros((len(batch), sequences.MOST_SLOTS, sequences.LANES), np.uint64)
    memory = [done(driver.cuMemAlloc(array.nbytes)) for array in (inputs, outputs)]
    try:
        for pointer, array in zip(memory, (inputs, outputs), strict=True):
            done(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
        config = LaunchConfig(grid=len(batch), block=sequences.LANES)
        launch(stream, config, kernel, *map(int, memory))
        stream.sync()
        done(driver.cuMemcpyDtoH(outputs.ctypes.data, memory[1], outputs.nbytes))
    finally:
        for pointer in memory:
            done(driver.cuMemFree(pointer))
    return outputs


def test_sequences(device, drawn, publish):
    """The test runs at least 5,000 sequences. If PTX does not define the bits of a NaN, the result may be any NaN, and
    the test publishes the number of differences. The same rule applies to a saturation that ptxas omits
    (`scalar_open`)."""
    if compute_capability() != (9, 0):
        pytest.skip("the sequences are for sm_90a")
    steps = 0
    wrong, left_open, examples = Counter(), Counter(), {}
    for start in range(0, len(drawn), BATCH):
        batch = drawn[start : start + BATCH]
        inputs = sequences.inputs_of(batch)
        outputs = outputs_of(batch, inputs, device.default_stream)
        steps += sum(len(program.picks) for program in batch)
        for mismatch in sequences.mismatches(batch, inputs, outputs):
            (left_open if mismatch.open else wrong)[mismatch.text] += 1
            if not mismatch.open:
                examples.setdefault(mismatch.text, str(mismatch))
    publish(
        f"simulate: {len(drawn)} sequences of {len(sequences.forms())} scalar forms, {steps} steps of 32 lanes: "
        f"{sum(wrong.values())} results differ; of results that PTX leaves open, {sum(left_open.values())}"
        + "".join(f"; {text.split()[0]}: {count}" for text, count in left_open.most_common(12))
    )
    shown = [f"{wrong[text]} lanes: {examples[text]}" for text in sorted(wrong)]
    assert not wrong, f"{len(wrong)} forms differ:\n" + "\n".join(shown)
