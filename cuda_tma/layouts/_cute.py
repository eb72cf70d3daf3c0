"""Thread-value layouts of CuTe, which map (thread, value) to an element in column-major order.

The module needs ``tensor-layouts``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from .._budget import NESTING
from .._given import shown
from ._element_layout import ElementLayout, check_size
from ._notation import depths

__all__ = ["atom_layout", "library", "thread_value_layout"]

_TEXT = re.compile(r"[\d(),\s]+:[\d(),\s]+")


def thread_value_layout(layout: Any, shape: tuple[int, int], name: str = "", bits: int = 32) -> ElementLayout:
    """Return the element layout of a thread-value layout of CuTe.

    Parameters
    ----------
    layout : tensor_layouts.Layout or str
        The modes thread and value, which give ``row + column * rows``. As text, ``"((4,8),(2,2)):((32,1),(16,8))"``.
    shape : (int, int)
        The rows and columns of the matrix.
    name : str, optional
    bits : int
        The number of bits of an element.

    Returns
    -------
    ElementLayout
        The element layout. If several threads have an element, its place is that in the first of these threads.

    Raises
    ------
    ValueError
        If the layout does not cover the matrix, or exceeds it.
    ImportError
        If ``tensor-layouts`` is not installed.

    Examples
    --------
    >>> thread_value_layout("((4,8),(2,2)):((32,1),(16,8))", (16, 8)).said(9, 3)
    'thread 5, value 3'
    """
    cute = library()
    name = name or f"cute:{layout}@{shape[0]}x{shape[1]}"
    if isinstance(layout, str):
        layout = _parsed(cute, layout)
    threads, values = cute.size(cute.mode(layout, 0)), cute.size(cute.mode(layout, 1))
    count, modes = shape[0] * shape[1], str(layout).count(",") // 2 + 1
    check_size(name, max(threads * values, count), modes)
    if threads * values < count:
        raise ValueError(
            f"{name} contains {threads * values} values, but the matrix of {shape[0]} x {shape[1]} has {count}"
        )
    reached = np.array([[int(layout(thread, value)) for value in range(values)] for thread in range(threads)])
    if reached.max() >= count or len(np.unique(reached)) != count:
        raise ValueError(
            f"{name} reaches {len(np.unique(reached))} elements, up to number {reached.max()}, but the matrix of "
            f"{shape[0]} x {shape[1]} has {count}; pass the shape of the layout, such as ...@16x8"
        )
    _, first = np.unique(reached.ravel(), return_index=True)
    places = np.stack(np.divmod(first, values), axis=-1).reshape(shape[1], shape[0], 2).swapaxes(0, 1)
    return ElementLayout(name, "registers", bits, places, "tensor-layouts")


def atom_layout(name: str, operand: str) -> ElementLayout:
    """Return the layout of an operand that an atom of the library has (``tensor_layouts.atoms_nv``).

    Parameters
    ----------
    name : str
        The name of the atom, such as ``"SM80_16x8x16_F32BF16BF16F32_TN"``.
    operand : str
        ``"a"``, ``"b"`` or ``"c"``. A row of the operand b is a column of the matrix B.
    """
    library()
    from tensor_layouts import atoms_nv

    atom: Any = getattr(atoms_nv, name, None)
    if operand not in ("a", "b", "c") or not hasattr(atom, f"{operand}_layout"):
        raise ValueError(f"atom:{name}.{operand} is not an operand of an atom in tensor_layouts.atoms_nv")
    m, n, k = atom.shape_mnk
    shape = {"a": (m, k), "b": (n, k), "c": (m, n)}[operand]
    return thread_value_layout(getattr(atom, f"{operand}_layout"), shape, f"{name}.{operand}")


def _parsed(cute: Any, text: str) -> Any:
    if not _TEXT.fullmatch(text) or max(depths(text), default=0) > NESTING:
        raise ValueError(
            f"{shown(text)} is not a layout; pass shape and strides, such as ((4,8),(2,2)):((32,1),(16,8))"
        )
    try:
        shape, stride = map(ast.literal_eval, text.split(":"))
    except (SyntaxError, ValueError):
        raise ValueError(f"{shown(text)} is not a layout, because its parentheses do not match") from None
    found = cute.Layout(shape, stride)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ValueError(
            f"{shown(text)} does not have two modes; pass a mode of threads and a mode of the values of each thread"
        )
    return found


def library() -> Any:
    """Import ``tensor-layouts``, or name the extra that installs it."""
    try:
        import tensor_layouts
    except ImportError as error:
        raise ImportError(
            f"layouts of CuTe need tensor-layouts ({error}): pip install tensor-layouts, or install cuda-tma[layout]"
        ) from None
    return tensor_layouts
