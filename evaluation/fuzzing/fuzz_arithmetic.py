"""Run random scalar PTX on the simulator, and compare each register with Python's integers and fractions.

``python fuzz_arithmetic.py --count 10000 --seed 1`` lists the programs with a wrong register, and ends with status 1 if
such a program exists. The reference (``arithmetic.py``) shares no code with the simulator. ``--only 4711`` prints one
program.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from cuda_tma import simulate  # noqa: E402
from evaluation.fuzzing.arithmetic import OPERATIONS, Operation, edge_value  # noqa: E402

LANES, LOADED, STEPS = 32, 4, 30
# POOLS maps the letter of a pool of registers to the number of bits of each register.
POOLS = {"r": 32, "d": 64, "f": 32}
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 data)\n{\n"


class Step(NamedTuple):
    """An operation on registers, each of which is given by a pool and a number."""

    operation: Operation
    sources: tuple[tuple[str, int], ...]
    target: tuple[str, int]


def program(seed: int) -> tuple[list[Step], dict[tuple[str, int], list[int]]]:
    """Return the steps of a seed's program, and the values of the loaded registers in each lane."""
    draw = Random(seed)
    loaded = {(pool, i): [edge_value(draw, pool) for _ in range(LANES)] for pool in POOLS for i in range(LOADED)}
    counts, steps = dict.fromkeys(POOLS, LOADED), []
    for _ in range(STEPS):
        operation = draw.choice(OPERATIONS)
        sources = tuple((pool, draw.randrange(max(0, counts[pool] - 8), counts[pool])) for pool in operation.sources)
        steps.append(Step(operation, sources, (operation.target, counts[operation.target])))
        counts[operation.target] += 1
    return steps, loaded


def ptx_of(steps: list[Step]) -> str:
    """Return the PTX, which stores each result at the number of its step."""
    lines = [f".reg .{'f' if pool == 'f' else 'b'}{bits} %{pool}<{LOADED + STEPS}>;" for pool, bits in POOLS.items()]
    lines += [".reg .b64 %a<4>;", ".reg .b32 %t;", ".reg .pred %p;", "ld.param.u64 %a0, [data];", "mov.u32 %t, %tid.x;"]
    lines += [f"mad.wide.u32 %a1, %t, {8 * (3 * LOADED + STEPS)}, %a0;"]
    slots = [(pool, i) for pool in POOLS for i in range(LOADED)]
    lines += [f"ld.global.b{POOLS[pool]} %{pool}{i}, [%a1+{8 * at}];" for at, (pool, i) in enumerate(slots)]
    for at, (operation, sources, (pool, number)) in enumerate(steps, len(slots)):
        lines.append(operation.text.format(f"%{pool}{number}", *(f"%{kind}{i}" for kind, i in sources)))
        lines.append(f"st.global.b{POOLS[pool]} [%a1+{8 * at}], %{pool}{number};")
    return HEAD + "\n".join(lines) + "\nret;\n}\n"


def wrong(seed: int) -> str:
    """Return the first wrong result of a program, or an empty text if all results are right."""
    steps, values = program(seed)
    data = np.zeros((LANES, 3 * LOADED + STEPS), np.uint64)
    for at, register in enumerate(values):
        data[:, at] = values[register]
    gpu = simulate.Device(sanitize=False)
    gpu.launch(simulate.Config(1, LANES), gpu.load(ptx_of(steps), "k"), data)
    for at, (operation, sources, target) in enumerate(steps, 3 * LOADED):
        values[target] = [operation.compute(*given) for given in zip(*(values[each] for each in sources), strict=True)]
        found = data[:, at].tolist()
        for lane in range(LANES):
            if found[lane] != values[target][lane]:
                given = [hex(values[each][lane]) for each in sources]
                return f"{operation.text} of {given} is {found[lane]:#x}, not {values[target][lane]:#x}"
    return ""


def main() -> int:
    """Compare the programs of a range of seeds with the reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first program is number 1,000,000 times this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this time")
    parser.add_argument("--only", type=int, help="print the program of this number")
    options = parser.parse_args()
    if options.only is not None:
        print(ptx_of(program(options.only)[0]), wrong(options.only) or "right")
        return 0
    first, until, faults, done = options.seed * 1_000_000, time.monotonic() + options.seconds, 0, 0
    with ProcessPoolExecutor(options.workers) as pool:
        for begun in range(first, first + options.count, 100):
            numbers = range(begun, min(begun + 100, first + options.count))
            for number, text in zip(numbers, pool.map(wrong, numbers, chunksize=5), strict=True):
                done, faults = done + 1, faults + bool(text)
                if text:
                    print(number, text, flush=True)
            if time.monotonic() > until:
                break
    print(f"{done} programs of {STEPS} instructions in {LANES} lanes, {faults} with a wrong result")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
