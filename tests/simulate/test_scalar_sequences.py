"""Tests of the scalar instruction sequences for GPU tests. ptxas accepts each form, and a report of a wrong result
contains the instruction."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import find

from cuda_tma import simulate
from tests.support import scalar_sequences as sequences
from tests.support.scalar_forms import forms


def run(programs, inputs):
    """Return the output that a GPU would store according to the simulator's table of instructions."""
    outputs = np.zeros((len(programs), sequences.MOST_SLOTS, sequences.LANES), np.uint64)
    for program, given, stored in zip(programs, inputs, outputs, strict=True):
        held = {
            (pool, number): given[sequences.POOLS.index(pool) * sequences.PER_POOL + number]
            for pool in sequences.POOLS
            for number in range(sequences.PER_POOL)
        }
        for each in sequences.placed(program):
            found = sequences.computed(each.step, {letter: held[place] for letter, place in each.reads.items()})
            for letter, place in each.writes.items():
                held[place] = stored[each.slots[letter]] = found[letter]
    return outputs


def test_forms_are_many_and_each_once():
    assert len(forms()) == len({*forms()}) > 1100


def test_a_right_result_passes_and_a_wrong_one_is_named():
    batch = sequences.one_of_each()
    inputs = sequences.inputs_of(batch)
    outputs = run(batch, inputs)
    assert not [*sequences.mismatches(batch, inputs, outputs)]
    place = forms().index("add.rn.f32 d, a, b")
    outputs[place, 0, 3] ^= 1
    (mismatch,) = sequences.mismatches(batch, inputs, outputs)
    assert mismatch.found ^ mismatch.expected == 1 and not mismatch.open
    assert str(mismatch).startswith("add.rn.f32 d, a, b: of 0x")


def test_a_form_that_fails_does_not_stop_the_others(monkeypatch):
    batch = sequences.one_of_each()[:3]
    inputs = sequences.inputs_of(batch)
    outputs = run(batch, inputs)
    outputs[2] += 1
    right = sequences.computed

    def computed(step, sources):
        return right(step, sources) if step.text != forms()[0] else 1 // 0

    monkeypatch.setattr(sequences, "computed", computed)
    first, *others = sequences.mismatches(batch, inputs, outputs)
    assert str(first) == f"{forms()[0]}: ZeroDivisionError('integer division or modulo by zero')"
    assert {each.text for each in others} == {forms()[2]}


def test_a_saturation_that_ptxas_loses_is_open():
    """A missing saturation counts as an exception only for the recorded operands and value, and only next to a
    product."""
    product, saturated = (forms().index(text) for text in ("mul.lo.s32 d, a, b", "mad.hi.sat.s32 d, a, b, c"))
    with_product = ((product, (0, 1, 0, 0, 0)), (saturated, (1, 0, 1, 0, 0)))
    another = ((product, (0, 2, 0, 0, 0)), (saturated, (1, 0, 1, 0, 0)))
    batch = [sequences.Program(picks, 697, 16) for picks in (with_product, another, with_product, with_product[1:])]
    inputs = sequences.inputs_of(batch)
    first, second = (sequences.POOLS.index("b32") * sequences.PER_POOL + number for number in (0, 1))
    inputs[:, first, 0], inputs[:, second, 0] = 0x243A2121, 0x80C000C1
    outputs = run(batch, inputs)
    for row, slot, found in ((0, 1, 0x6EBE1BE4), (1, 1, 0x6EBE1BE4), (2, 1, 0x6EBE1BE5), (3, 0, 0x6EBE1BE4)):
        assert outputs[row, slot, 0] == 0x80000000
        outputs[row, slot, 0] = found
    assert [mismatch.open for mismatch in sequences.mismatches(batch, inputs, outputs)] == [True, False, False, False]


def test_only_nan_of_f64_and_of_signs_is_open():
    batch = sequences.one_of_each()
    inputs = sequences.inputs_of(batch)
    outputs = run(batch, inputs)
    for text, nan in (
        ("add.rn.f64 d, a, b", 0x7FF8 << 48),
        ("add.rn.f32 d, a, b", 0x7FC00000),
        ("neg.f16 d, a", 0x7E00),
    ):
        place = forms().index(text)
        lanes = outputs[place, 0]
        (widest,) = sequences.steps()[place].instructions[0][1].results
        is_nan = np.isnan(lanes.astype(f"u{widest.itemsize}").view(f"f{widest.itemsize}"))
        assert is_nan.any()
        lanes[is_nan] = nan + 1
    found = {mismatch.text: mismatch.open for mismatch in sequences.mismatches(batch, inputs, outputs)}
    assert found == {"add.rn.f64 d, a, b": True, "add.rn.f32 d, a, b": False, "neg.f16 d, a": True}


def test_later_steps_read_earlier_results():
    program = find(
        sequences.programs,
        lambda program: any(
            place[1] >= sequences.PER_POOL for each in sequences.placed(program) for place in each.reads.values()
        ),
    )
    inputs = sequences.inputs_of([program])
    assert not [*sequences.mismatches([program], inputs, run([program], inputs))]


def test_the_machine_agrees_with_the_table():
    """For some instruction forms with each kind of operand, the simulated machine gives the same results as the
    table."""
    batch = [*sequences.one_of_each()[::8], *map(sequences.program_of, range(60))]
    inputs = sequences.inputs_of(batch)
    outputs = np.zeros((len(batch), sequences.MOST_SLOTS, sequences.LANES), np.uint64)
    gpu = simulate.Device(multiprocessor_count=len(batch))
    config = simulate.Config(grid=len(batch), block=sequences.LANES)
    gpu.launch(config, gpu.load(sequences.ptx_of(batch), "sequences"), inputs, outputs).raise_for_errors()
    assert not [*map(str, sequences.mismatches(batch, inputs, outputs))]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_ptxas_takes_every_form(tmp_path):
    source = tmp_path / "sequences.ptx"
    source.write_text(sequences.ptx_of(sequences.one_of_each()))
    command = ["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "sequences.cubin")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
