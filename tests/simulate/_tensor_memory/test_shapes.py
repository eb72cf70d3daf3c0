"""Tests of tcgen05.ld and tcgen05.st in each shape of the PTX ISA, and with two columns in a register."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._ptx import parse
from cuda_tma.simulate._tensor_memory.shapes import shape_of

from ._kernels import device

# Each function returns the lane and the column of register r of thread t.
PLACES = {
    "32x32b": (1, 1, lambda r, t: (t, r)),
    "16x64b": (1, 2, lambda r, t: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r)),
    "16x128b": (2, 4, lambda r, t: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2))),
    "16x256b": (4, 8, lambda r, t: (t // 4 + 8 * (r // 2 % 2), t % 4 * 2 + r % 2 + 8 * (r // 4))),
}
COUNTS = [(name, count) for name, (registers, *_) in PLACES.items() for count in (1, 2, 8, 128 // registers)]


def shape(opcode: str, operands: str):
    names = ", ".join(f"%r{i}" for i in range(128))
    text = f".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ .reg .b32 {names};\n"
    module = parse(f"{text}{opcode} {operands};\nret; }}")
    return shape_of(module.functions["k"].instructions[0])


def listed(count: int) -> str:
    return "{" + ", ".join(f"%r{i}" for i in range(count)) + "}"


@pytest.mark.parametrize(("name", "count"), COUNTS)
@pytest.mark.parametrize("packs", [False, True])
def test_the_cell_of_each_register(name, count, packs):
    registers, columns, place = PLACES[name]
    more = ".pack::16b" if packs else ""
    found = shape(f"tcgen05.ld.sync.aligned.{name}.x{count}{more}.b32", f"{listed(registers * count)}, [%r0]")
    assert found.registers == registers * count
    assert found.spans == ((0, columns * count * (1 + packs)),)
    lane, column = place(*np.ogrid[: registers * count, :32])
    assert (found.lanes == lane).all()
    assert (found.columns == column * (1 + packs)).all()


def test_the_second_half_of_a_warp_has_other_columns_of_16_lanes():
    found = shape("tcgen05.ld.sync.aligned.16x32bx2.x2.b32", f"{listed(2)}, [%r0], 64")
    thread, register = np.arange(32), np.arange(2)[:, None]
    assert (found.lanes == thread % 16).all()
    assert (found.columns == register + 64 * (thread // 16)).all()
    assert found.spans == ((0, 2), (64, 2))


@pytest.mark.parametrize("name", [*PLACES])
@pytest.mark.parametrize("packs", [False, True])
def test_a_load_reads_the_data_of_a_store(name, packs):
    registers = PLACES[name][0]
    store = shape(
        f"tcgen05.st.sync.aligned.{name}.x4{'.unpack::16b' if packs else ''}.b32", f"[%r0], {listed(4 * registers)}"
    )
    cells = np.zeros((512, 128), np.uint32)
    values = np.random.default_rng(3).integers(0, 1 << 32, (4 * registers, 32), np.uint32)
    store.write(cells, 40, 32, values)
    assert np.array_equal(store.read(cells, 40, 32), values)
    written = np.argwhere(cells)
    assert written[:, 0].min() >= 40
    assert written[:, 0].max() < 40 + store.spans[0][1]
    assert {*np.unique(written[:, 1])} <= {*range(32, 32 + store.lane_count)}
    assert not packs or cells.max() < 1 << 16


@pytest.mark.parametrize("opcode", ["32x32b.x256", "8x32b.x1", "16x256b.x64"])
def test_another_shape_is_not_known(opcode):
    with pytest.raises(simulate.UnsupportedInstruction):
        shape(f"tcgen05.ld.sync.aligned.{opcode}.b32", f"{listed(1)}, [%r0]")


def test_the_number_of_registers_is_that_of_the_shape():
    text = ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() { .reg .b32 %a, %b;\n"
    with pytest.raises(simulate.UnsupportedInstruction, match="of 4 registers with 1"):
        device().load(f"{text}tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%a}}, [%b];\nret; }}", "k")
