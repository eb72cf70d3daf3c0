"""The instructions of a function that may access registers of a ``wgmma`` between its issue and the wait.

The analysis of the code runs once, so that the launch of a correct kernel takes no more time. The analysis includes
paths that no thread takes, so `flights.py` checks again when the instructions run. A ``mov`` is not an access, because
compilers place a ``mov`` of sums before the wait. Machine code uses one register for the source and the copy.

Source: PTX ISA, "wgmma.mma_async", "wgmma.fence" and "wgmma.wait_group".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .._ptx import Address, Function, Immediate, Instruction, Label, Not, Operand, Pair, Register, Vector
from .._ptx import Group as Listed

__all__ = ["Hazard", "Hazards", "hazards_of", "left_registers", "read_registers", "registers_in", "written_registers"]

# The analysis visits at most four million pairs of an instruction and a register, and then returns an empty result.
_MOST_VISITS = 4_000_000
_NO_RESULT = {
    *("st", "red", "bar", "barrier", "mbarrier", "fence", "membar", "cp", "bra", "brx", "ret", "exit", "trap"),
    *("griddepcontrol", "setmaxnreg", "prefetch", "stmatrix", "tensormap", "call", "nanosleep", "wgmma", "elect"),
}
_PRODUCT = ("wgmma", "mma_async")
_MOST_AGE = 9  # The limit of 9 groups is larger than any operand of wgmma.wait_group, which is at most 7.
_MOST_COPIES = 16  # The analysis follows a value through at most 16 copies between registers.


@dataclass(frozen=True, slots=True)
class Hazard:
    """The accesses of one instruction to registers of products in flight.

    Attributes
    ----------
    reads, writes : tuple of int
        The registers that the instruction reads although a product in flight may still write them. The registers that
        it writes although a product in flight may still access them.
    writers : tuple of int
        For a product, the instructions that may have written its registers since the last ``wgmma.fence``.
    """

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    writers: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[tuple[int, ...], ...]:
        """The registers of this hazard, as three tuples."""
        return self.reads, self.writes, self.writers


@dataclass(frozen=True, slots=True)
class Hazards:
    """The hazards of all instructions of a function.

    Attributes
    ----------
    touches : mapping
        The hazard of each instruction; empty if all products are fenced and waited for.
    copies : frozenset of int
        The ``mov`` instructions that copy registers of products.
    """

    touches: Mapping[int, Hazard] = field(default_factory=dict)
    copies: frozenset[int] = frozenset()

    @property
    def writers(self) -> frozenset[int]:
        """The instructions that may write a register of a product without a fence."""
        return frozenset(pc for each in self.touches.values() for pc in each.writers)


class _Flight(NamedTuple):
    """The use of a register by a product, and the number of groups that have been committed since the use."""

    age: int
    is_sum: bool
    is_left: bool  # The flag is true if another register also contains the value.


@dataclass(slots=True)
class _State:
    flights: dict[int, _Flight] = field(default_factory=dict)
    # Each set contains the instructions that have written a register since the last wgmma.fence.
    writers: dict[int, frozenset[int]] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(dict(self.flights), dict(self.writers))

    def merge(self, other: _State) -> bool:
        """Add the state at the end of another path, and return whether this state has changed."""
        changed = False
        for register, flight in other.flights.items():
            mine = self.flights.get(register)
            if mine is None or flight < mine:
                self.flights[register], changed = flight, True
        for register, writers in other.writers.items():
            mine_too = self.writers.get(register, frozenset())
            if not writers <= mine_too:
                self.writers[register], changed = mine_too | writers, True
        return changed


def registers_in(operand: Operand) -> Iterator[int]:
    """Yield the registers that an operand contains."""
    if isinstance(operand, Register):
        yield operand.index
    elif isinstance(operand, Not):
        yield operand.register.index
    elif isinstance(operand, Vector | Listed):
        for each in operand.elements:
            yield from registers_in(each)
    elif isinstance(operand, Pair):
        yield from (*registers_in(operand.first), *registers_in(operand.second))
    elif isinstance(operand, Address):
        yield from registers_in(operand.base)
        for each in operand.coordinates or ():
            yield from registers_in(each)


def hazards_of(function: Function) -> Hazards:
    """Return the hazards of a function: accesses, on any path, to registers of products in flight."""
    if not any(each.opcode[:2] == _PRODUCT for each in function.instructions):
        return Hazards()
    search = _Search(function)
    touches = search.run()
    return Hazards(touches, frozenset(search.copies)) if touches else Hazards()


class _Search:
    """A search of all paths through a function, block by block."""

    def __init__(self, function: Function):
        self._instructions, self._targets = function.instructions, {*function.labels.values()}
        self._branches = [target for targets in function.branch_targets.values() for target in targets]
        self._concerned = self._registers_of_products()
        self._found: dict[int, Hazard] = {}
        self.copies: set[int] = set()
        self._visits = 0

    def run(self) -> Mapping[int, Hazard]:
        """Return the hazard of each instruction; the mapping is empty if the function has too many paths."""
        states, work = {0: _State()}, [0]
        while work and self._visits <= _MOST_VISITS:
            start = work.pop()
            for target, state in self._block(start, states[start].copy()):
                if target not in states:
                    states[target] = state.copy()
                    work.append(target)
                elif states[target].merge(state):
                    work.append(target)
        return self._found if not work else {}

    def _block(self, pc: int, state: _State) -> Iterator[tuple[int, _State]]:
        """Follow the instructions up to the next target of a branch, and yield each next place with its state."""
        start = pc
        while pc < len(self._instructions):
            if pc in self._targets and pc != start:
                yield pc, state
                return
            by = self._instructions[pc]
            self._visits += 1
            if by.opcode[0] in ("bra", "brx"):
                named = [each.target for each in by.operands if isinstance(each, Label)]
                yield from ((target, state) for target in (self._branches if by.opcode[0] == "brx" else named))
            elif by.opcode[0] == "wgmma":
                self._of_wgmma(pc, by, state)
            else:
                self._of_others(pc, by, state)
            if by.opcode[0] in ("bra", "brx", "ret", "exit") and by.guard is None:
                return
            pc += 1

    def _registers_of_products(self) -> set[int]:
        """Return the registers of products, and the registers that ``mov`` copies from or to these registers."""
        found: set[int] = set()
        for by in self._instructions:
            if by.opcode[:2] == _PRODUCT:
                found.update((*registers_in(by.operands[0]), *left_registers(by)))
        moves = [
            (set(registers_in(by.operands[0])), set(read_registers(by)))
            for by in self._instructions
            if by.opcode[0] == "mov"
        ]
        for _ in range(_MOST_COPIES):
            known = len(found)
            for results, sources in moves:
                if sources & found or results & found:
                    found |= sources | results
            if len(found) == known:
                break
        return found

    # ---- one instruction ----

    def _of_wgmma(self, pc: int, by: Instruction, state: _State) -> None:
        kind, flights = by.opcode[1], state.flights
        self._visits += len(flights)
        if kind == "fence":
            state.writers.clear()
        elif kind == "commit_group":
            state.flights = {
                each: flight._replace(age=min(flight.age + 1, _MOST_AGE)) for each, flight in flights.items()
            }
        elif kind == "wait_group":
            most = by.operands[0].value if isinstance(by.operands[0], Immediate) else 0
            state.flights = {each: flight for each, flight in flights.items() if flight.age == 0 or flight.age <= most}
        elif kind == "mma_async":
            self._of_product(pc, by, state)

    def _of_product(self, pc: int, by: Instruction, state: _State) -> None:
        sums, left = [*registers_in(by.operands[0])], [*left_registers(by)]
        reads = tuple(each for each in left if each in state.flights and state.flights[each].is_sum)
        writers = tuple(sorted({pc for each in (*sums, *left) for pc in state.writers.get(each, ())}))
        self._add(pc, Hazard(reads=reads, writers=writers))
        for each in left:
            state.flights.setdefault(each, _Flight(0, False, False))
        state.flights.update(dict.fromkeys(sums, _Flight(0, True, False)))

    def _of_others(self, pc: int, by: Instruction, state: _State) -> None:
        read = [each for each in read_registers(by) if each in self._concerned]
        written = [each for each in written_registers(by) if each in self._concerned]
        self._visits += len(read) + len(written)
        if by.opcode[0] == "mov":
            self.copies |= {pc} if read or written else set()
            self._copy(read, written, state)
            return
        flights = state.flights
        reads = tuple(each for each in read if each in flights and flights[each].is_sum)
        writes = tuple(each for each in written if each in flights and not flights[each].is_left)
        self._add(pc, Hazard(reads, writes))
        for each in written:
            state.writers[each] = frozenset((pc,))
            if by.guard is None:
                flights.pop(each, None)

    def _copy(self, read: list[int], written: list[int], state: _State) -> None:
        """Apply a ``mov``, after which the register that contains the copy is also in flight."""
        found = min((state.flights[each] for each in read if each in state.flights), default=None)
        writers = frozenset().union(*(state.writers.get(each, frozenset()) for each in read))
        for each in read:
            if each in state.flights:
                state.flights[each] = state.flights[each]._replace(is_left=True)
        for each in written:
            state.flights.pop(each, None)
            state.writers.pop(each, None)
            if found is not None:
                state.flights[each] = found
            if writers:
                state.writers[each] = writers

    def _add(self, pc: int, hazard: Hazard) -> None:
        if hazard != Hazard():
            before = self._found.get(pc, Hazard())
            self._found[pc] = Hazard(*(_both(*each) for each in zip(before.all, hazard.all, strict=True)))


def _both(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({*some, *others}))


def left_registers(by: Instruction) -> Iterator[int]:
    """Yield the registers that contain the matrix A of a product, if A is in registers."""
    if isinstance(by.operands[1], Vector):
        yield from registers_in(by.operands[1])


def written_registers(by: Instruction) -> Iterator[int]:
    """Yield the registers that an instruction writes, if the instruction is not a product."""
    if by.operands and by.opcode[0] not in _NO_RESULT:
        yield from registers_in(by.operands[0])


def read_registers(by: Instruction) -> Iterator[int]:
    """Yield the registers that an instruction reads, including the register of its guard."""
    for each in by.operands[by.opcode[0] not in _NO_RESULT :]:
        yield from registers_in(each)
    if by.guard is not None:
        yield by.guard.register.index
