"""A kernel as a program, with the functions that it may call and the addresses of its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from .._ptx import Address, Function, Instruction, Module, Operand, Pair, Special, Symbol, Vector
from .._ptx import Group as Listed
from .code import Code, laid_out
from .spaces import FUNCTION_WINDOW, RESERVED_SHARED, SHARED_START

__all__ = ["Program", "function_addresses", "mask_of"]


_WORD = re.compile(r"\w*")
_RESERVED = "reserved_smem"  # The names of special registers for reserved memory begin with "reserved_smem".


class Program:
    """A kernel of a module, and all functions that the kernel may call.

    Parameters
    ----------
    module : Module
    entry : str
        The name of the kernel.
    addresses : mapping
        The addresses of the global and constant variables of the module.

    Attributes
    ----------
    codes : dict
        The functions by name. A function has no steps before the decoder has added them.
    entry : Code
    shared : dict
        The offset of each shared variable. All variables without a size have the same offset, which follows the other
        variables.
    static_shared_bytes : int
        The number of bytes of shared variables, without dynamic shared memory.
    shared_first : int
        The first offset that the kernel may access. If the kernel reads the special registers for reserved memory, the
        offset is that of reserved memory.
    """

    def __init__(self, module: Module, entry: str, addresses: dict[str, int]):
        self.module, self.addresses = module, addresses | function_addresses(module)
        reachable = _reachable(module, entry)
        self.codes = {function.name: Code(function) for function in reachable}
        self.entry = self.codes[entry]
        self.shared, self.static_shared_bytes = _shared(module, reachable)
        self.shared_first = RESERVED_SHARED if any(map(_asks_for_reserved, reachable)) else SHARED_START
        self._functions = {address: name for name, address in function_addresses(module).items()}

    @cached_property
    def cancels_clusters(self) -> bool:
        """Return whether the program contains ``clusterlaunchcontrol.try_cancel``."""
        instructions = (each for code in self.codes.values() for each in code.function.instructions)
        return any(each.opcode[:2] == ("clusterlaunchcontrol", "try_cancel") for each in instructions)

    def shared_name(self, offset: int) -> str:
        """Return a name for an offset in the shared memory of a CTA: a variable, and an offset in the variable."""
        before = {start: name for name, start in self.shared.items() if start <= offset}
        if not before:
            return f"at byte {offset - SHARED_START} of shared memory"
        start = max(before)
        further = f" + {offset - start} bytes" if offset > start else ""
        return f"`{_plain_name(before[start])}`{further}"

    def variable(self, name: str) -> tuple[int, int]:
        """Return the address and the size of a global or constant variable, by its name in C++ or PTX."""
        every = {v.name: v for v in self.module.variables.values() if v.space in ("global", "const")}
        found = [name] if name in every else [each for each in every if _plain_name(each) == name]
        if len(found) != 1:
            known = sorted(plain for each in every if not (plain := _plain_name(each)).startswith(("_Z", "$")))
            raise KeyError(
                f"the source has {len(found)} variables {name}; its variables are {', '.join(known) or 'none'}"
            )
        return self.addresses[found[0]], every[found[0]].size_bytes

    def function_at(self, address: int) -> str | None:
        """Return the name of the function at an address."""
        return self._functions.get(address)


def _plain_name(mangled: str) -> str:
    """Return the last part of a mangled name: ``full`` for ``_ZZ6kernelE4full`` and for ``_ZN5space4fullE``."""
    if not mangled.startswith("_Z"):
        return mangled
    inner = mangled[2:]
    nested = min(len(inner) - len(inner.lstrip("N")), len(inner) - len(inner.rstrip("E")))
    inner = inner[nested : len(inner) - nested]
    words = _WORD.match(inner[::-1])
    most = len(words[0]) if words else 0
    # In a mangled name, the last number is the length of the identifier that follows.
    for length in range(most, 0, -1):
        end = len(inner) - length
        if inner.endswith(str(length), 0, end) and not inner[end].isdigit():
            return inner[end:]
    return mangled


def mask_of(program: Program, copy: Instruction) -> Instruction | None:
    """Return the instruction that computes the mask of a multicast, which is the last write of the mask's register."""
    if "multicast::cluster" not in copy.opcode:
        return None
    register = copy.operands[-2 if "L2::cache_hint" in copy.opcode else -1]
    for code in program.codes.values():
        listed = code.function.instructions
        at = next((i for i, each in enumerate(listed) if each is copy), None)
        if at is not None:
            found = (each for each in reversed(listed[:at]) if each.operands[:1] == (register,))
            return next((each for each in found if each.places != copy.places), None)
    return None


def function_addresses(module: Module) -> dict[str, int]:
    """Return the value of a pointer to each function of a module."""
    return {name: FUNCTION_WINDOW + 16 * number for number, name in enumerate(module.functions)}


def _reachable(module: Module, entry: str) -> list[Function]:
    """Return a kernel and all functions to which it refers, also through other functions or tables in memory."""
    waiting, known, found = [entry], {entry}, []
    while waiting:
        name = waiting.pop()
        if name in module.functions:
            found.append(module.functions[name])
            named = {*_symbols(found[-1])}
        else:
            named = {reference.symbol for reference in module.variables[name].references}
        fresh = named & (module.functions.keys() | module.variables.keys()) - known
        known |= fresh
        waiting += sorted(fresh)
    return found


def _symbols(function: Function) -> Iterator[str]:
    return (each.name for each in _leaves(function) if isinstance(each, Symbol))


def _asks_for_reserved(function: Function) -> bool:
    """Return whether a function reads a special register that contains a bound of reserved shared memory."""
    return any(isinstance(each, Special) and each.name.startswith(_RESERVED) for each in _leaves(function))


def _leaves(function: Function) -> Iterator[Operand]:
    """Yield the operands of all instructions of a function; the parts of a compound operand replace it."""
    waiting = [operand for instruction in reversed(function.instructions) for operand in reversed(instruction.operands)]
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Address):
            waiting.append(operand.base)
        elif isinstance(operand, (Vector, Listed)):
            waiting += reversed(operand.elements)
        elif isinstance(operand, Pair):
            waiting += (operand.second, operand.first)
        else:
            yield operand


def _shared(module: Module, functions: list[Function]) -> tuple[dict[str, int], int]:
    """Return the offsets of shared variables, and the end of the static variables.

    Static variables come first in the order of declaration. All dynamic variables begin at the end of the static
    variables.
    """
    named = {name for function in functions for name in _symbols(function)}
    every = {**module.variables}
    for function in functions:
        every.update(function.variables)
    used = [v for v in every.values() if v.space == "shared" and v.name in named]
    static = sorted((v for v in used if v.size_bytes), key=lambda v: -v.align)
    places, end = laid_out(static, SHARED_START)
    dynamic = [v for v in used if not v.size_bytes]
    for variable in dynamic:
        places[variable.name] = -(-end // variable.align) * variable.align
    return places, max([end, *(places[v.name] for v in dynamic)]) - SHARED_START
