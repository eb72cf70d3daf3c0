"""The tensor map of the simulator, whose 128 bytes contain the simulated address of a tensor."""

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
    """The tensor map from :meth:`Device.create_tensor_map`, which a kernel receives as 128 bytes.

    Attributes
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The parameters in driver order; `global_address` is the simulated address.
    tensor : array
        The tensor whose memory the map describes; the map keeps the tensor alive.
    """

    params: Params
    tensor: Any

    def __bytes__(self) -> bytes:
        """Return the 128 bytes of the map."""
        return codec.encode(self.params)

    def __repr__(self) -> str:
        """Return a text with the parameters of the map."""
        return f"TensorMap({self.params!r})"


def tensor_map_of(
    tensor: Any,
    address: Callable[[Any], int],
    compute_capability: tuple[int, int],
    options: Any,
    keywords: dict[str, Any],
) -> TensorMap:
    """Return a tensor map of a tensor at a simulated address.

    Refuse a map that the driver would refuse, with the same error.
    """
    params = params_of(tensor, options, **keywords)
    params = replace(params, global_address=address(tensor))
    broken = rules.check(params, compute_capability)
    if broken:
        raise refusal(params, broken, dtype_name=described(tensor).dtype_name)
    return TensorMap(params, tensor)
