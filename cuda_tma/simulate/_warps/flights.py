"""The registers of a ``wgmma`` in flight, and the effects of accesses to these registers before the wait.

The simulator writes the sums to their registers at the issue, because compilers copy these registers before the wait.
However, an instruction that reads a sum before the wait receives the preceding value. If an instruction writes a
register of a sum before the wait, the written value is lost, because the product writes its sums later. If a register
of A is overwritten before the wait, all bits of the sums are 1, which is a NaN or -1.

A read before the group is committed, without a wait since the product, receives the sums. Triton adds partial sums by
reads before the commit (`max_num_imprecise_acc`), and ptxas 13.4 inserts the missing wait (message C7517 of ptxas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from .._ptx import Instruction
from .code import Code, Outcome, Step
from .events import RegistersTouched
from .group import Group
from .hazards import Hazard, left_registers, registers_in, written_registers
from .lanes import WARPGROUP, Lanes, as_array
from .registers import VIEW

__all__ = ["Flights", "on_order", "on_product", "watched"]

_WORD = np.dtype(np.uint32)
_SPOILED = 0xFFFFFFFF
_Group = Group[Any]
Act = Callable[[_Group, Lanes], Outcome]


@dataclass(slots=True)
class _Flight:
    """One register of a warpgroup that a product in flight uses.

    Attributes
    ----------
    product : Instruction
    is_sum : bool
        Whether the product writes the register. If false, the product reads the register.
    old : numpy.ndarray or None
        The value of the register before the product.
    group : int
        The number of the product's group in its warpgroup; 0 before the commit of the group.
    is_left : bool
        Whether ``mov`` has copied the value to another register.
    is_missed : bool
        Whether the warpgroup has executed a wait before the commit of the group.
    """

    product: Instruction
    is_sum: bool
    old: np.ndarray | None = None
    group: int = 0
    is_left: bool = False
    is_missed: bool = False


@dataclass(slots=True)
class Flights:
    """The registers of a function that products in flight use, grouped by the first lane of the warpgroup.

    Attributes
    ----------
    of : dict
        The registers in flight of each warpgroup.
    closed : dict of int to int
        The number of groups that each warpgroup has committed.
    fenced : dict of int to int
        The time of the last ``wgmma.fence`` of each warpgroup.
    wrote : dict
        The time of the last execution of an instruction; the key is the index of the instruction and the warpgroup.
    now : int
    """

    of: dict[int, dict[int, _Flight]] = field(default_factory=dict)
    closed: dict[int, int] = field(default_factory=dict)
    fenced: dict[int, int] = field(default_factory=dict)
    wrote: dict[tuple[int, int], int] = field(default_factory=dict)
    now: int = 0

    def forget(self, lanes: np.ndarray) -> None:
        """Remove the records of the registers of threads that begin the function."""
        for first in _firsts(lanes):
            self.of.pop(first, None)
            for pc, of in [key for key in self.wrote if key[1] == first]:
                del self.wrote[pc, of]


def _flights(group: _Group) -> Flights:
    registers = group.context.registers
    if registers.flights is None:
        registers.flights = Flights()
    return cast(Flights, registers.flights)


def _firsts(lanes: Lanes) -> list[int]:
    return [*dict.fromkeys((as_array(lanes) // WARPGROUP * WARPGROUP).tolist())]


# ---- wgmma itself ----


def on_order(code: Code, by: Instruction, values: list[int], group: _Group, lanes: Lanes) -> None:
    """Apply ``wgmma.fence``, ``wgmma.commit_group`` or ``wgmma.wait_group``."""
    if not code.hazards.touches:
        return
    flights, kind = _flights(group), by.opcode[1]
    flights.now += 1
    for first in _firsts(lanes):
        mine = flights.of.get(first, {})
        if kind == "fence":
            flights.fenced[first] = flights.now
        elif kind == "commit_group":
            number = flights.closed[first] = flights.closed.get(first, 0) + 1
            for flight in mine.values():
                flight.group = flight.group or number
        else:
            done = flights.closed.get(first, 0) - values[0]
            left = flights.of[first] = {each: flight for each, flight in mine.items() if not 0 < flight.group <= done}
            for flight in left.values():
                flight.is_missed |= not flight.group


def on_product(code: Code, pc: int, act: Act) -> Act:
    """Return a step that executes a product, and records the registers of the product as in flight."""
    if not code.hazards.touches:
        return act
    by = cast(Instruction, code.instruction(pc))
    hazard = code.hazards.touches.get(pc, Hazard())
    sums, left = [*registers_in(by.operands[0])], [*left_registers(by)]
    checked = _checked(act, code, by, Hazard(hazard.reads))

    def watched_act(group: _Group, lanes: Lanes) -> Outcome:
        flights = _flights(group)
        for first in _firsts(lanes):
            fenced = flights.fenced.get(first, 0)
            for writer in hazard.writers:
                if flights.wrote.get((writer, first), 0) > fenced:
                    _tell(group, first, by, "unfenced", cast(Instruction, code.instruction(writer)))
            mine = flights.of.setdefault(first, {})
            for each in sums:
                known = mine.get(each)
                old = known.old if known is not None and known.is_sum else _held(group, code, each, first).copy()
                mine[each] = _Flight(by, True, old)
            for each in left:
                mine.setdefault(each, _Flight(by, False))
        return checked(group, lanes)

    return watched_act


# ---- other instructions ----


def watched(step: Step, code: Code, pc: int) -> Step:
    """Return a step that also checks registers in flight, if the instruction may access such registers."""
    hazards, by = code.hazards, code.instruction(pc)
    if by is None or by.opcode[0] == "wgmma" or not hazards.touches:
        return step
    if pc in hazards.copies:
        return _copying(step, code, by)
    if pc in hazards.writers:
        step = _writing(step, pc)
    return _checked(step, code, by, hazards.touches[pc]) if pc in hazards.touches else step


def _writing(step: Step, pc: int) -> Step:
    def noted(group: _Group, lanes: Lanes) -> Outcome:
        flights = _flights(group)
        flights.now += 1
        flights.wrote.update(dict.fromkeys([(pc, first) for first in _firsts(lanes)], flights.now))
        return step(group, lanes)

    return noted


def _copying(step: Step, code: Code, by: Instruction) -> Step:
    """Return a step for a ``mov``; the copy of a register in flight is also in flight."""
    results, sources = [*registers_in(by.operands[0])], [*registers_in(by.operands[1])]
    is_plain = len(results) == len(sources) == 1

    def copied(group: _Group, lanes: Lanes) -> Outcome:
        for first in _firsts(lanes):
            mine = _flights(group).of.get(first, {})
            found = next((mine[each] for each in sources if each in mine), None)
            for each in results:
                mine.pop(each, None)
                if found is not None:
                    mine[each] = replace(found, old=found.old if is_plain else None, is_left=False)
            for each in sources:
                if each in mine and each not in results:
                    mine[each].is_left = True
        return step(group, lanes)

    return copied


def _checked(step: Act, code: Code, by: Instruction, hazard: Hazard) -> Act:
    """Return a step that returns the preceding values of registers in flight, and reports the access."""
    written = {*written_registers(by)}

    def checked(group: _Group, lanes: Lanes) -> Outcome:
        touched = [*_touched(group, lanes, hazard)]
        for first, register, flight in touched:
            _tell(group, first, by, _verb(register, flight, hazard), flight.product)
        kept = []
        for first, register, flight in touched:
            if flight.is_sum and flight.old is not None and not _is_repaired(register, flight, hazard):
                place = _held(group, code, register, first)
                kept.append((flight, register, place, place.copy()))
                place[:] = flight.old
        outcome = step(group, lanes)
        for flight, register, place, new in kept:
            if register in written:
                flight.old = place.copy()
            place[:] = new
        for first, _, flight in touched:
            if not flight.is_sum:
                _spoil(group, code, first, flight.product)
        return outcome

    return checked


def _touched(group: _Group, lanes: Lanes, hazard: Hazard) -> Iterable[tuple[int, int, _Flight]]:
    flights = _flights(group)
    for first in _firsts(lanes) if flights.of else ():
        mine = flights.of.get(first, {})
        for register in dict.fromkeys((*hazard.reads, *hazard.writes)):
            flight = mine.get(register)
            if flight is None:
                continue
            if (flight.is_sum and register in hazard.reads) or (register in hazard.writes and not flight.is_left):
                yield first, register, flight


def _is_repaired(register: int, flight: _Flight, hazard: Hazard) -> bool:
    """Return whether the access only reads a register of a product whose group is not yet committed."""
    return not (flight.group or flight.is_missed or register in hazard.writes)


def _verb(register: int, flight: _Flight, hazard: Hazard) -> str:
    if not flight.is_sum:
        return "overwrites A"
    if _is_repaired(register, flight, hazard):
        return "repaired"
    return "reads" if register in hazard.reads else "writes"


def _spoil(group: _Group, code: Code, first: int, product: Instruction) -> None:
    for register, flight in _flights(group).of[first].items():
        if flight.is_sum and flight.product is product:
            _held(group, code, register, first)[:] = _SPOILED


def _held(group: _Group, code: Code, register: int, first: int) -> np.ndarray:
    """Return the values of a 32-bit register in the lanes of a warpgroup."""
    return group.views[VIEW[_WORD]][code.register_rows[register][1], first : first + WARPGROUP]


def _tell(group: _Group, first: int, by: Instruction, verb: str, other: Instruction) -> None:
    group.parts.events.tell(RegistersTouched(slice(first, first + WARPGROUP), by, verb, other))
