"""The places of a matrix's elements in registers, shared memory and tensor memory, and comparisons of layouts.

>>> from cuda_tma import layouts
>>> sums, factor = layouts.layout("wgmma.d:f32:64x32"), layouts.layout("wgmma.a:bf16:64x32")
>>> layouts.compare(sums, factor).equal, layouts.compare(sums, layouts.layout("wgmma.a:e4m3:64x32")).equal
(True, False)
"""

from ._compare import Comparison, compare
from ._cute import atom_layout, thread_value_layout
from ._element_layout import ElementLayout
from ._exchange import Exchange
from ._named import NAMES, layout
from ._places import tile
from ._tilers import logical_divide, make_layout_tv, make_ordered_layout, zipped_divide

__all__ = [
    "NAMES",
    "Comparison",
    "ElementLayout",
    "Exchange",
    "atom_layout",
    "compare",
    "layout",
    "logical_divide",
    "make_layout_tv",
    "make_ordered_layout",
    "thread_value_layout",
    "tile",
    "zipped_divide",
]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
