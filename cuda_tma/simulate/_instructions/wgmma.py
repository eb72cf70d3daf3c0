"""``wgmma``: products of matrices, by four warps together, from shared memory.

They take effect at once, whatever the order of the launch: in PTX the compiler moves sums from register to register
before the wait for them, which machine code does not (observed: PTX of examples/grouped_gemm.py). That operands stay as
they are until the wait is for an observer to see.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._binder import BOOL, U32, U64, Binder, Read
from .._copy import Issue
from .._faults import Fault
from .._group import Group
from .._lanes import WARPGROUP, Lanes, as_array, selected
from .._observe import announce
from .._program import Outcome, Step
from .._registers import VIEW
from .._spaces import SHARED_START
from .._warp_sync import when_together
from ..matrix import Wgmma, wgmma_of
from ..ptx import Immediate, Operand, Register, Vector
from ._table import instruction

SECTION = "Asynchronous Warpgroup Level Matrix Instructions: {}"
_PIECE = np.dtype(np.complex128)  # merely the item of 16 bytes


@instruction("wgmma.mma_async", section=SECTION.format("wgmma.mma_async"), moves=True)
def mma_async(binder: Binder) -> Step:
    product, pc = Product(binder, wgmma_of(binder.instruction)), binder.pc
    return lambda group, lanes: when_together(group, lanes, pc, product.execute, width=WARPGROUP)


class Product:
    """One ``wgmma.mma_async`` of a function."""

    def __init__(self, binder: Binder, wgmma: Wgmma):
        self._binder, self._wgmma = binder, wgmma
        self._a = binder.read(wgmma.a, U64) if not isinstance(wgmma.a, Vector) else None
        self._a_rows = _rows(binder, wgmma.a.elements if isinstance(wgmma.a, Vector) else ())
        self._b, self._scale = binder.read(wgmma.b, U64), binder.read(wgmma.scale_d, BOOL)
        self._d_rows, self._d_view = _rows(binder, wgmma.d), VIEW[np.dtype(wgmma.sums.register_dtype)]

    def execute(self, group: Group, lanes: Lanes) -> None:
        """For all warpgroups at once, with and without the sums before."""
        firsts = as_array(lanes)[::WARPGROUP]
        scales = np.broadcast_to(self._scale(group, selected(firsts)), firsts.shape)
        for scale in (False, True):
            if (some := firsts[scales == scale]).size:
                self._multiply(group, some, scale)

    def _multiply(self, group: Group, firsts: np.ndarray, scale: bool) -> None:
        """D = A * B + D of the warpgroups that begin at lanes `firsts`."""
        wgmma, warpgroups = self._wgmma, firsts // WARPGROUP
        if self._a is None:
            left = _fragments(group.views[VIEW[U32]])[_index(self._a_rows, warpgroups)].reshape(4, -1)
        else:
            left = self._pieces(group, firsts, self._addresses(wgmma.a_addresses, _of(self._a, group, firsts)))
        right = self._pieces(group, firsts, self._addresses(wgmma.b_addresses, _of(self._b, group, firsts)))
        sums, at = _fragments(group.views[self._d_view]), _index(self._d_rows, warpgroups)
        before = sums[at].reshape(len(wgmma.d), -1) if scale else None
        sums[at] = wgmma.multiply(left, right, before).reshape(len(wgmma.d), -1, WARPGROUP)

    def _addresses(self, find: Callable[[int], np.ndarray], descriptors: list[int]) -> list[np.ndarray]:
        """Where the pieces lie that descriptors name."""
        try:
            return [find(descriptor) for descriptor in descriptors]
        except NotImplementedError as error:
            raise self._binder.unsupported(str(error)) from None

    def _pieces(self, group: Group, firsts: np.ndarray, addresses: list[np.ndarray]) -> np.ndarray:
        """The bytes that descriptors name, uint8 [warpgroups, ..., 16]."""
        machine = group.machine
        offsets = np.stack(addresses)
        if int(offsets.min()) < SHARED_START or int(offsets.max()) + _PIECE.itemsize > machine.memory.shared_stop:
            raise Fault(
                "out-of-bounds",
                f"wgmma reads shared memory from byte {int(offsets.min()) - SHARED_START} to "
                f"{int(offsets.max()) + 15 - SHARED_START}, and the CTA has "
                f"{machine.memory.shared_stop - SHARED_START}: see the descriptor",
                firsts,
                self._binder.instruction,
            )
        ctas = machine.geometry.cta_of_lane[firsts].reshape(-1, *(1,) * (offsets.ndim - 1))
        positions = ctas * machine.memory.shared_pitch + offsets
        if machine.observer is not None:
            for first, places in zip(firsts.tolist(), positions, strict=True):
                issue = Issue(machine, first, self._binder.instruction)
                issue.observe("read", "shared", places.ravel(), _PIECE.itemsize)
        items = machine.memory.shared.typed(_PIECE)[positions // _PIECE.itemsize]
        return items.view(np.uint8).reshape(*items.shape, _PIECE.itemsize)


def _of(read: Read, group: Group, lanes: np.ndarray) -> list[int]:
    return np.broadcast_to(read(group, selected(lanes)), lanes.shape).tolist()


def _rows(binder: Binder, registers: tuple[Operand, ...]) -> Lanes:
    """Rows of the matrix of 32-bit registers; a slice if they lie evenly."""
    found = [binder.code.register_rows[r.index][1] for r in registers if isinstance(r, Register)]
    if len(found) != len(registers):
        raise binder.unsupported("an operand that is no register")
    rows = np.array(found, np.intp)
    return selected(rows) if len(rows) and (np.diff(rows) > 0).all() else rows


def _fragments(matrix: np.ndarray) -> np.ndarray:
    """Registers of each warpgroup: [register, warpgroup, lane]."""
    return matrix.reshape(len(matrix), -1, WARPGROUP)


def _index(rows: Lanes, warpgroups: np.ndarray) -> tuple:
    """Some registers of some warpgroups, among `_fragments`."""
    return np.ix_(rows, warpgroups) if isinstance(rows, np.ndarray) else (rows, warpgroups)


@instruction(
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    section=SECTION.format("wgmma.fence; wgmma.commit_group; wgmma.wait_group"),
    moves=True,
)
def order(binder: Binder) -> Step:
    """For an observer."""
    pc, name, by = binder.pc, ".".join(binder.instruction.opcode), binder.instruction
    values = [operand.value for operand in binder.instruction.operands if isinstance(operand, Immediate)]

    def act(group: Group, lanes: Lanes) -> None:
        announce(group, name, lanes, by, values=values)

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act, width=WARPGROUP)

    return step
