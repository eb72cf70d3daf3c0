"""``tcgen05.mma``: one thread multiplies matrices from shared and tensor memory; the sums lie in tensor memory.

A product takes effect in its turn among the operations that its CTA has issued, when one of them is completed: in the
order ``early`` at the commit, in others at any moment up to the wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..._copies.copy import Issue, each_lane
from ..._copies.engine import Operation
from ..._ptx import Address, Immediate, Operand, Vector
from ..._tensor_memory.descriptor import pieces
from ..._tensor_memory.form import Form, form_of
from ..._tensor_memory.layouts import Block, blocks_of, groups_of
from ..._tensor_memory.memory import split
from ..._tensor_memory.pairs import pair_of
from ..._tensor_memory.product import cells_of, matrix_in_lanes, matrix_of, multiply, sums_in
from ..._warps.binder import BOOL, U32, U64, Binder, Read
from ..._warps.code import Step
from ..._warps.faults import Fault
from ..._warps.lanes import Lanes, count
from ..._warps.spaces import SHARED_START
from ..._warps.tensor_events import OperationIssued, Touch
from .._table import Group, instruction
from .allocation import SECTION, ctas_of_group

_KINDS = ("f16", "tf32", "f8f6f4", "i8")
_PIECE = np.dtype(np.complex128)  # merely the item of 16 bytes
_A_COLUMNS = 8  # of A in tensor memory: 32 bytes of K
_UNKNOWN = {"sp", "ashift", "block_scale", "scale_vec"}
_LANES = 128


@instruction("tcgen05.mma", section=SECTION.format("mma"))
def mma(binder: Binder) -> Step:
    """``tcgen05.mma{.ws}.cta_group.kind [d], a, b, form, {masks,} enable_input_d{, scale};``"""
    return Products(binder).step


class Products:
    """The ``tcgen05.mma`` at one place of a function."""

    def __init__(self, binder: Binder):
        self._binder, words = binder, binder.instruction.opcode
        kind = next((word[6:] for word in words if word.startswith("kind::")), "")
        if kind not in _KINDS or _UNKNOWN & {word.split("::")[0] for word in words}:
            raise binder.unsupported("of this kind")
        self.kind, self.ctas, self.is_stationary = kind, ctas_of_group(binder.instruction), "ws" in words
        d, a, b, form, *rest = binder.instruction.operands
        masks = rest.pop(0) if isinstance(rest[0], Vector) else None
        enable, *scale = rest
        self._d, self._b, self._form = binder.address(d), binder.read(b, U64), binder.read(form, U32)
        self.a_in_lanes = isinstance(a, Address)
        self._a = binder.address(a) if self.a_in_lanes else binder.read(a, U64)
        self._enable, self._masks = binder.read(enable, BOOL), self._read_masks(masks)
        self._scale = self._scale_of(scale)

    def _read_masks(self, masks: Operand | None) -> list[Read]:
        if masks is None:
            return []
        if not isinstance(masks, Vector) or len(masks.elements) != 4 * self.ctas:
            raise self._binder.unsupported("its masks of lanes")
        return [self._binder.read(each, U32) for each in masks.elements]

    def _scale_of(self, scale: list[Operand]) -> int:
        if not scale:
            return 0
        (given,) = scale
        if not isinstance(given, Immediate) or self.kind not in ("f16", "tf32") or self.is_stationary:
            raise self._binder.unsupported("a mask of columns, or a scale of D")
        return given.value

    def step(self, group: Group, lanes: Lanes) -> None:
        """Issue a product for each thread."""
        size = count(lanes)
        operands = (self._d, self._a, self._b, self._form, self._enable, *self._masks)
        values = [np.broadcast_to(np.asarray(read(group, lanes)), (size,)).tolist() for read in operands]
        for index, issue in each_lane(group, lanes, self._binder.instruction):
            with issue.faults():
                d, a, b, bits, enable, *masks = (each[index] for each in values)
                product = Product(self, issue, self._find(bits), d, a, b, bool(enable), tuple(masks), self._scale)
                product.check()
                if issue.parts.events.observer is not None:
                    product.observe()
                begin(issue, product.leader, product.run)

    def _find(self, bits: int) -> Form:
        try:
            return form_of(self.kind, bits, self.ctas, self.is_stationary)
        except ValueError as error:
            text = f"the instruction descriptor 0x{bits:08x} of tcgen05.mma is invalid: {error}"
            raise Fault("fault", f'{text} (PTX ISA, "Instruction descriptor")') from None
        except NotImplementedError as error:
            raise self._binder.unsupported(str(error)) from None

    def pieces(self, descriptor: int, rows: int, form: Form, mn_major: bool) -> np.ndarray:
        """Return the addresses of the pieces that a descriptor names."""
        try:
            return pieces(descriptor, rows, form.element_bytes, mn_major)
        except ValueError as error:
            raise Fault("fault", f'{error} (PTX ISA, "Shared memory descriptor")') from None
        except NotImplementedError as error:
            raise self._binder.unsupported(str(error)) from None


def begin(issue: Issue, cta: int, run: partial | object) -> None:
    """Put an operation into the pipe of a CTA; other orders than ``early`` may complete it before a commit."""
    parts = issue.parts

    def guarded() -> None:
        with issue.faults():
            run()  # type: ignore[operator]

    number = parts.tensor_memory.pipes.issue(cta, issue.lane, guarded)
    if not parts.engine.is_early:
        stage = partial(parts.tensor_memory.pipes.run_until, cta, number)
        parts.engine.submit(Operation([stage], (cta,)))


@dataclass(slots=True)
class Product:
    """One product: the operands of a thread.

    Attributes
    ----------
    of : Products
    issue : Issue
    form : Form
    d, a, b : int
        The address of D; that of A, or its descriptor; the descriptor of B.
    enable : bool
        Whether D is added.
    masks : tuple of int
        Bits of lanes that keep their sums; none if empty.
    scale : int
        D is multiplied by 2 to minus this.
    """

    of: Products
    issue: Issue
    form: Form
    d: int
    a: int
    b: int
    enable: bool
    masks: tuple[int, ...]
    scale: int

    @property
    def cta(self) -> int:
        """Return the resident CTA of the thread."""
        return int(self.issue.parts.geometry.cta_of_lane[self.issue.lane])

    @property
    def ctas(self) -> tuple[int, ...]:
        """Return the CTAs that multiply."""
        if self.form.ctas == 1:
            return (self.cta,)
        return pair_of(self.issue.parts.geometry, self.cta, np.array([self.issue.lane]))

    @property
    def leader(self) -> int:
        """Return the CTA in whose pipe it is."""
        return self.ctas[0]

    def check(self) -> None:
        """Raise a fault if its matrices in tensor memory are not in columns of its CTAs."""
        tensor, by, lanes = self.issue.parts.tensor_memory, self.issue.instruction, self.issue.lanes
        _, column = split(self.d)
        width = max(block.columns for block in blocks_of(self.form))
        for cta in self.ctas:
            tensor.check(cta, column, width, by, lanes)
            if self.of.a_in_lanes:
                tensor.check(cta, split(self.a)[1], _A_COLUMNS, by, lanes)
        self._check_lane(split(self.d)[0], "D")

    def _check_lane(self, lane: int, name: str) -> None:
        half = self.form.m == 64 and self.form.ctas == 1 and not self.form.is_stationary
        if lane not in ((0, 16) if half else (0,)):
            allowed = "0 or 16" if half else "0"
            raise Fault(
                "tensor-memory",
                f"tcgen05.mma with {name} from lane {lane} on; with M {self.form.m} it begins at lane {allowed} (PTX "
                'ISA, "Data Path Layout Organization"). Remedy: pass the address without a warp\'s lane',
                self.issue.lanes,
                self.issue.instruction,
            )

    def observe(self) -> None:
        """Report its accesses: the order of issue counts."""
        issue, form = self.issue, self.form
        observer = issue.parts.events.observer
        if observer is None:
            return
        issue.mark = observer.issue(issue.lane, issue.instruction, "tcgen05")
        for cta in self.ctas:
            if not self.of.a_in_lanes:
                offsets = self.of.pieces(self.a, form.m // form.ctas, form, form.a_mn_major)
                self._observe_shared(cta, offsets, "A")
            self._observe_shared(cta, self.of.pieces(self.b, form.n // form.ctas, form, form.b_mn_major), "B")
        issue.parts.events.tell(OperationIssued(issue.lanes, issue.instruction, [*self._touches()]))

    def _observe_shared(self, cta: int, offsets: np.ndarray, name: str) -> None:
        self._check_end(offsets, name)
        positions = offsets.ravel() + cta * self.issue.parts.memory.shared_pitch
        self.issue.observe("read", "shared", positions, _PIECE.itemsize)

    def _touches(self) -> Iterator[Touch]:
        (lane, column), blocks = split(self.d), blocks_of(self.form)
        lanes = np.concatenate([block.lanes for block in blocks])
        for cta in self.ctas:
            if self.of.a_in_lanes:
                start, first = split(self.a)
                yield Touch(cta, first, _A_COLUMNS, groups_of(lanes + start), True, False)
            yield Touch(cta, column, blocks[0].columns, groups_of(lanes + lane), self.enable, True)

    # ---- when it takes effect ----

    def run(self) -> None:
        """Multiply in all CTAs."""
        right = np.concatenate([self._shared(cta, self.b, self.form.n // self.form.ctas, False) for cta in self.ctas])
        for number, cta in enumerate(self.ctas):
            left = None if self.of.a_in_lanes else self._shared(cta, self.a, self.form.m // self.form.ctas, True)
            keeps = self._keeps(number)
            for block in blocks_of(self.form):
                self._block(cta, block, left, right, keeps)

    def _block(
        self, cta: int, block: Block, left: np.ndarray | None, right: np.ndarray, keeps: np.ndarray | None
    ) -> None:
        cells, (lane, column) = self.issue.parts.tensor_memory.cells[cta], split(self.d)
        lanes = block.lanes + lane
        a = self._in_lanes(cells, block) if left is None else left
        b = right[block.first_column : block.first_column + block.columns]
        place = cells[column : column + block.columns]
        before = sums_in(place[:, lanes], self.form) if self.enable else None
        if before is not None and self.scale:
            before = np.ldexp(before, -self.scale)
        found = cells_of(multiply(self.form, a, b, before), self.form)
        if keeps is not None:
            written = ~keeps[lanes]
            lanes, found = lanes[written], found[:, written]
        place[:, lanes] = found

    def _keeps(self, number: int) -> np.ndarray | None:
        """Return whether each lane of a CTA keeps its sums."""
        if not any(self.masks):
            return None
        words = np.array(self.masks[4 * number : 4 * number + 4], np.uint32)
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def _in_lanes(self, cells: np.ndarray, block: Block) -> np.ndarray:
        """Return the rows of A that lie in the lanes of a block."""
        lane, column = split(self.a)
        some = cells[column : column + _A_COLUMNS, block.lanes + lane]
        return matrix_in_lanes(some, self.form.a_type, self.form.a_negative)

    def _shared(self, cta: int, descriptor: int, rows: int, is_a: bool) -> np.ndarray:
        """Return A or B of a CTA, float64 [rows, K]."""
        form, memory = self.form, self.issue.parts.memory
        mn_major = form.a_mn_major if is_a else form.b_mn_major
        offsets = self.of.pieces(descriptor, rows, form, mn_major)
        self._check_end(offsets, "A" if is_a else "B")
        positions = offsets + cta * memory.shared_pitch
        items = memory.shared.typed(_PIECE)[positions // _PIECE.itemsize]
        data = items.view(np.uint8).reshape(*items.shape, _PIECE.itemsize)
        if is_a:
            return matrix_of(data, form.a_type, mn_major, form.a_negative)
        return matrix_of(data, form.b_type, mn_major, form.b_negative)

    def _check_end(self, offsets: np.ndarray, name: str) -> None:
        first, last, stop = (
            int(offsets.min()),
            int(offsets.max()) + _PIECE.itemsize,
            self.issue.parts.memory.shared_stop,
        )
        if first < SHARED_START or last > stop:
            raise Fault(
                "out-of-bounds",
                f"tcgen05.mma reads {name} from byte {first - SHARED_START} to {last - 1 - SHARED_START} of shared "
                f"memory, and the CTA has {stop - SHARED_START}: see the descriptor",
                self.issue.lanes,
            )
