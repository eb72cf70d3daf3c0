"""Registers of products that are under way: values and effects of accesses before the wait.

The sums are in their registers at once, since compilers copy them before the wait; an instruction that reads them
before the wait receives the preceding values. A value that it writes there is lost, as the product lands later. The
sums of a product whose A is overwritten meanwhile are all ones: a NaN, or -1.

A read in the group that is still open, with no wait since the product, finds the sums: Triton adds up partial sums so
(`max_num_imprecise_acc`), and ptxas 13.4 inserts the wait there (its message C7517).
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
    """One register of a warpgroup that a product uses.

    Attributes
    ----------
    product : Instruction
    is_sum : bool
        Whether the product writes it; else it reads it.
    old : numpy.ndarray or None
        What it held before the product.
    group : int
        Which group of the warpgroup it is in; 0 while that is open.
    is_left : bool
        Whether the value was copied elsewhere.
    is_missed : bool
        Whether a wait came while its group was open.
    """

    product: Instruction
    is_sum: bool
    old: np.ndarray | None = None
    group: int = 0
    is_left: bool = False
    is_missed: bool = False


@dataclass(slots=True)
class Flights:
    """The registers of a function that products use, by a warpgroup's first lane.

    Attributes
    ----------
    of : dict
        By register.
    closed : dict of int to int
        How many groups each warpgroup has closed.
    fenced : dict of int to int
        When each has executed ``wgmma.fence`` last.
    wrote : dict
        When a warpgroup last executed an instruction: by the instruction's place and the warpgroup.
    now : int
    """

    of: dict[int, dict[int, _Flight]] = field(default_factory=dict)
    closed: dict[int, int] = field(default_factory=dict)
    fenced: dict[int, int] = field(default_factory=dict)
    wrote: dict[tuple[int, int], int] = field(default_factory=dict)
    now: int = 0

    def forget(self, lanes: np.ndarray) -> None:
        """Threads enter the function."""
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
    """``wgmma.fence``, ``wgmma.commit_group``, ``wgmma.wait_group``."""
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
    """Return what executes a product whose registers are watched."""
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


# ---- others ----


def watched(step: Step, code: Code, pc: int) -> Step:
    """Return a step that looks for registers of products, if it may touch some."""
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
    """Let the knowledge of a value follow it through ``mov``."""
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
    """Let an instruction find registers as they are while a product is under way, and tell of it."""
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
    """Return whether a register is only read, in the group that is open."""
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
    """A warpgroup's part of a register of 32 bits."""
    return group.views[VIEW[_WORD]][code.register_rows[register][1], first : first + WARPGROUP]


def _tell(group: _Group, first: int, by: Instruction, verb: str, other: Instruction) -> None:
    group.parts.events.tell(RegistersTouched(slice(first, first + WARPGROUP), by, verb, other))
