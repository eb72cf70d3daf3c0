"""The products of ``tcgen05.mma``, by which one thread multiplies matrices, with sums in tensor memory.

The operations that a CTA has issued take effect in sequence. In the order ``early``, a product takes effect at the
commit. In other orders, a product takes effect at any time up to the wait for the commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._copies.copy import Issue, each_lane
from ..._ptx import Address, Immediate, Operand, Vector
from ..._tensor_memory.form import Form, form_of
from ..._tensor_memory.layouts import Block, blocks_of, groups_of
from ..._tensor_memory.memory import split
from ..._tensor_memory.product import cells_of, matrix_in_lanes, matrix_of, multiply, sums_in
from ..._warps.binder import BOOL, U32, U64, Binder, Read
from ..._warps.faults import Fault
from ..._warps.lanes import Lanes, count
from ..._warps.tensor_events import Touch
from .._table import Group
from ._operations import SharedMatrix, begin, ctas_of, ctas_of_group, pieces_of

__all__ = ["Product", "Products"]

_A_COLUMNS = 8  # In tensor memory, matrix A has 8 columns, which contain 32 bytes along K.


@dataclass(slots=True)
class Product:
    """One product of matrices with the operands of the issuing thread.

    Attributes
    ----------
    issue : Issue
    ctas : tuple of int
        The CTAs that compute the product.
    form : Form
    d, a : int
        The addresses of D and A in tensor memory.
    left : SharedMatrix or None
        The matrix A in shared memory; None if A is in tensor memory.
    right : SharedMatrix
        The matrix B in shared memory.
    enable : bool
        Whether the product is added to D; otherwise it replaces D.
    keeps : numpy.ndarray or None, uint32 [CTA, 4]
        A mask with a bit for each lane whose sums do not change; None if all sums change.
    scale : int
        The exponent of a factor of D: the result is the product plus D * 2**-scale.
    """

    issue: Issue
    ctas: tuple[int, ...]
    form: Form
    d: int
    a: int
    left: SharedMatrix | None
    right: SharedMatrix
    enable: bool
    keeps: np.ndarray | None = None
    scale: int = 0

    def check(self) -> None:
        """Raise a fault if D begins at an invalid lane of tensor memory."""
        lane, form = split(self.d)[0], self.form
        half = form.m == 64 and form.ctas == 1 and not form.is_stationary
        if lane not in ((0, 16) if half else (0,)):
            allowed = "0 or 16" if half else "0"
            raise Fault(
                "tensor-memory",
                f"tcgen05.mma writes D from lane {lane} on, but for M={form.m}, D begins at lane {allowed} (PTX ISA, "
                '"Data Path Layout Organization"). Remedy: pass an address with that lane',
                self.issue.lanes,
                self.issue.instruction,
            )

    def touches(self) -> Iterator[Touch]:
        """Yield the cells of tensor memory that the product accesses."""
        (lane, column), blocks = split(self.d), blocks_of(self.form)
        lanes = np.concatenate([block.lanes for block in blocks])
        for cta in self.ctas:
            if self.left is None:
                start, first = split(self.a)
                yield Touch(cta, first, _A_COLUMNS, groups_of(lanes + start), True, False)
            yield Touch(cta, column, blocks[0].columns, groups_of(lanes + lane), self.enable, True)

    # ---- the effect of the product ----

    def run(self) -> None:
        """Multiply the matrices in all CTAs that compute the product."""
        form = self.form
        halves = [matrix_of(self.right.read(cta), form.b_type, form.b_mn_major, form.b_negative) for cta in self.ctas]
        right = halves[0] if form.ctas == 1 else np.concatenate(halves)
        for number, cta in enumerate(self.ctas):
            left = None
            if self.left is not None:
                left = matrix_of(self.left.read(cta), form.a_type, form.a_mn_major, form.a_negative)
            for block in blocks_of(form):
                self._block(cta, block, left, right, None if self.keeps is None else self.keeps[number])

    def _block(
        self, cta: int, block: Block, left: np.ndarray | None, right: np.ndarray, keeps: np.ndarray | None
    ) -> None:
        """Multiply the matrices for one block of the sums."""
        cells, (lane, column), form = self.issue.parts.tensor_memory.cells[cta], split(self.d), self.form
        lanes = block.lanes + lane
        a = self._in_lanes(cells, block) if left is None else left
        b = right[block.first_column : block.first_column + block.columns]
        place = cells[column : column + block.columns]
        before = sums_in(place[:, lanes], form) if self.enable else None
        if before is not None and self.scale:
            before = np.ldexp(before, -self.scale)
        found = cells_of(self.multiplied(cells, block, a, b, before), form)
        if keeps is not None:
            written = ~np.unpackbits(keeps.view(np.uint8), bitorder="little").astype(bool)[lanes]
            lanes, found = lanes[written], found[:, written]
        place[:, lanes] = found

    def multiplied(
        self, cells: np.ndarray, block: Block, a: np.ndarray, b: np.ndarray, before: np.ndarray | None
    ) -> np.ndarray:
        """Return the sums of a block from A, [rows, K], from B, [columns, K], and from the preceding sums."""
        return multiply(self.form, a, b, before)

    def _in_lanes(self, cells: np.ndarray, block: Block) -> np.ndarray:
        """Return the rows of A that are in the lanes of a block."""
        lane, column = split(self.a)
        some = cells[column : column + _A_COLUMNS, block.lanes + lane]
        return matrix_in_lanes(some, self.form.a_type, self.form.a_negative)


class Products:
    """The ``tcgen05.mma`` at one statement of a function, which issues a product for each thread.

    Parameters
    ----------
    binder : Binder
    kind : str
        The kind in the opcode, such as ``"f16"``.
    """

    kinds: frozenset[str] = frozenset({"f16", "tf32", "f8f6f4", "i8"})
    made: type[Product] = Product

    def __init__(self, binder: Binder, kind: str):
        self._binder, self._kind, self._ctas = binder, kind, ctas_of_group(binder.instruction)
        self._is_stationary = "ws" in binder.instruction.opcode
        d, a, b, form, *rest = binder.instruction.operands
        self._d, self._b, self._form = binder.address(d), binder.read(b, U64), binder.read(form, U32)
        self._a_in_lanes = isinstance(a, Address)
        self._a = binder.address(a) if self._a_in_lanes else binder.read(a, U64)
        enable, self._more = self._rest(rest)
        self._enable = binder.read(enable, BOOL)

    def _rest(self, rest: list[Operand]) -> tuple[Operand, list[Read]]:
        """Return the operand that enables the input of D, and readers of the operands that `_complete` takes."""
        masks = rest.pop(0) if isinstance(rest[0], Vector) else None
        enable, *scale = rest
        self._scale = self._scale_of(scale)
        return enable, self._read_masks(masks)

    def _read_masks(self, masks: Operand | None) -> list[Read]:
        if masks is None:
            return []
        if not isinstance(masks, Vector) or len(masks.elements) != 4 * self._ctas:
            raise self._binder.unsupported("its masks of lanes")
        return [self._binder.read(each, U32) for each in masks.elements]

    def _scale_of(self, scale: list[Operand]) -> int:
        if not scale:
            return 0
        (given,) = scale
        if self._is_stationary and isinstance(given, Immediate) and given.value == 0:
            return 0  # An immediate 0 is not a mask of columns.
        if not isinstance(given, Immediate) or self._kind not in ("f16", "tf32") or self._is_stationary:
            raise self._binder.unsupported("a mask of columns, or a scale of D")
        return given.value

    def step(self, group: Group, lanes: Lanes) -> None:
        """Issue a product for each thread."""
        size = count(lanes)
        operands = (self._d, self._a, self._b, self._form, self._enable, *self._more)
        values = [np.broadcast_to(np.asarray(read(group, lanes)), (size,)).tolist() for read in operands]
        for index, issue in each_lane(group, lanes, self._binder.instruction):
            with issue.faults():
                d, a, b, bits, enable, *more = (each[index] for each in values)
                self._issue(issue, d, a, b, self._find(bits), bool(enable), more)

    def _find(self, bits: int) -> Form:
        try:
            return self._form_of(bits)
        except ValueError as error:
            text = f"the instruction descriptor 0x{bits:08x} of tcgen05.mma is invalid: {error}"
            raise Fault("fault", f'{text} (PTX ISA, "Instruction descriptor")') from None
        except NotImplementedError as error:
            raise self._binder.unsupported(str(error)) from None

    def _form_of(self, bits: int) -> Form:
        return form_of(self._kind, bits, self._ctas, self._is_stationary)

    def _issue(self, issue: Issue, d: int, a: int, b: int, form: Form, enable: bool, more: list[int]) -> None:
        size, rows, columns = form.element_bytes, form.m // form.ctas, form.n // form.ctas
        right = SharedMatrix(issue, pieces_of(self._binder, b, columns, size, form.b_mn_major), "B")
        left = None
        if not self._a_in_lanes:
            left = SharedMatrix(issue, pieces_of(self._binder, a, rows, size, form.a_mn_major), "A")
        product = self.made(issue, ctas_of(issue), form, d, a, left, right, enable)
        self._complete(product, more)
        product.check()
        begin(issue, product.ctas, [*product.touches()], [right, *([left] if left else [])], product.run)

    def _complete(self, product: Product, more: list[int]) -> None:
        """Set the masks of a product."""
        product.keeps = np.array(more, np.uint32).reshape(self._ctas, -1) if any(more) else None
        product.scale = self._scale
