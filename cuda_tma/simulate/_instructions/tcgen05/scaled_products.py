"""The products of ``tcgen05.mma`` with ``.block_scale``, whose scales are in tensor memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._matrix.scaled import KINDS, count_of_scales
from ..._ptx import Operand
from ..._tensor_memory.form import Form, Scales
from ..._tensor_memory.layouts import Block, blocks_of
from ..._tensor_memory.memory import split
from ..._tensor_memory.scaled_form import scaled_form_of
from ..._tensor_memory.scaled_product import multiply_scaled
from ..._tensor_memory.scales import columns_of, groups_of_scales, quarters_of, rows_of_scales
from ..._warps.binder import Binder, Read
from ..._warps.faults import Fault
from ..._warps.tensor_events import Touch
from .products import Product, Products

__all__ = ["ScaledProducts"]

# In CUTLASS 4, bits 30 and 31 of the address of scales select a byte within a cell of tensor memory.
_PLACE = 0x3FFFFFFF


@dataclass(slots=True)
class ScaledProduct(Product):
    """One product with block scales.

    Attributes
    ----------
    a_scales, b_scales : int
        The addresses of the scales.
    """

    a_scales: int = 0
    b_scales: int = 0

    def check(self) -> None:
        """Raise a fault if D or the scales begin at an invalid lane."""
        Product.check(self)
        for matrix, address, _ in self._scales():
            if lane := split(address)[0] % 32:
                raise Fault(
                    "tensor-memory",
                    f"the scales of {matrix} begin at lane {lane} of a quarter, but the scale of row 0 is in lane 0 of "
                    'each quarter (PTX ISA, "Scale Factor Layout"). Remedy: pass an address whose lane is 0',
                    self.issue.lanes,
                    self.issue.instruction,
                )

        self._check_overlap()

    def _check_overlap(self) -> None:
        """Raise a fault if D overlaps a column of the scales."""
        d, columns = split(self.d)[1], blocks_of(self.form)[0].columns
        for matrix, address, count in self._scales():
            first, last = split(address)[1], split(address)[1] + columns_of(count) - 1
            if first < d + columns and d <= last:
                raise Fault(
                    "tensor-memory",
                    f"tcgen05.mma writes D to columns {d} to {d + columns - 1} of tensor memory, but the scales of "
                    f"{matrix} are in columns {first} to {last}. Remedy: use separate columns",
                    self.issue.lanes,
                    self.issue.instruction,
                )

    def _scales(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each factor, the address of its scales, and the number of its rows or columns."""
        yield "A", self.a_scales, self.form.m // self.form.ctas
        yield "B", self.b_scales, blocks_of(self.form)[0].columns

    def touches(self) -> Iterator[Touch]:
        """Yield the cells of tensor memory that the product accesses."""
        lanes = np.concatenate([block.lanes for block in blocks_of(self.form)])
        for cta in self.ctas:
            for _, address, count in self._scales():
                yield Touch(
                    cta, split(address)[1], columns_of(count), groups_of_scales(lanes, count), True, False, True
                )
        yield from Product.touches(self)

    def multiplied(
        self, cells: np.ndarray, block: Block, a: np.ndarray, b: np.ndarray, before: np.ndarray | None
    ) -> np.ndarray:
        """Return the sums of a block of scaled factors."""
        scales = self.form.scales
        assert isinstance(scales, Scales)
        quarters, rows = quarters_of(block)
        columns = np.broadcast_to(np.arange(block.columns), (len(quarters), block.columns))
        of_a = rows_of_scales(cells, split(self.a_scales)[1], quarters, rows, scales, scales.a_byte)
        of_b = rows_of_scales(cells, split(self.b_scales)[1], quarters, columns, scales, scales.b_byte)
        return multiply_scaled(a, b, before, of_a, of_b)


class ScaledProducts(Products):
    """The ``tcgen05.mma.block_scale`` at one statement of a function."""

    kinds = KINDS
    made = ScaledProduct

    def __init__(self, binder: Binder, kind: str):
        super().__init__(binder, kind)
        count = count_of_scales(kind, binder.instruction.opcode)
        if count is None:
            raise binder.unsupported("with this number of scales")
        self._count = count

    def _rest(self, rest: list[Operand]) -> tuple[Operand, list[Read]]:
        a_scales, b_scales, enable = rest
        return enable, [self._binder.address(each) for each in (a_scales, b_scales)]

    def _form_of(self, bits: int) -> Form:
        return scaled_form_of(self._kind, self._count, bits, self._ctas)

    def _complete(self, product: Product, more: list[int]) -> None:
        """Set the addresses of the scales."""
        assert isinstance(product, ScaledProduct)
        product.a_scales, product.b_scales = (each & _PLACE for each in more)
