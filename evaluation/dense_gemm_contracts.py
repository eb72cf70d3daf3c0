"""Run examples/dense_gemm.py on products of every contract that CUTLASS' Hopper tutorial accepts, and compare each.

The contracts are all combinations of the tutorial's operand, accumulator and output types, and of the contiguous
dimensions of A, B and C. Each product has a random size, batch, tile, cluster and epilogue. The operands are small
integers, so one wrong element is an error. Without --gpu, the simulator runs and judges the launches.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import dense_gemm  # noqa: E402
import gemm_every_shape  # noqa: E402

FLOATS, FP8 = ("float32", "float16"), ("float8_e4m3fn", "float8_e5m2")
TYPES = (
    *itertools.product([("float16", "float16")], FLOATS, [*FLOATS, *FP8], "km", "kn", "nm"),
    *itertools.product(itertools.product(FP8, FP8), FLOATS, [*FLOATS, *FP8], "k", "k", "nm"),
    *itertools.product(
        itertools.product(("int8", "uint8"), repeat=2), ["int32"], [*FLOATS, "int32", "int8", "uint8"], "k", "k", "nm"
    ),
)
TILES, CLUSTERS = ("128,128", "128,256", "128,64", "64,64"), ("1,1", "2,1", "1,2", "2,2")


def lines(count: int, seed: int) -> Iterator[str]:
    """Yield command lines: all contracts in a random order, again and again."""
    draw = random.Random(seed)
    contracts = itertools.chain.from_iterable(draw.sample(TYPES, len(TYPES)) for _ in itertools.count())
    for (a, b), sums, c, a_major, b_major, c_major in itertools.islice(contracts, count):
        step_a, step_c = (16 if "8" in name else 8 for name in (a, c))
        m = draw.randint(1, 20) * (max(step_a if a_major == "m" else 1, step_c if c_major == "m" else 1))
        n = draw.randint(1, 20) * (max(step_a if b_major == "n" else 1, step_c if c_major == "n" else 1))
        k = draw.randint(1, 24) * step_a
        yield (
            f"--mnkl {m},{n},{k},{draw.randint(1, 3)} --a_dtype {a} --b_dtype {b} --acc_dtype {sums} --c_dtype {c} "
            f"--a_major {a_major} --b_major {b_major} --c_major {c_major} {_more(draw)}"
        )


def _more(draw: random.Random) -> str:
    """Return a random tile with a cluster, or neither, and a random epilogue."""
    tile = f"--tile_shape_mnk {draw.choice(TILES)} --cluster_shape_mn {draw.choice(CLUSTERS)}"
    scale, bias = "--alpha 2 --beta -1", "--bias"
    return " ".join(each for each in (tile, scale, bias) if draw.random() < (0.8 if each is tile else 0.3))


def simulated_device() -> Any:
    """Replace the GPU in both examples by the simulator, and return its device."""
    from tests.support.simulated_examples import simulated

    objects = simulated()
    for module in (gemm_every_shape, dense_gemm):
        for name in objects.keys() & vars(module).keys():
            setattr(module, name, objects[name])
    return objects["cuda_tma"].Device()


def failure(line: str, device: Any, place: str) -> str:
    """Return the error of a product, or an empty string."""
    asked = dense_gemm.parser().parse_args(line.split())
    try:
        dense_gemm.run(asked, device, dense_gemm.operands(asked, place))
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {str(error)[:400]}"
    return ""


def main() -> int:
    """Run the products, and print each failure. Return 1 if a product failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="run on the GPU in place of the simulator")
    given = parser.parse_args()
    device = gemm_every_shape.cuda_tma.Device() if given.gpu else simulated_device()
    device.set_current()
    begun, failed = time.monotonic(), 0
    for number, line in enumerate(lines(given.count, given.seed)):
        if error := failure(line, device, "cuda" if given.gpu else "cpu"):
            failed += 1
            print(f"{number}: {line}\n  {error}", flush=True)
        if number % 50 == 49:
            print(f"{number + 1} products, {failed} failed, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{given.count} products of {len(TYPES)} contracts, {failed} failed, {time.monotonic() - begun:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
