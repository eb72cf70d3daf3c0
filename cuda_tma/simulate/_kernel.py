"""A kernel of the simulator: PTX that has been read, and what its C++ said of its parameters."""

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
    """A kernel that :meth:`Device.compile` or :meth:`Device.load` made.

    Attributes
    ----------
    name : str
        As PTX has it.
    ptx : str
        The whole text.
    parameters : KernelParameters
        What :func:`cuda_tma.parameters_of` says of a kernel on a GPU: types and names, where C++ is known.
    program : Program
        What runs.
    source : str
        The C++; empty for a kernel of PTX.
    """

    name: str
    ptx: str = field(repr=False)
    parameters: KernelParameters
    program: Program = field(repr=False)
    source: str = field(default="", repr=False)

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """What ``__cluster_dims__`` says."""
        return self.directives.reqnctapercluster

    @property
    def most_threads(self) -> int:
        """What ``__launch_bounds__`` allows a CTA; 1024 if it does not say."""
        return self.directives.most_threads

    @cached_property
    def directives(self) -> Directives:
        """What its PTX asks of launches."""
        return directives_of(self.program.entry.function.attributes)

    def __reduce__(self) -> NoReturn:
        """Refuse: the program consists of functions of this process."""
        raise TypeError(
            "a kernel of the simulator cannot be pickled or copied: take its ptx and its name, and load them in the "
            "other process: gpu.load(kernel.ptx, kernel.name)"
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
    """A kernel, with what is known of its parameters beside their sizes and offsets.

    `asked_name` is how C++ names it. Without `types`, PTX's types of the parameters decide.
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
    """Return the type that PTX declares; None for a struct, for bits, and for .u64, which may be a pointer."""
    return "pointer" if parameter.is_pointer else _NUMBERS.get(parameter.type)
