"""A kernel of the simulator: PTX that has been read, and what its C++ said of its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._program import Program
from .ptx import Variable

__all__ = ["Kernel"]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that :meth:`Device.compile` or :meth:`Device.load` made.

    Attributes
    ----------
    name : str
        As PTX has it.
    ptx : str
        The whole text.
    parameter_types : tuple or None
        What each parameter takes, where C++ said so: ``"integer"``, ``"float"``, ``"bool"``, ``"pointer"``, a
        :class:`cuda_tma.map_type.MapType`, or None for any other type.
    dynamic_shared_bytes : int
        What the kernel says that it needs; 0 if it does not say.
    """

    name: str
    ptx: str = field(repr=False)
    parameter_types: tuple[Any, ...] | None = None
    dynamic_shared_bytes: int = 0
    program: Program = field(default=None, repr=False)

    @property
    def parameters(self) -> tuple[Variable, ...]:
        """As PTX declares them, with sizes and offsets in bytes."""
        return self.program.entry.function.params

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """What ``__cluster_dims__`` says."""
        attributes = self.program.entry.function.attributes
        asked = attributes.get("reqnctapercluster")
        return tuple(map(int, (*asked, 1, 1)))[:3] if asked else None

    @property
    def most_threads(self) -> int:
        """What ``__launch_bounds__`` allows a CTA; 1024 if it does not say."""
        asked = self.program.entry.function.attributes.get("maxntid")
        if not asked:
            return 1024
        x, y, z = map(int, (*asked, 1, 1)[:3])
        return x * y * z
