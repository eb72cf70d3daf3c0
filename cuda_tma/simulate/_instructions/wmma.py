"""The instructions ``wmma``, by which a warp loads, multiplies and stores matrices (``nvcuda::wmma`` in CUDA C++).

PTX does not define which thread has which element (PTX ISA 9.0, "Matrix Fragments for WMMA"). The simulator distributes
the elements evenly over all lanes, row by row. The remaining registers of a lane repeat its elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._matrix.adder import multiply_add
from .._matrix.elements import decoded
from .._matrix.formats import FORMATS
from .._memory.access import load, store
from .._ptx import Operand
from .._sync.warp_sync import when_together
from .._warps.binder import U32, Binder, dtype_of
from .._warps.code import Outcome, Step
from .._warps.lanes import WARP, Lanes, as_array, warps_of
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Warp Level Matrix Instructions: {}"
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BYTES = {"s8": 1, "u8": 1, "f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4, "f64": 8}
_INPUTS = {
    ("f32", "f16"),
    ("f16", "f16"),
    ("f32", "bf16"),
    ("f32", "tf32"),
    ("s32", "s8"),
    ("s32", "u8"),
    ("f64", "f64"),
}


@dataclass(frozen=True)
class Fragment:
    """A matrix in the registers of a warp, with `registers` registers in each lane."""

    rows: int
    columns: int
    type: str
    registers: int

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type for the bits of an element."""
        return np.dtype(f"u{_BYTES[self.type]}")

    @property
    def register(self) -> np.dtype:
        return np.dtype(f"u{max(4, _BYTES[self.type])}")

    @property
    def held(self) -> int:
        """The number of different elements in each lane."""
        return self.rows * self.columns // WARP

    @property
    def slots(self) -> int:
        return self.registers * self.register.itemsize // self.dtype.itemsize

    def place(self, slot: int, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each lane, the row and the column of the element in a slot."""
        element = lanes % WARP * self.held + slot
        return element // self.columns, element % self.columns

    def packed(self, elements: np.ndarray) -> np.ndarray:
        """Return the elements of each lane, [lanes, held], packed into registers, [registers, lanes]."""
        every = np.tile(elements.astype(self.dtype), (1, self.slots // self.held))
        return np.ascontiguousarray(every).view(self.register).T

    def unpacked(self, registers: np.ndarray) -> np.ndarray:
        """Return the elements in registers; this is the inverse of :meth:`packed`."""
        return np.ascontiguousarray(registers.T).view(self.dtype)[:, : self.held]


def _fragment(binder: Binder, matrix: str, of_type: str, registers: int) -> Fragment:
    shape = next((found for part in binder.instruction.opcode if (found := _SHAPE.fullmatch(part))), None)
    if shape is None or of_type not in _BYTES:
        raise binder.unsupported()
    m, n, k = map(int, shape.groups())
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[matrix]
    fragment = Fragment(rows, columns, of_type, registers)
    if fragment.slots % fragment.held:
        raise binder.unsupported(f"{registers} registers")
    return fragment


def _addresses(binder: Binder, fragment: Fragment, operands: tuple[Operand, ...]) -> Callable:
    """Return a function that computes, for each lane, the address of the element in a slot.

    Adjacent rows, or columns, are `stride` elements apart.
    """
    address, row_major = binder.address(operands[0]), "row" in binder.instruction.opcode
    stride = binder.read(operands[1], U32) if len(operands) > 1 else None

    def of(group: Group, lanes: Lanes, slot: int) -> np.ndarray:
        row, column = fragment.place(slot, as_array(lanes))
        packed = fragment.columns if row_major else fragment.rows
        apart = np.asarray(packed if stride is None else stride(group, lanes)).astype(np.int64)
        offset = row * apart + column if row_major else column * apart + row
        return address(group, lanes) + offset * fragment.dtype.itemsize

    return of


@instruction("wmma.load", section=SECTION.format("wmma.load"), moves=True)
def wmma_load(binder: Binder) -> Step:
    parts, pc, space = binder.instruction.opcode, binder.pc, space_of(binder.instruction.opcode)
    results, *where = binder.instruction.operands
    targets = binder.flat((results,))
    fragment = _fragment(binder, parts[2], parts[-1], len(targets))
    writes = [binder.write(target, fragment.register) for target in targets]
    at = _addresses(binder, fragment, tuple(where))

    def act(group: Group, lanes: Lanes) -> None:
        elements = [
            load(group, lanes, space, at(group, lanes, slot), fragment.dtype, 1, binder.instruction)[0]
            for slot in range(fragment.held)
        ]
        for write, values in zip(writes, fragment.packed(np.stack(elements, axis=1)), strict=True):
            write(group, lanes, values)

    return lambda group, lanes: when_together(group, lanes, pc, act)


@instruction("wmma.store", section=SECTION.format("wmma.store"), moves=True)
def wmma_store(binder: Binder) -> Step:
    parts, pc, space = binder.instruction.opcode, binder.pc, space_of(binder.instruction.opcode)
    target, source, *stride = binder.instruction.operands
    sources = binder.flat((source,))
    fragment = _fragment(binder, parts[2], parts[-1], len(sources))
    reads = [binder.read(each, fragment.register) for each in sources]
    at = _addresses(binder, fragment, (target, *stride))

    def act(group: Group, lanes: Lanes) -> None:
        size = len(as_array(lanes))
        elements = fragment.unpacked(np.stack([np.broadcast_to(read(group, lanes), (size,)) for read in reads]))
        for slot in range(fragment.held):
            values = np.ascontiguousarray(elements[:, slot])
            store(group, lanes, space, at(group, lanes, slot), [values], binder.instruction)

    return lambda group, lanes: when_together(group, lanes, pc, act)


@instruction("wmma.mma", section=SECTION.format("wmma.mma"), moves=True)
def wmma_mma(binder: Binder) -> Step:
    """Return the step that executes ``wmma.mma``, with the types ``.d.c`` for f16 and ``.d.a.b.c`` otherwise."""
    parts, pc = [p for p in binder.instruction.opcode if p != "satfinite"], binder.pc
    types = [part for part in parts if part in _BYTES]
    d_type, a_type, b_type, c_type = (types[0], "f16", "f16", types[1]) if len(types) == 2 else types
    if (d_type, a_type) not in _INPUTS or a_type != b_type or "popc" in parts:
        raise binder.unsupported()
    groups = [binder.flat((operand,)) for operand in binder.instruction.operands]
    kinds = zip("dabc", (d_type, a_type, b_type, c_type), groups, strict=True)
    d, a, b, c = (_fragment(binder, matrix, of, len(listed)) for matrix, of, listed in kinds)
    writes = [binder.write(operand, d.register) for operand in groups[0]]
    reads = [
        (fragment, [binder.read(operand, fragment.register) for operand in listed])
        for fragment, listed in zip((a, b, c), groups[1:], strict=True)
    ]
    saturate = "satfinite" in binder.instruction.opcode

    def act(group: Group, lanes: Lanes) -> None:
        whole = warps_of(lanes).whole
        count = len(as_array(whole))
        x, y, z = (
            _numbers(
                fragment, fragment.unpacked(np.stack([np.broadcast_to(r(group, whole), (count,)) for r in registers]))
            )
            for fragment, registers in reads
        )
        elements = _bits(_product(x, y, z, a_type, d_type), d_type, saturate).reshape(count, d.held)
        for write, values in zip(writes, d.packed(elements), strict=True):
            write(group, whole, values)

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act)

    return step


def _numbers(fragment: Fragment, elements: np.ndarray) -> np.ndarray:
    """Return elements as float64, [warps, rows, columns]."""
    bits = np.ascontiguousarray(elements).reshape(-1, fragment.rows, fragment.columns)
    if fragment.type in ("f32", "s32"):
        return bits.view(dtype_of(fragment.type)).astype(np.float64)
    return decoded(bits, fragment.type)


def _product(x: np.ndarray, y: np.ndarray, z: np.ndarray, of_type: str, sums: str) -> np.ndarray:
    if sums in ("s32", "f64"):
        return x @ y + z
    return multiply_add(x, np.ascontiguousarray(y.swapaxes(1, 2)), z, (of_type, of_type), sums)


def _bits(sums: np.ndarray, of_type: str, saturate: bool) -> np.ndarray:
    if of_type == "s32":
        ends = np.iinfo(np.int32)
        whole = np.clip(sums, ends.min, ends.max) if saturate else sums
        return whole.astype(np.int64).astype(np.int32).view(np.uint32)
    if of_type == "f64":
        return sums.view(np.uint64)
    encoded = FORMATS[of_type].encode(sums)
    return encoded.view(f"u{encoded.dtype.itemsize}")
