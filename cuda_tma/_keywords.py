"""The function that makes options from the arguments of ``create_tensor_map`` and ``as_tensor_map``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

from ._options import Options, TensorMapOptions

__all__ = ["NAMES", "options_from"]

# The table maps a kind of options to the names of its options. The first name of a kind distinguishes it from the other
# kinds.
NAMES = {kind: tuple(f.name for f in fields(kind)) for kind in get_args(Options)}
_DEFAULTS = {f.name: f.default for f in fields(TensorMapOptions)}


def options_from(box_dim=None, options=None, **keywords) -> Options:
    """Return options from the arguments of ``as_tensor_map``, which are keywords, an options object, or a mapping.

    Parameters
    ----------
    box_dim : sequence of int, optional
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
        Options that replace `box_dim` and `keywords`. The names in a mapping determine the kind of options.
    **keywords
        Fields of :class:`TensorMapOptions`. None selects the default. If `options` is passed, a keyword with its
        default value is ignored, as in cuda.core.

    Raises
    ------
    TypeError
        If both `box_dim` and `options` are passed, if neither is passed, or if a name is unknown.
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    if options is None:
        if box_dim is None:
            raise TypeError(
                "neither box_dim= nor options= was passed; pass box_dim=(...), the tile's extents in tensor order, or "
                "for an im2col map options=TensorMapIm2colOptions(...)"
            )
        return TensorMapOptions(box_dim, **given)
    extra = ", ".join(name for name, value in {"box_dim": box_dim, **given}.items() if not _is_default(name, value))
    if extra:
        raise TypeError(f"options= and {extra} were both passed; pass {extra} only in the options")
    if isinstance(options, get_args(Options)):
        return options
    if isinstance(options, Mapping):
        chosen = _kind(options.__contains__) or TensorMapOptions
        unknown = [name for name in options if name not in NAMES[chosen]]
        if unknown:
            names = ", ".join(NAMES[chosen])
            raise TypeError(f"options contains unknown names, {', '.join(map(repr, unknown))}; use only {names}")
        return _make(chosen, options.get)
    kind = _kind(lambda name: hasattr(options, name))
    if kind is None:
        raise TypeError(
            f"options is a {type(options).__name__}; pass TensorMapOptions, TensorMapIm2colOptions, "
            "TensorMapIm2colWideOptions, cuda.core's TensorMapDescriptorOptions or a mapping"
        )
    return _make(kind, lambda name: getattr(options, name, None))


def _kind(has: Callable[[str], bool]) -> type[Options] | None:
    """Return the class of options whose first field is in the source."""
    return next((kind for kind, names in NAMES.items() if has(names[0])), None)


def _is_default(name: str, value: object) -> bool:
    """Return whether a value is the default, or equals the default.

    A name of an enum's member never equals the default.
    """
    return value is None or (isinstance(value, int) and value == _DEFAULTS.get(name))


def _make(kind: type[Options], get: Callable[[str], Any]) -> Options:
    """Return options whose values a given function returns for their names. None selects the default."""
    given = {name: value for name in NAMES[kind] if (value := get(name)) is not None}
    return options_from(**given) if kind is TensorMapOptions else kind(**given)
