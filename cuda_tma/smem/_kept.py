"""A cache for functions of params, in which all maps that differ only in the address share a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, TypeVar

from .._params_checks import check_params
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams

__all__ = ["kept_without_address"]

_Result = TypeVar("_Result")

_KINDS: tuple[type[Params], ...] = (TiledParams, Im2colParams, Im2colWideParams)
_NAMES = {kind: [field.name for field in fields(kind) if field.name != "global_address"] for kind in _KINDS}
_VALUES = {kind: attrgetter(*names) for kind, names in _NAMES.items()}


def kept_without_address(
    maxsize: int, *, modulus: int = 1
) -> Callable[[Callable[[Any], _Result]], Callable[[Params], _Result]]:
    """Keep the last `maxsize` results of a function of params.

    The function receives the address modulo `modulus`.

    The maps of a kernel often differ only in the address, so they share one result and one entry. The cache does not
    keep errors.

    >>> @kept_without_address(16)
    ... def rank(params):
    ...     return params.rank
    >>> for address in range(10):
    ...     _ = rank(TiledParams(data_type=0, global_address=address, global_dim=(64,), global_strides=(),
    ...                          box_dim=(64,), element_strides=(1,)))
    >>> rank.cache_info().hits, rank.cache_info().currsize
    (9, 1)
    """

    def decorate(function: Callable[[Any], _Result]) -> Callable[[Params], _Result]:
        @lru_cache(maxsize=maxsize)
        def of_values(kind: Any, values: tuple, address: int) -> _Result:
            return function(kind(global_address=address, **dict(zip(_NAMES[kind], values, strict=True))))

        @wraps(function)
        def of_params(params: Params) -> _Result:
            kind: Any = type(params)
            if kind not in _VALUES:
                kind = _kind_of(params)
            return of_values(kind, _VALUES[kind](params), params.global_address % modulus)

        kept: Any = of_params
        kept.cache_info, kept.cache_clear = of_values.cache_info, of_values.cache_clear
        return kept

    return decorate


def _kind_of(params: object) -> type[Params]:
    """Return the class of params from which the class of an object inherits. Refuse other objects."""
    check_params(params)
    return next(kind for kind in _KINDS if isinstance(params, kind))
