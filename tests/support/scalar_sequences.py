"""Random sequences of scalar instructions as PTX for a GPU. The simulator's table gives the expected result of each
instruction.

One warp runs a sequence, with different values in each lane. The kernel stores and reads every result, so that ptxas
cannot assume values. The test checks each step on the values that the GPU had before the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import numpy as np
from hypothesis import strategies as st

from cuda_tma.simulate._ptx import Immediate, Instruction, Not, Pair, Register, Vector
from cuda_tma.simulate._pure import Pure, immediate, lookup
from tests.support.pure_instructions import instruction
from tests.support.scalar_forms import forms
from tests.support.scalar_open import loses_sat, may_differ

LANES = 32
# The name of each pool of registers is the type of their content.
POOLS = ("b16", "b32", "b64", "pred")
# The program loads four registers of each pool before the first step.
PER_POOL = 4
STORED_BYTES = 8
LOADED = PER_POOL * len(POOLS)
_LETTER = re.compile(r"\b[a-z]\b")
_MOVES = {"b16": "u16", "b32": "u32", "b64": "u64"}


# ---- the forms, with their operands ----


@dataclass(frozen=True)
class Step:
    """A step of a sequence, with its instructions, the letters of the operands that it reads, and the letters that it
    writes."""

    text: str
    instructions: tuple[tuple[Instruction, Pure], ...]
    # Each tuple contains the letter of an operand and the pool of its register.
    reads: tuple[tuple[str, str], ...]
    writes: tuple[tuple[str, str], ...]


@cache
def steps() -> tuple[Step, ...]:
    return tuple(_step(text) for text in forms())


def _step(text: str) -> Step:
    parts, reads, writes = [], {}, {}
    for part in text.split("; "):
        parsed = instruction(part)
        entry = lookup(parsed)
        assert entry is not None, part
        letters = _letters(part)
        for letter, dtype in zip(letters[len(entry.results) :], entry.sources, strict=True):
            if letter is not None and letter not in writes:
                reads[letter] = _pool(dtype)
        writes |= {
            letter: _pool(dtype) for letter, dtype in zip(letters, entry.results, strict=False) if letter is not None
        }
        parts.append((parsed, entry))
    return Step(text, tuple(parts), tuple(reads.items()), tuple(writes.items()))


def _letters(part: str) -> list[str | None]:
    """Return the letters of all operands in one list, in which None stands for a number."""
    operands = re.findall(r"\w+", part.partition(" ")[2])
    return [operand if operand.isalpha() else None for operand in operands]


def _pool(dtype: np.dtype) -> str:
    return "pred" if dtype.kind == "b" else f"b{max(8 * dtype.itemsize, 16)}"


# ---- a sequence ----


@dataclass(frozen=True)
class Program:
    """A sequence of instruction forms, with the registers that each form reads, and with the input values."""

    picks: tuple[tuple[int, tuple[int, ...]], ...]
    offset: int
    stride: int


MOST_STEPS, MOST_READS = 6, 5


def program_of(seed: int) -> Program:
    """Return a sequence in which each instruction form has the same probability; no strategy of Hypothesis provides
    this."""
    random = Random(seed)
    picks = [
        (random.randrange(len(forms())), tuple(random.randrange(64) for _ in range(MOST_READS)))
        for _ in range(random.randint(1, MOST_STEPS))
    ]
    return Program(tuple(picks), random.randrange(997), random.randrange(1, 97))


programs = st.integers(0, (1 << 64) - 1).map(program_of)


def one_of_each() -> list[Program]:
    """Return a sequence with one step for each instruction form, which reads the registers with values near a tie."""
    return [Program(((form, tuple(range(MOST_READS))),), 7 * form, 1 + form % 96) for form in range(len(forms()))]


@dataclass(frozen=True)
class Placed:
    """A step of a sequence with the registers of its letters, and with the slots in which the kernel stores its
    results."""

    step: Step
    reads: dict[str, tuple[str, int]]
    writes: dict[str, tuple[str, int]]
    slots: dict[str, int]


def placed(program: Program) -> list[Placed]:
    """For each letter that a step reads, choose a register that an earlier step writes.

    Steps read later registers more often."""
    held = dict.fromkeys(POOLS, PER_POOL)
    slot, found = 0, []
    for form, choices in program.picks:
        step = steps()[form % len(steps())]
        reads = {}
        for (letter, pool), choice in zip(step.reads, choices, strict=False):
            register = (pool, choice % held[pool])
            # The assembler ptxas simplifies max(a, a) to a.
            if step.text.startswith(("min", "max")) and register in reads.values():
                register = (pool, (choice + 1) % held[pool])
            reads[letter] = register
        writes, slots = {}, {}
        for letter, pool in step.writes:
            writes[letter] = (pool, held[pool])
            held[pool] += 1
            slots[letter] = slot
            slot += 1
        found.append(Placed(step, reads, writes, slots))
    return found


MOST_SLOTS = 4 * MOST_STEPS


# ---- the text in PTX ----


def ptx_of(programs: Sequence[Program]) -> str:
    """Return PTX with one kernel, whose CTA i runs sequence i in 32 lanes. The arrays `inputs` and `outputs` are u64
    [sequence, slot, lane]."""
    labels = ", ".join(f"S{i}" for i in range(len(programs)))
    bodies = "\n".join(f"S{i}: {{\n{chr(10).join(_body(program))}\nret;\n}}" for i, program in enumerate(programs))
    return f"""
