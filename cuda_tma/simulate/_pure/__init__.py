"""Instructions as functions of their source values, for all lanes at once; `lookup` returns such a function."""

from . import arithmetic, bits, compare, convert, integer, launch_control, matrices, move, warps  # noqa: F401 (adds to the table)
from .table import BIT, DTYPES, Pure, immediate, lookup
from .warps import shuffle_sources

__all__ = ["BIT", "DTYPES", "Pure", "immediate", "lookup", "shuffle_sources"]
