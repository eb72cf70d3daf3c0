"""The HTML of a tensor map for notebooks, with its parameters, the sizes for a kernel, and its banks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from html import escape
from io import StringIO
from typing import Any

from .._compute_capability import NEWEST_COMPUTE_CAPABILITY
from .._enum_members import member_of
from .._errors import TensorMapError
from .._given import shown
from .._params_checks import check_params
from ..params import Params
from ..rules import Violation, check
from ..smem import smem_alignment, smem_bytes, tx_bytes

__all__ = ["descriptor_html"]

_COLUMNS = ("parameter", "value, in driver order", "in tensor order")
_UNITS = {"global_strides": "bytes", "global_dim": "elements", "box_dim": "elements", "channels_per_pixel": "elements"}
_NEEDED = {
    "tx_bytes": (tx_bytes, "bytes", "for expect_tx"),
    "smem_bytes": (smem_bytes, "bytes", "of shared memory"),
    "smem_alignment": (smem_alignment, "bytes", "of the destination"),
}


def descriptor_html(params: Params, title: str = "tensor map") -> str:
    """Return the parameters as an HTML table.

    If matplotlib is installed, the picture of the banks follows as inline SVG.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The parameters to show. For a map that the driver always refuses, the broken rules replace the sizes and the
        picture.
    title : str
        The caption of the table, as plain text.

    Returns
    -------
    str
        An HTML fragment. In driver order, the innermost dimension is first. In tensor order, it is last.

    Raises
    ------
    TensorMapError
        If an argument has another type.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> params = TiledParams(data_type=9, global_address=4096, global_dim=(512, 256), global_strides=(1024,),
    ...                      box_dim=(64, 32), element_strides=(1, 1), swizzle=3)
    >>> text = descriptor_html(params, "weights")
    >>> "<td>box_dim</td><td>64, 32 elements</td><td>32, 64</td>" in text, "<td>128B (3)</td>" in text
    (True, True)
    """
    check_params(params)
    if not isinstance(title, str):
        raise TensorMapError(f"title is {shown(title)}; pass a str")
    violations = check(params, NEWEST_COMPUTE_CAPABILITY)
    head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(params, violations)
    )
    table = f"<table>\n<caption>{escape(title)}</caption>\n<tr>{head}</tr>\n{body}\n</table>"
    return f"<div>\n{table}\n{'' if violations else _banks_svg(params)}</div>"


def _rows(params: Params, violations: Sequence[Violation]) -> Iterator[tuple[str, str, str]]:
    for field in fields(params):
        value = getattr(params, field.name)
        if field.name != "unexplained" or value:
            yield field.name, _words(field.name, value), _reversed(field.name, value)
    for violation in violations:
        yield "refused", str(violation), ""
    for name, (measure, unit, purpose) in _NEEDED.items() if not violations else ():
        yield name, f"{measure(params)} {unit} {purpose}", ""


def _words(name: str, value: Any) -> str:
    if name == "global_address":
        return f"{value:#x}"
    member = member_of(name, value)
    if member is not None:
        return f"{member.short_name} ({value})"
    if name == "unexplained":
        return ", ".join(f"word {word}: bits {bits:#010x}" for word, bits in value)
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{text} {_UNITS.get(name, '')}".strip()


def _reversed(name: str, value: Any) -> str:
    return ", ".join(map(str, reversed(value))) if isinstance(value, tuple) and name != "unexplained" else ""


def _banks_svg(params: Params) -> str:
    """Return the picture without the prologue of SVG, which HTML does not accept, or "" without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return ""
    from . import plot

    text = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cuda_tma"}):
        plot.banks(params).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


# This module adds the method _repr_html_, because the module of the params classes must not import this module.
Params._repr_html_ = descriptor_html  # type: ignore[attr-defined]