.version 8.2
.target sm_90a
.address_size 64
.visible .entry sequences(.param .u64 inputs, .param .u64 outputs)
.maxntid {LANES}, 1, 1
{{
.reg .b64 %in, %out, %o; .reg .b32 %i, %t;
ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs];
mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x;
mul.wide.u32 %o, %i, {LOADED * LANES * STORED_BYTES}; add.u64 %in, %in, %o;
mul.wide.u32 %o, %i, {MOST_SLOTS * LANES * STORED_BYTES}; add.u64 %out, %out, %o;
mul.wide.u32 %o, %t, {STORED_BYTES}; add.u64 %in, %in, %o; add.u64 %out, %out, %o;
all: .branchtargets {labels};
brx.idx %i, all;
{bodies}
}}
"""


def _body(program: Program) -> Iterator[str]:
    steps = placed(program)
    counts = dict.fromkeys(POOLS, PER_POOL)
    for each in steps:
        for pool, _ in each.writes.values():
            counts[pool] += 1
    yield " ".join(f".reg .{pool} %{pool}_<{count}>;" for pool, count in counts.items()) + " .reg .b64 %w;"
    for place, (pool, number) in enumerate((pool, number) for pool in POOLS for number in range(PER_POOL)):
        address = f"[%in+{place * LANES * STORED_BYTES}]"
        if pool == "pred":
            yield f"ld.volatile.global.u64 %w, {address}; setp.ne.u64 %pred_{number}, %w, 0;"
        else:
            yield f"ld.volatile.global.{_MOVES[pool]} %{pool}_{number}, {address};"
    for each in steps:
        yield _spelled(each)
        for letter, (pool, number) in each.writes.items():
            address = f"[%out+{each.slots[letter] * LANES * STORED_BYTES}]"
            if pool == "pred":
                yield f"selp.u64 %w, 1, 0, %pred_{number}; st.volatile.global.u64 {address}, %w;"
                yield f"ld.volatile.global.u64 %w, {address}; setp.ne.u64 %pred_{number}, %w, 0;"
            else:
                yield f"st.volatile.global.{_MOVES[pool]} {address}, %{pool}_{number};"
                yield f"ld.volatile.global.{_MOVES[pool]} %{pool}_{number}, {address};"


def _spelled(each: Placed) -> str:
    registers = {letter: f"%{pool}_{number}" for letter, (pool, number) in {**each.reads, **each.writes}.items()}
    parts = []
    for part in each.step.text.split("; "):
        opcode, _, operands = part.partition(" ")
        named = _LETTER.sub(lambda found: registers.get(found[0], found[0]), operands)
        parts.append(f"{opcode} {named};")
    return " ".join(parts)


# ---- inputs ----


def inputs_of(programs: Sequence[Program]) -> np.ndarray:
    """Return input values as u64 [sequence, loaded register, lane], with values at limits, ties, infinities and NaN."""
    found = np.zeros((len(programs), LOADED, LANES), np.uint64)
    for row, program in zip(found, programs, strict=True):
        for place in range(LOADED):
            table = values(POOLS[place // PER_POOL])
            row[place] = table[
                (program.offset * (place + 1) + program.stride * np.arange(LANES) * (place % 3 + 1)) % len(table)
            ]
        _put_ties(row, program.offset)
    return found


@cache
def values(pool: str) -> np.ndarray:
    if pool == "pred":
        return np.array([0, 1], np.uint64)
    width = int(pool[1:])
    ends = [(1 << n) + d for n in range(width) for d in (-1, 0)] + [
        (1 << width) - 1 - (1 << n) for n in (0, 1, width - 2)
    ]
    counts = [*range(0, 70, 3), 255, 256, 32, 64]
    random = np.random.default_rng(width).integers(0, 1 << 63, 60, dtype=np.uint64).tolist()
    floats = {16: [*_floats(5, 10), *_floats(8, 7)], 32: _floats(8, 23), 64: _floats(11, 52)}[width]
    pairs = (
        [a << 16 | b for a, b in zip(_floats(5, 10)[::3], _floats(5, 10)[1::3], strict=False)] if width == 32 else []
    )
    pairs += [a << 16 | b for a, b in zip(_floats(8, 7)[::3], _floats(8, 7)[1::3], strict=False)] if width == 32 else []
    return np.array([each & (1 << width) - 1 for each in (*ends, *counts, *random, *floats, *pairs)], np.uint64)


def _floats(exponent_bits: int, fraction_bits: int) -> list[int]:
    bias, top = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1
    exponents = (0, 1, bias - fraction_bits - 1, bias - 1, bias, bias + 1, bias + fraction_bits + 1, top - 1, top)
    fractions = (0, 1, 1 << fraction_bits - 1, (1 << fraction_bits - 1) + 1, (1 << fraction_bits) - 1)
    return [
        sign << exponent_bits + fraction_bits | exponent << fraction_bits | fraction
        for exponent in exponents
        for fraction in fractions
        for sign in (0, 1)
    ]


def _put_ties(row: np.ndarray, offset: int) -> None:
    """Fill the last lanes of the first three registers of each width with two factors and a term. The product plus the
    term is almost a tie.

    The product is (1 + e) * (1 - e) * h, where h is half a unit of the term. The distance to the tie is proportional to
    e * e, which float64 cannot represent next to 1.
    """
    for pool, layouts in (("b16", ((5, 10), (8, 7))), ("b32", ((8, 23),)), ("b64", ((11, 52),))):
        first = POOLS.index(pool) * PER_POOL
        for lane in range(24, LANES):
            exponent_bits, fraction_bits = layouts[(lane + offset) % len(layouts)]
            bias = (1 << exponent_bits - 1) - 1
            sign = (lane & 1) << exponent_bits + fraction_bits
            near_one = [bias << fraction_bits | 1, (bias - 1 << fraction_bits) | (1 << fraction_bits) - 2]
            scaled = near_one[lane >> 1 & 1] - (fraction_bits + 1 << fraction_bits)
            row[first : first + 3, lane] = near_one[0], scaled & (1 << 1 + exponent_bits + fraction_bits) - 1 | sign, (
                bias << fraction_bits | (lane >> 2 & 1)
            )  # fmt: skip
            # The product is subnormal, and rounds to the smallest normal number.
            if lane < 26:
                row[first : first + 3, lane] = 1 << fraction_bits, (bias << fraction_bits) - 1, sign


# ---- expected results ----


@dataclass(frozen=True)
class Mismatch:
    """A result of a step that differs between the GPU and the table. `open` is true if PTX or ptxas explains the
    difference."""

    text: str
    sources: tuple[int, ...]
    found: int
    expected: int
    open: bool
    error: str = ""
    # The field contains the program that creates the same PTX and inputs again.
    program: Program | None = None

    def __str__(self) -> str:
        if self.error:
            return f"{self.text}: {self.error}"
        sources = ", ".join(map(hex, self.sources))
        found = f"{self.text}: of {sources} the GPU makes {self.found:#x}, the simulator {self.expected:#x}"
        return f"{found}, in {self.program}" if self.program else found


def mismatches(programs: Sequence[Program], inputs: np.ndarray, outputs: np.ndarray) -> Iterator[Mismatch]:
    """Compare the results of each step with the table's results, for the values before the step."""
    for program, given, stored in zip(programs, inputs, outputs, strict=True):
        yield from (replace(each, program=program) for each in _of_program(program, given, stored))


