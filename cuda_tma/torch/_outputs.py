"""Functions that create outputs, workspaces, numbers and configurations from an operator's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch

__all__ = ["Maker", "like", "maker"]


class Maker(NamedTuple):
    """A user's function, and the names of the arguments that it takes.

    Attributes
    ----------
    function : callable
    names : tuple of str
    keywords : tuple of str
        The names of further arguments, which the function takes only by keyword.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    keywords: tuple[str, ...] = ()


def like(name: str, *, dtype: torch.dtype | None = None) -> Any:
    """Return the rule for a contiguous, uninitialized output with the shape of an argument.

    Parameters
    ----------
    name : str
        The name of the argument.
    dtype : torch.dtype, optional
        The dtype of the output, or None for the dtype of the argument.

    Returns
    -------
    object
        A value for `outputs` or `workspace` of :func:`operator`.
    """
    chosen: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    return Maker(partial(torch.empty_like, memory_format=torch.contiguous_format, **chosen), (name,))


def maker(place: str, given: Any, known: Iterable[str]) -> Maker:
    """Return a user's function with the names of its parameters. Refuse unknown names.

    Raises
    ------
    TypeError
        If the value is not a function.
    ValueError
        If the function has an unknown parameter.
    """
    known = tuple(known)
    if isinstance(given, Maker):
        found = given
    elif callable(given):
        found = _maker_of(place, given)
    else:
        raise TypeError(f"{place} is {given!r}. Remedy: pass like(name), or a function of the arguments by name")
    for name in (*found.names, *found.keywords):
        if name not in known:
            raise ValueError(
                f"{place} uses {name!r}, which is not an argument of the operator. Remedy: use one of "
                f"{', '.join(known)}"
            )
    return found


def _maker_of(place: str, function: Callable[..., Any]) -> Maker:
    try:
        taken = inspect.signature(function).parameters.values()
    except ValueError:
        raise TypeError(
            f"{place} is {function!r}, whose parameters are unknown. Remedy: pass like(name), or a function of the "
            "arguments by name"
        ) from None
    needed = [each for each in taken if each.default is each.empty]
    names = tuple(each.name for each in needed if each.kind is not each.KEYWORD_ONLY)
    return Maker(function, names, tuple(each.name for each in needed if each.kind is each.KEYWORD_ONLY))
