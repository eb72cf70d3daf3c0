"""What tensor cores added, as recorded, against the model of ``wgmma_model.py``; needs no GPU.

    python tools/replay_wgmma.py wgmma_sm90.npz             # of each form and suite, how many results are the model's
    python tools/replay_wgmma.py wgmma_sm90.npz --search    # the parameters with which most are; minutes

For what is in a recording see ``record_wgmma.py``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product

import numpy as np
from record_wgmma import digest, operands
from wgmma_cases import FORMS, Form, blocks
from wgmma_model import Adder, adder_of, multiply

__all__ = ["agreement", "read"]


def read(path: str) -> tuple[dict, dict[str, np.ndarray]]:
    """The facts, and the results of wgmma and of mma.sync by "<form>/<instruction>"."""
    with np.load(path) as stored:
        facts = json.loads(str(stored["facts"]))
        arrays = {name: stored[name] for name in stored.files if name != "facts"}
    for name in list(arrays):
        if name.endswith("/mma"):
            arrays[name] = arrays[name] ^ arrays[name.replace("/mma", "/wgmma")]
    return facts, arrays


def agreement(form: Form, recorded: np.ndarray, adder: Adder | None = None) -> dict[str, tuple[int, int]]:
    """By suite: how many results are the model's, of how many."""
    equal = multiply(form, *operands(form), adder) == recorded
    found: dict[str, tuple[int, int]] = {}
    for block, where in zip(blocks(form), equal, strict=True):
        right, of = found.get(block.suite, (0, 0))
        found[block.suite] = right + int(where.sum()), of + where.size
    return found


def candidates(form: Form) -> Iterator[Adder]:
    """All that is thinkable: bits kept, elements added at once, how the sum is rounded."""
    groups = [k for k in (4, 8, 16, 32) if k <= form.k]
    results = (10,) if form.sums == "f16" else (23, 22, 13, 14, 12)
    for bits, group, result, nearest in product(range(10, 30), groups, results, (False, True)):
        yield Adder(bits, group, result, nearest)


def best(form: Form, recorded: np.ndarray) -> tuple[int, Adder]:
    score = {adder: sum(right for right, _ in agreement(form, recorded, adder).values()) for adder in candidates(form)}
    adder = max(score, key=score.__getitem__)
    return score[adder], adder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--search", action="store_true")
    given = parser.parse_args()
    facts, results = read(given.path)
    for form, instruction in product(FORMS, ("wgmma", "mma")):
        recorded = results[f"{form}/{instruction}"]
        if instruction == "wgmma":
            assert facts[str(form)]["operands"] == digest(form), f"other operands were recorded: {form}"
        if given.search and form.sums != "s32":
            score, adder = best(form, recorded)
            print(f"{instruction} {form}: {score} of {recorded.size} with {adder}")
        else:
            shares = [f"{suite} {right}/{of}" for suite, (right, of) in agreement(form, recorded).items()]
            print(f"{instruction} {form}: {', '.join(shares)}{'' if form.sums == 's32' else f'; {adder_of(form)}'}")


if __name__ == "__main__":
    main()
