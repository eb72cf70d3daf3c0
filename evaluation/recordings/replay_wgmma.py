"""Compare the recorded sums of tensor cores with the model of ``wgmma_model.py``, without a GPU.

``record_wgmma.py`` describes a recording.

Examples
--------
    python replay_wgmma.py wgmma_sm90.npz             # the number of equal results of each form and suite
    python replay_wgmma.py wgmma_sm90.npz --search    # the parameters with the most equal results
    python replay_wgmma.py wgmma_sm90.npz --show 3    # some results that differ
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from itertools import product

import numpy as np
from record_wgmma import digest, operands
from wgmma_cases import FORMATS, FORMS, Form, blocks
from wgmma_model import Adder, adder_of, multiply, numbers


def read(path: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the facts, and the results of wgmma and of mma.sync by "<form>/<instruction>"."""
    with np.load(path) as stored:
        facts = json.loads(str(stored["facts"]))
        arrays = {name: stored[name] for name in stored.files if name != "facts"}
    for name in list(arrays):
        if name.endswith("/mma"):
            arrays[name] = arrays[name] ^ arrays[name.replace("/mma", "/wgmma")]
    return facts, arrays


def agreement(
    form: Form, instruction: str, recorded: np.ndarray, adder: Adder | None = None
) -> dict[str, tuple[int, int]]:
    """Return for each suite the number of results that equal the model's results, and the number of all results."""
    equal = multiply(form, *operands(form), instruction, adder) == recorded
    found: dict[str, tuple[int, int]] = {}
    for block, where in zip(blocks(form), equal, strict=True):
        right, of = found.get(block.suite, (0, 0))
        found[block.suite] = right + int(where.sum()), of + where.size
    return found


# CHOICES maps a parameter of the model to its candidate values.
CHOICES = {
    "fraction_bits": range(10, 31),
    "group": (2, 4, 8, 16, 32),
    "result_bits": (10, 11, 12, 13, 14, 22, 23),
    "nearest": (False, True),
    "floor": (False, True),
}


def best(form: Form, instruction: str, recorded: np.ndarray) -> tuple[int, Adder]:
    """Improve one parameter after another, beginning with the first guess.

    Return the number of matches and the parameters.
    """

    def score(adder: Adder) -> int:
        return sum(right for right, _ in agreement(form, instruction, recorded, adder).values())

    adder, found = adder_of(form), -1
    while (now := score(adder)) > found:
        found = now
        for name, choices in CHOICES.items():
            possible = [c for c in choices if name != "group" or c <= form.k]
            if name == "result_bits":
                possible = [c for c in choices if c <= FORMATS[form.sums].mantissa_bits]
            adder = max((dataclasses.replace(adder, **{name: choice}) for choice in possible), key=score)
    return found, adder


def show(form: Form, instruction: str, recorded: np.ndarray, most: int) -> None:
    """Print the first results of each suite that differ from the model, with the terms as powers of 2, and both
    sums."""
    a, b, c = operands(form)
    unequal = multiply(form, a, b, c, instruction) != recorded
    for number, block in enumerate(blocks(form)):
        for row, column in np.argwhere(unequal[number])[:most]:
            products = _values(form.a, a[number, row]) * _values(form.b, b[number, column])
            terms = [float(x).hex() for x in products if x]
            modeled = multiply(form, a[number, [row]], b[number, [column]], c[number, [row]][:, [column]], instruction)
            print(
                f"  {block.suite} {number},{row},{column}: {' '.join(terms)} + {_hex(form, c[number, row, column])}"
                f" = {_hex(form, recorded[number, row, column])}, in the model {_hex(form, modeled.item())}"
            )


def _values(element: str, bits: np.ndarray) -> np.ndarray:
    found = numbers(FORMATS[element], bits)
    finite = np.where(found.negative, -1.0, 1.0) * found.significand * 2.0**found.last
    return np.where(found.nan, np.nan, np.where(found.infinite, np.copysign(np.inf, finite), finite))


def _hex(form: Form, bits: int) -> str:
    return float(_values(form.sums, np.array(bits))).hex()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--search", action="store_true", help="for the model's parameters")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="results of each block that are not the model's"
    )
    given = parser.parse_args()
    facts, results = read(given.path)
    for form, instruction in product(FORMS, ("wgmma", "mma")):
        recorded = results[f"{form}/{instruction}"]
        assert facts[str(form)]["operands"] == digest(form), f"other operands were recorded: {form}"
        shares = [f"{suite} {right}/{of}" for suite, (right, of) in agreement(form, instruction, recorded).items()]
        print(f"{instruction} {form}: {', '.join(shares)}")
        if form.sums != "s32" and given.search:
            score, adder = best(form, instruction, recorded)
            print(f"  {score} of {recorded.size} with {adder}")
        if form.sums != "s32" and given.show:
            show(form, instruction, recorded, given.show)


if __name__ == "__main__":
    main()
