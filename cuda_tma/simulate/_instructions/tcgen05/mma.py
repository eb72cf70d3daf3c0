"""The instruction ``tcgen05.mma``: its statement selects the products with and without block scales."""

from __future__ import annotations

from ..._warps.binder import Binder
from ..._warps.code import Step
from .._table import instruction
from .allocation import SECTION
from .products import Products
from .scaled_products import ScaledProducts

_UNKNOWN = {"sp", "ashift"}


@instruction("tcgen05.mma", section=SECTION.format("mma"))
def mma(binder: Binder) -> Step:
    """Bind ``tcgen05.mma{.ws}.cta_group.kind{.block_scale} [d], a, b, form, {...,} enable_input_d{, scale};``.

    The omitted operands are a vector of masks, or the addresses of the scales of A and B.
    """
    words = binder.instruction.opcode
    kind = next((word.removeprefix("kind::") for word in words if word.startswith("kind::")), "")
    products = ScaledProducts if "block_scale" in words else Products
    if kind not in products.kinds or _UNKNOWN & {*words}:
        raise binder.unsupported("of this kind")
    return products(binder, kind).step