def _of_program(program: Program, given: np.ndarray, stored: np.ndarray) -> Iterator[Mismatch]:
    held = {
        (pool, number): given[POOLS.index(pool) * PER_POOL + number] for pool in POOLS for number in range(PER_POOL)
    }
    steps = placed(program)
    for each in steps:
        sources = {letter: held[register] for letter, register in each.reads.items()}
        held |= {register: stored[each.slots[letter]] for letter, register in each.writes.items()}
        try:
            expected = computed(each.step, sources)
        # After an error in the model of one instruction, the test still compares the other instructions.
        except Exception as error:
            yield Mismatch(each.step.text, (), 0, 0, False, repr(error))
            continue
        for letter in each.writes:
            found = stored[each.slots[letter]]
            for lane in np.flatnonzero(found != expected[letter]).tolist():
                used = tuple(int(source[lane]) for source in sources.values())
                one, other = int(found[lane]), int(expected[letter][lane])
                is_open = may_differ(each.step, one, other) or loses_sat(each, steps, used, one)
                yield Mismatch(each.step.text, used, one, other, is_open)


def computed(step: Step, sources: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the u64 value of each letter that a step writes, from the u64 values of the letters that the step
    reads."""
    held, carry = dict(sources), None
    for part, (parsed, entry) in zip(step.text.split("; "), step.instructions, strict=True):
        letters = _letters(part)
        numbers = _numbers(parsed)
        operands = [
            immediate(number, dtype) if letter is None else _narrowed(held[letter], dtype)
            for letter, number, dtype in zip(
                letters[len(entry.results) :], numbers[len(entry.results) :], entry.sources, strict=True
            )
        ]
        with np.errstate(all="ignore"):
            results = entry.compute(*operands, *([carry] if entry.carry_in else []))
        results = list(results) if isinstance(results, tuple) else [results]
        carry = results.pop() if entry.carry_out else None
        for letter, result, dtype in zip(letters, results, entry.results, strict=False):
            if letter is not None:
                held[letter] = _widened(np.broadcast_to(result, LANES), dtype)
    return {letter: held[letter] for letter, _ in step.writes}


def _numbers(parsed: Instruction) -> list[Immediate | None]:
    flat = []
    for operand in parsed.operands:
        parts = (
            operand.elements
            if isinstance(operand, Vector)
            else (operand.first, operand.second)
            if isinstance(operand, Pair)
            else (operand,)
        )
        assert not any(isinstance(part, Not) for part in parts)
        flat += [None if isinstance(part, Register) else part for part in parts]
    return flat


def _narrowed(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return words != 0 if dtype.kind == "b" else words.astype(f"u{dtype.itemsize}").view(dtype)


def _widened(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Widen a result as the store of its register does. An 8-bit result fills 16 bits, with sign extension."""
    if dtype.kind == "b":
        return result.astype(np.uint64)
    if dtype.itemsize == 1:
        return result.astype(np.int16 if dtype.kind == "i" else np.uint16).view(np.uint16).astype(np.uint64)
    return np.ascontiguousarray(result).view(f"u{dtype.itemsize}").astype(np.uint64)
