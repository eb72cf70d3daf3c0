"""The instructions ``wgmma``: products of matrices in shared memory, which the four warps of a warpgroup compute.

Products take effect at once in every order of the launch. The reason is that PTX, unlike machine code, may move
accumulators between registers before the wait (observed: PTX of examples/grouped_gemm.py). The module `flights.py`
checks all other accesses to these registers before the wait. An observer checks that operands in shared memory do not
change before the wait.
"""

from __future__ import annotations

import numpy as np

from .._copies.copy import Issue
from .._matrix import Wgmma, wgmma_of
from .._matrix.descriptor import PlacedPieces, placed_pieces
from .._ptx import Immediate, Operand, Register, Vector
from .._sync.warp_sync import when_together
from .._warps.binder import BOOL, U32, U64, Binder, Read
from .._warps.code import Outcome, Step
from .._warps.events import CommitGroup, ProductFence, WaitGroup
from .._warps.faults import Fault
from .._warps.flights import on_order, on_product
from .._warps.lanes import WARPGROUP, Lanes, as_array, each, selected
from .._warps.registers import VIEW
from .._warps.spaces import SHARED_START
from ._table import Group, instruction

SECTION = "Asynchronous Warpgroup Level Matrix Instructions: {}"
# NumPy has no integer type of 16 bytes, so complex128 is the type of an item of 16 bytes.
_PIECE = np.dtype(np.complex128)


@instruction("wgmma.mma_async", section=SECTION.format("wgmma.mma_async"), moves=True)
def mma_async(binder: Binder) -> Step:
    pc = binder.pc
    act = on_product(binder.code, pc, Product(binder, wgmma_of(binder.instruction)).execute)
    return lambda group, lanes: when_together(group, lanes, pc, act, width=WARPGROUP)


class Product:
    """One ``wgmma.mma_async`` instruction of a function."""

    def __init__(self, binder: Binder, wgmma: Wgmma):
        self._binder, self._wgmma = binder, wgmma
        self._a = binder.read(wgmma.a, U64) if not isinstance(wgmma.a, Vector) else None
        self._a_rows = _rows(binder, wgmma.a.elements if isinstance(wgmma.a, Vector) else ())
        self._b, self._scale = binder.read(wgmma.b, U64), binder.read(wgmma.scale_d, BOOL)
        self._d_rows, self._d_view = _rows(binder, wgmma.d), VIEW[np.dtype(wgmma.sums.register_dtype)]

    def execute(self, group: Group, lanes: Lanes) -> None:
        """Multiply the matrices of all warpgroups at once, with and without the previous accumulators."""
        firsts = as_array(lanes)[::WARPGROUP]
        scales = each(self._scale(group, selected(firsts)), len(firsts))
        if len(firsts) == 1:
            self._multiply(group, firsts, bool(scales[0]))
            return
        for scale in (False, True):
            if (some := firsts[scales == scale]).size:
                self._multiply(group, some, scale)

    def _multiply(self, group: Group, firsts: np.ndarray, scale: bool) -> None:
        """Compute D = A * B + D for the warpgroups that begin at lanes `firsts`."""
        wgmma = self._wgmma
        issues = [Issue(group.parts, first, self._binder.instruction) for first in firsts.tolist()]
        if self._a is None:
            registers = group.views[VIEW[U32]]
            fragments = registers.reshape(len(registers), -1, WARPGROUP)
            left = fragments[np.ix_(self._a_rows, firsts // WARPGROUP)].reshape(4, -1)
        else:
            matrices, a_of = self._matrices(group, issues, firsts, self._a, 64, wgmma.a_mn_major)
            left = matrices[a_of]
        right, b_of = self._matrices(group, issues, firsts, self._b, wgmma.n, wgmma.b_mn_major)
        wgmma.multiply_in(group.views[self._d_view], self._d_rows, firsts, left, right, b_of, scale)

    def _matrices(
        self, group: Group, issues: list[Issue], firsts: np.ndarray, read: Read, length: int, mn_major: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices of descriptors, uint8 [matrices, ..., 16], and the index of each warpgroup's matrix."""
        parts = group.parts
        ctas = parts.geometry.cta_of_lane[firsts].tolist()
        named = [*zip(ctas, each(read(group, selected(firsts)), len(firsts)).tolist(), strict=True)]
        places = {name: i for i, name in enumerate(dict.fromkeys(named))}
        which = np.array([places[name] for name in named], np.intp)
        pitch = parts.memory.shared_pitch
        pieces = [self._pieces(descriptor, length, mn_major, cta * pitch) for cta, descriptor in places]
        self._check(parts.memory.shared_stop, pieces, firsts)
        if parts.events.observer is not None:
            for issue, place in zip(issues, which.tolist(), strict=True):
                issue.observe("read", "shared", pieces[place].positions, _PIECE.itemsize)
        at = pieces[0].items[None] if len(pieces) == 1 else np.stack([one.items for one in pieces])
        items = parts.memory.shared.typed(_PIECE)[at]
        return items.view(np.uint8).reshape(*items.shape, _PIECE.itemsize), which

    def _pieces(self, descriptor: int, length: int, mn_major: bool, start: int) -> PlacedPieces:
        """Return the 16-byte pieces of the matrix that a matrix descriptor describes."""
        try:
            return placed_pieces(descriptor, length, mn_major, start)
        except NotImplementedError as error:
            raise self._binder.unsupported(str(error)) from None

    def _check(self, stop: int, pieces: list[PlacedPieces], firsts: np.ndarray) -> None:
        first, last = min(one.first for one in pieces), max(one.last for one in pieces) + _PIECE.itemsize - 1
        if first < SHARED_START or last >= stop:
            raise Fault(
                "out-of-bounds",
                f"wgmma reads shared memory from byte {first - SHARED_START} to {last - SHARED_START}, but the CTA has "
                f"{stop - SHARED_START} bytes: check the descriptor",
                firsts,
                self._binder.instruction,
            )


def _rows(binder: Binder, registers: tuple[Operand, ...]) -> np.ndarray:
    """Return the rows of some registers in the array of all 32-bit registers."""
    found = [binder.code.register_rows[r.index][1] for r in registers if isinstance(r, Register)]
    if len(found) != len(registers):
        raise binder.unsupported("an operand that is not a register")
    return np.array(found, np.intp)


@instruction(
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    section=SECTION.format("wgmma.fence; wgmma.commit_group; wgmma.wait_group"),
    moves=True,
)
def order(binder: Binder) -> Step:
    """Return the step of a fence, a commit or a wait.

    Only observers and the checks of registers use these instructions.
    """
    pc, kind, by = binder.pc, binder.instruction.opcode[1], binder.instruction
    values = [operand.value for operand in binder.instruction.operands if isinstance(operand, Immediate)]

    def event(lanes: Lanes) -> ProductFence | CommitGroup | WaitGroup:
        if kind == "fence":
            return ProductFence(lanes, by)
        return CommitGroup(lanes, by, "wgmma") if kind == "commit_group" else WaitGroup(lanes, by, "wgmma", values[0])

    def act(group: Group, lanes: Lanes) -> None:
        group.parts.events.tell(event(lanes))
        on_order(binder.code, by, values, group, lanes)

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act, width=WARPGROUP)

    return step
