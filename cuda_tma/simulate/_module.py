"""A PTX module on a device: its variables get memory, once for each time it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ._global_memory import GlobalMemory
from ._program import function_addresses
from .ptx import Module, Variable

__all__ = ["load_variables"]


def load_variables(
    module: Module, memory: GlobalMemory, placed: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """Addresses of a module's global and constant variables, which hold what they hold at first.

    Parameters
    ----------
    placed : mapping of str to int
        Those that have their place and value already.
    """
    variables = [v for v in module.variables.values() if v.space in ("global", "const") and v.name not in placed]
    segments = {}
    for variable in variables:
        data = np.zeros(max(variable.size_bytes, 1), np.uint8)
        if variable.initial:
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        name = f"the variable {variable.name}, {variable.size_bytes} bytes"
        segments[variable.name] = memory.allocate(data, name, variable.space == "global")
    addresses = {name: segment.start for name, segment in segments.items()}
    every = {**placed, **addresses, **function_addresses(module)}
    for variable in variables:
        _fill_references(variable, segments[variable.name].bytes, every)
    return {**placed, **addresses}


def _fill_references(variable: Variable, data: np.ndarray, addresses: dict[str, int]) -> None:
    """Where an initialiser names variables and functions."""
    for reference in variable.references:
        value = (addresses[reference.symbol] + reference.addend) % (1 << 64)
        if reference.mask is None:
            data[reference.offset : reference.offset + 8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
        else:
            shift = (reference.mask & -reference.mask).bit_length() - 1
            data[reference.offset] = (value & reference.mask) >> shift
