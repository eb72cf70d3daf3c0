"""A tensor map of the simulator: the parameters, and their 128 bytes with a simulated address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .. import codec, rules
from .._params_of import described, params_of
from ..params import Params
from ..rules._explain import refusal

__all__ = ["TensorMap", "tensor_map_of"]


@dataclass(frozen=True, slots=True, repr=False)
class TensorMap:
    """The result of :meth:`Device.create_tensor_map`: passed to a kernel as 128 bytes.

    Attributes
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        In driver order; `global_address` is the simulated one.
    tensor : array
        Kept alive with the map, because the map reaches its memory.
    """

    params: Params
    tensor: Any

    def __bytes__(self) -> bytes:
        """Return the 128 bytes."""
        return codec.encode(self.params)

    def __repr__(self) -> str:
        """Return the parameters."""
        return f"TensorMap({self.params!r})"


def tensor_map_of(
    tensor: Any,
    address: Callable[[Any], int],
    compute_capability: tuple[int, int],
    options: Any,
    keywords: dict[str, Any],
) -> TensorMap:
    """Return a map of a tensor, which `address` maps; refuse one that no driver makes, with the driver path's error."""
    params = params_of(tensor, options, **keywords)
    params = replace(params, global_address=address(tensor))
    broken = rules.check(params, compute_capability)
    if broken:
        raise refusal(params, broken, dtype_name=described(tensor).dtype_name)
    return TensorMap(params, tensor)
