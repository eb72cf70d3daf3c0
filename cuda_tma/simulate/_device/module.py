"""A PTX module on a device, whose variables receive new memory each time the module is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from ..._compile.plain_names import plain_name
from .._memory.global_memory import GlobalMemory
from .._ptx import Module, Variable
from .._warps.program import function_addresses

__all__ = ["entry_of", "fill_variables", "load_variables"]

_MOST_NAMES = 64  # A message lists at most 64 kernels.


def load_variables(
    module: Module, memory: GlobalMemory, placed: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """Allocate and initialize the global and constant variables of a module, and return the address of each.

    Parameters
    ----------
    placed : mapping of str to int
        The variables that already have an address and a value.
    """
    variables = [v for v in module.variables.values() if v.space in ("global", "const") and v.name not in placed]
    segments = {}
    for variable in variables:
        data = np.zeros(max(variable.size_bytes, 1), np.uint8)
        name = f"the variable {variable.name}, {variable.size_bytes} bytes"
        segments[variable.name] = memory.allocate(data, name, variable.space == "global")
    addresses = {**placed, **{name: segment.start for name, segment in segments.items()}}
    fill_variables(module, variables, {name: segment.bytes for name, segment in segments.items()}, addresses)
    return addresses


def fill_variables(
    module: Module, variables: Iterable[Variable], memory: Mapping[str, np.ndarray], addresses: Mapping[str, int]
) -> None:
    """Write the initial value of each variable into its zeroed memory.

    Parameters
    ----------
    module : Module
    variables : iterable of Variable
    memory : mapping of str to numpy.ndarray of uint8
        The memory of each variable, by its name.
    addresses : mapping of str to int
        The addresses of all variables of the module.
    """
    every = {**addresses, **function_addresses(module)}
    for variable in variables:
        data = memory[variable.name]
        if variable.initial:
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        _fill_references(variable, data, every)


def _fill_references(variable: Variable, data: np.ndarray, addresses: dict[str, int]) -> None:
    """Write the addresses of the variables and functions to which an initializer refers."""
    for reference in variable.references:
        value = (addresses[reference.symbol] + reference.addend) % (1 << 64)
        if reference.mask is None:
            data[reference.offset : reference.offset + 8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
        else:
            shift = (reference.mask & -reference.mask).bit_length() - 1
            data[reference.offset] = (value & reference.mask) >> shift


def entry_of(module: Module, name: str) -> str:
    """Return the PTX name of a kernel from its name in PTX or in C++."""
    entries = [head.name for head in module.functions.heads() if head.kind == "entry"]
    found = [name] if name in entries else [entry for entry in entries if plain_name(entry) == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"the PTX has {len(found)} kernels {name}: pass {' or '.join(found)}")
    known = [f"{entry} ({plain})" if (plain := plain_name(entry)) != entry else entry for entry in entries]
    others = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    raise ValueError(f"the PTX has no kernel {name}; it has {', '.join(known[:_MOST_NAMES]) or 'none'}{others}")
