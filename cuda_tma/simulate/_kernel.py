"""A kernel of the simulator: its parsed PTX, and the types and names of its C++ parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NoReturn

from .._compile.parameter_types import ParameterType
from .._compile.plain_names import plain_name
from ..kernel_parameters import KernelParameter, KernelParameters
from ..rules._configurations import Directives, directives_of
from ._ptx.module import Variable
from ._warps.program import Program

__all__ = ["Kernel", "kernel_of"]

_NUMBERS: dict[str, ParameterType] = {"f32": "float", "f64": "float"}
_NUMBERS |= dict.fromkeys(("s8", "u16", "s16", "u32", "s32", "s64"), "integer")


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel from :meth:`Device.compile` or :meth:`Device.load`.

    Attributes
    ----------
    name : str
        The name of the kernel in PTX.
    ptx : str
        The whole text of the PTX.
    parameters : KernelParameters
        The types and names of the parameters. If the C++ source is known, its types and names apply, as in the result
        of :func:`cuda_tma.parameters_of`.
    program : Program
        The decoded program.
    source : str
        The C++ source; empty for a kernel that was loaded from PTX.
    """

    name: str
    ptx: str = field(repr=False)
    parameters: KernelParameters
    program: Program = field(repr=False)
    source: str = field(default="", repr=False)

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """The extents of a cluster in ``__cluster_dims__``; None if the kernel does not have this attribute."""
        return self.directives.reqnctapercluster

    @property
    def most_threads(self) -> int:
        """The largest number of threads of a CTA in ``__launch_bounds__`` (default: 1024)."""
        return self.directives.most_threads

    @cached_property
    def directives(self) -> Directives:
        """The directives in the PTX of the kernel that restrict its launches."""
        return directives_of(self.program.entry.function.attributes)

    def __reduce__(self) -> NoReturn:
        """Raise an error, because the program of a kernel consists of functions that pickle cannot copy."""
        raise TypeError(
            "a kernel of the simulator cannot be pickled or copied; pass its ptx and its name, and load them in the "
            "other process with gpu.load(kernel.ptx, kernel.name)"
        )


def kernel_of(
    ptx: str,
    program: Program,
    types: tuple[ParameterType, ...] | None,
    names: tuple[str, ...] = (),
    dynamic_shared_bytes: int = 0,
    constants: Mapping[str, int] = MappingProxyType({}),
    source: str = "",
    asked_name: str = "",
) -> Kernel:
    """Return a kernel with the types and names of its parameters.

    `asked_name` is the name of the kernel in C++. Without `types`, the types of the parameters are those in the PTX.
    """
    declared = program.entry.function.params
    count = len(declared)
    every_type = types if types and len(types) == count else tuple(map(_type_in_ptx, declared))
    every_name = names if len(names) == count else ("",) * count
    given = zip(every_name, every_type, declared, strict=True)
    parameters = tuple(KernelParameter(name, of, v.offset, v.size_bytes) for name, of, v in given)
    name = program.entry.name
    known = KernelParameters(
        asked_name or plain_name(name), parameters, program.static_shared_bytes, dynamic_shared_bytes, constants
    )
    return Kernel(name, ptx, known, program, source)


def _type_in_ptx(parameter: Variable) -> ParameterType:
    """Return the type of a parameter in PTX.

    Return None for a struct, for bits, and for .u64, which may be a pointer.
    """
    return "pointer" if parameter.is_pointer else _NUMBERS.get(parameter.type)
