"""The instructions ``atom`` and ``red``, which update one address for several threads in sequence."""

from __future__ import annotations

import numpy as np

from .._memory.access import observe
from .._ptx import TYPE_BYTES, Instruction, Operand, Sink
from .._pure import lookup
from .._warps.binder import Binder, Read, Write, dtype_of
from .._warps.code import Step
from .._warps.lanes import Lanes, count
from ._in_turn import Combine, in_turn
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Parallel Synchronization and Communication Instructions: {}"

_OPS: dict[str, Combine] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.asarray(np.where(_same_bits(old, expected), new, old)),
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1).astype(old.dtype),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype),
}
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return whether the bits of two values are equal; NumPy has items of 16 bytes only as complex numbers."""
    if a.dtype.itemsize <= 8:
        return np.asarray(a == b)
    return (a.view(np.uint64).reshape(-1, 2) == b.view(np.uint64).reshape(-1, 2)).all(axis=1)


def combination(binder: Binder, op: str, of_type: str, space: str) -> Combine:
    """Return the operation that combines two values; sums of floats are those of the instruction ``add``.

    ``atom.add.f32`` flushes subnormal numbers in global memory, but not in shared memory (PTX ISA, "atom").
    """
    if of_type not in _FLOATS or op in ("exch", "cas"):
        return _OPS[op]
    flushes = ("ftz",) if of_type == "f32" and not space.startswith("shared") else ()
    rounds = ("rn", *flushes) if op == "add" else ()
    found = lookup(Instruction((op, *rounds, of_type), (Sink(),) * 3))
    if found is None:
        raise binder.unsupported(f"no {op}.{of_type}")
    return found.compute


@instruction("atom", section=SECTION.format("atom"))
def atom(binder: Binder) -> Step:
    result, where, *sources = binder.instruction.operands
    return _bind(binder, binder.flat((result,)), where, sources)


@instruction("red", section=SECTION.format("red"))
def red(binder: Binder) -> Step:
    where, *sources = binder.instruction.operands
    return _bind(binder, [], where, sources)


def _bind(binder: Binder, results: list[Operand], where: Operand, sources: list[Operand]) -> Step:
    parts, space = binder.instruction.opcode, space_of(binder.instruction.opcode)
    op = next(part for part in parts if part in _OPS)
    # The modifier for vectors, such as .v4, may precede or follow the type.
    of_type = next(part for part in reversed(parts) if part in TYPE_BYTES)
    # The last operand of an atomic instruction may be a cache policy.
    sources = sources[: len(sources) - ("L2::cache_hint" in parts)]
    if len(sources) != (2 if op == "cas" else 1):
        raise binder.unsupported(f"with {len(sources)} values")
    dtype = dtype_of(of_type) if of_type not in ("f16", "bf16") else dtype_of("b16")
    combine, address = combination(binder, op, of_type, space), binder.address(where)
    # There is no scan for floating-point types that the simulator stores as integers.
    scan = op if of_type[-2:] not in ("16", "x2") else ""
    reads = [[binder.read(element, dtype) for element in binder.flat((source,))] for source in sources]
    writes: list[Write] = [binder.write(r, dtype) for r in results]
    vector = len(reads[0])

    def step(group: Group, lanes: Lanes) -> None:
        addresses = address(group, lanes)
        group.parts.memory.pieces(space, lanes, addresses, dtype.itemsize * vector, writes=True)
        for element in range(vector):
            at = addresses + element * dtype.itemsize
            given = [_all(source[element], group, lanes, dtype) for source in reads]
            old = update(group, lanes, space, at, given, combine, scan, binder.instruction)
            # The instruction red returns no results, and the operand "_" of an atom instruction discards its results.
            if element < len(writes):
                writes[element](group, lanes, old)

    return step


def _all(read: Read, group: Group, lanes: Lanes, dtype: np.dtype) -> np.ndarray:
    return np.broadcast_to(np.asarray(read(group, lanes), dtype), (count(lanes),))


def update(
    group: Group,
    lanes: Lanes,
    space: str,
    addresses: np.ndarray,
    sources: list[np.ndarray],
    combine: Combine,
    op: str,
    instruction: Instruction,
) -> np.ndarray:
    """Combine a value of each lane with memory in ascending order of lanes, and return the old value for each lane."""
    dtype = sources[0].dtype
    old = np.empty(count(lanes), dtype)
    pieces = group.parts.memory.pieces(space, lanes, addresses, dtype.itemsize, writes=True)
    if group.parts.events.observer is not None:
        expected = sources[0] if "cas" in instruction.opcode else None
        observe(group, "atomic", lanes, pieces, dtype.itemsize, instruction, expected=expected)
    for piece in pieces:
        view, items = piece.buffer.typed(dtype), piece.positions // dtype.itemsize
        chosen = np.arange(len(old)) if piece.chosen is None else piece.chosen
        old[chosen] = in_turn(view, items, [source[chosen] for source in sources], combine, op)
    group.parts.scheduler.progress()
    group.parts.scheduler.polled()
    return old
