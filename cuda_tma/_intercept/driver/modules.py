"""The modules that a program loads, with their functions and kernels, and with the addresses of their variables."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._compile.parameter_types import described_types
from ...rules._configurations import directives_of
from ...simulate._device.module import fill_variables
from ...simulate._kernel import Kernel, kernel_of
from ...simulate._machine.decode import decode
from ...simulate._ptx import Variable, read
from ...simulate._warps.program import Program
from .messages import Function

__all__ = ["BytesAt", "LoadedModule", "bytes_of_this_process"]

_TARGET = re.compile(r"sm_(\d{2,3})[af]?")
# A BytesAt function returns a number of bytes at an address in the program's memory.
BytesAt = Callable[[int, int], np.ndarray[Any, Any]]

# Without an attribute that raises the limit, a kernel has at most 48 KiB of static and dynamic shared memory.
_DEFAULT_SHARED_BYTES = 48 << 10
_REGISTERS = 64  # The number of registers is always 64, because only ptxas computes the real number.


class LoadedModule:
    """A module that a program has loaded.

    Parameters
    ----------
    ptx : str
    source : str
        The C++ text that NVRTC compiled, or an empty string if the text is not known.
    compute_capability : tuple of int

    Raises
    ------
    ParseError
        If the text is not PTX.
    """

    def __init__(self, ptx: str, source: str, compute_capability: tuple[int, int]):
        self.ptx, self._source, self._compute_capability = ptx, source, compute_capability
        self._module = read(ptx)
        self.entries = [each.name for each in self._module.functions.heads() if each.kind == "entry"]
        self._addresses: dict[str, int] = {}
        self._kernels: dict[str, Kernel] = {}

    @property
    def variables(self) -> list[Variable]:
        """Return the variables of the module that need memory, in the order of the text."""
        return [each for each in self._module.variables.values() if each.space in ("global", "const")]

    def functions(self) -> list[Function]:
        """Return the kernels of the module in the order of the text."""
        return [self._function(name) for name in self.entries]

    def place(self, addresses: Sequence[int], bytes_at: BytesAt) -> None:
        """Store the address of each variable, and write the variable's initial value to the address."""
        self._addresses = {each.name: at for each, at in zip(self.variables, addresses, strict=True)}
        memory = {each.name: bytes_at(self._addresses[each.name], each.size_bytes) for each in self.variables}
        fill_variables(self._module, self.variables, memory, self._addresses)

    def kernel(self, index: int) -> Kernel:
        """Return a kernel by its index in the functions. The module decodes each kernel once.

        Raises
        ------
        UnsupportedInstruction
        """
        name = self.entries[index]
        if name not in self._kernels:
            program = decode(self._module, name, self._addresses)
            self._kernels[name] = kernel_of(self.ptx, program, described_types(self.ptx, name), source=self._source)
        return self._kernels[name]

    def _function(self, name: str) -> Function:
        function = self._module.functions[name]
        shared = Program(self._module, name, {}).static_shared_bytes
        directives = directives_of(function.attributes)
        major, minor = self._compute_capability
        cluster = directives.reqnctapercluster or (0, 0, 0)
        attributes = {
            0: directives.most_threads,
            1: shared,
            4: _REGISTERS,
            5: _architecture(self._module.target),
            6: major * 10 + minor,
            8: max(_DEFAULT_SHARED_BYTES - shared, 0),
            9: -1,
            **dict(zip((11, 12, 13), cluster, strict=True)),
        }
        return Function(name, attributes, [(each.offset, each.size_bytes) for each in function.params])


def _architecture(target: Sequence[str]) -> int:
    """Return the number of the virtual architecture, such as 90 for ``.target sm_90a``. CUB selects its algorithms by
    this number.
    """
    match = next(filter(None, (_TARGET.match(each) for each in target)), None)
    return int(match[1]) if match else 0


def bytes_of_this_process(address: int, size: int) -> np.ndarray[Any, Any]:
    """Return the bytes of this process at an address."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(address))
