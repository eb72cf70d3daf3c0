"""A tensor map of the simulator: the parameters, and their 128 bytes with a simulated address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .. import codec, rules
from ..params import Params
from ..params_of import params_of

__all__ = ["TensorMap", "tensor_map_of"]


@dataclass(frozen=True, slots=True, repr=False)
class TensorMap:
    """What :meth:`Device.create_tensor_map` gives: passed to a kernel as 128 bytes.

    Attributes
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        In driver order; `global_address` is the simulated one.
    tensor : array
        Kept while the map is, since the map reaches its memory.
    """

    params: Params
    tensor: Any

    def __bytes__(self) -> bytes:
        """The 128 bytes."""
        return codec.encode(self.params)

    def __repr__(self) -> str:
        """The parameters tell all."""
        return f"TensorMap({self.params!r})"


def tensor_map_of(
    tensor: Any, address: int, compute_capability: tuple[int, int], options: Any, keywords: dict[str, Any]
) -> TensorMap:
    """A map of a tensor at a simulated address; one that no driver makes is refused in the same words."""
    params = replace(params_of(tensor, options, **keywords), global_address=address)
    broken = rules.check(params, compute_capability)
    if broken:
        raise rules.refusal(params, broken, options=options)
    return TensorMap(params, tensor)
