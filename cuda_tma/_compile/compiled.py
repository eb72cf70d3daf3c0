"""The value of one compiled kernel, and the lookup of the value for a cuda.core Kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..rules._configurations import Directives, directives_in
from .parameter_types import ParameterType, described_types

if TYPE_CHECKING:
    from cuda.core import Kernel

__all__ = ["Compiled", "compiled_of", "remember"]

# The pattern finds the start of each function, because inline assembly may contain a line like the end of a function.
_FUNCTION = r"\n(?=(?:\.\w+ )*\.(?:entry|func) )"
# The header dynamic_shared.cuh writes the comment "cuda_tma::dynamic_shared" into the PTX.
_DYNAMIC_SHARED = r"// cuda_tma::dynamic_shared (\d+)"


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel as a value, with its code and its names.

    Parameters
    ----------
    name : str
        The requested name of the kernel, such as ``"gemm<64>"``.
    lowered_name : str
        The name of the kernel in `ptx` and `cubin`.
    signature : str
        The lowered name of ``cuda_tma::parameters<decltype(&kernel)>``, a variable that contains the types of all
        parameters.
    target : str
        ``"sm_90a"``, or ``"compute_90a"`` for a compilation without a cubin.
    ptx : str
        The PTX of the whole source, with line information.
    cubin : bytes
        The machine code, which is empty if `target` names a virtual architecture.
    parameter_names : tuple of str
        The names of the kernel's parameters in the source, with "" for a parameter without a name; () if they are
        unknown.
    constants : mapping of str to int
        The requested constants.
    log : str
        The compiler's warnings and remarks.
    """

    name: str
    lowered_name: str
    signature: str
    target: str
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    parameter_names: tuple[str, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    log: str = field(default="", repr=False)

    @cached_property
    def dynamic_shared_bytes(self) -> int:
        """The bytes of dynamic shared memory that the kernel requests with ``cuda_tma::dynamic_shared``, or 0.

        Requests of functions that were not inlined count for every kernel of the source.
        """
        own = f".entry {self.lowered_name}("
        functions = (text for text in re.split(_FUNCTION, self.ptx) if ".entry " not in text or own in text)
        return max([0, *(int(size) for text in functions for size in re.findall(_DYNAMIC_SHARED, text))])

    @cached_property
    def types(self) -> tuple[ParameterType, ...] | None:
        """The types of the kernel's parameters from the compiler, or None if `ptx` does not contain them."""
        return described_types(self.ptx, self.lowered_name, self.signature)

    @cached_property
    def directives(self) -> Directives:
        """The restrictions on launches in the PTX of the kernel."""
        return directives_in(self.ptx, self.lowered_name)


_known: WeakKeyDictionary[Kernel, Compiled] = WeakKeyDictionary()
# The lock protects _known, because an operation on a WeakKeyDictionary is not atomic.
_lock = Lock()


def remember(kernel: Kernel, compiled: Compiled) -> None:
    """Keep the compilation of a kernel while the kernel exists."""
    with _lock:
        _known[kernel] = compiled


def compiled_of(kernel: Kernel) -> Compiled | None:
    """Return the compilation of a kernel from :func:`cuda_tma.compile`, or None for other kernels."""
    with _lock:
        return _known.get(kernel)
