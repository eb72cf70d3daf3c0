"""The run of a random pipeline on the simulator, and the comparison with the expected result."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cuda_tma import TensorMapIm2colOptions, simulate

from .shape import Pipeline

SOURCE = Path(__file__).with_name("pipeline.cu")
SCHEDULES = (("early", 0), ("late", 0), ("random", 1))
_DTYPES = {"unsigned char": np.uint8, "unsigned short": np.uint16, "unsigned": np.uint32}
Arrays = dict[str, np.ndarray]


class Outcome:
    """The findings and the wrong outputs of a pipeline under several schedules."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, int], tuple[simulate.Finding, ...]] = {}
        self.wrong: dict[tuple[str, int], list[str]] = {}

    @property
    def is_clean(self) -> bool:
        return not any(self.findings.values()) and not any(self.wrong.values())

    @property
    def errors(self) -> list[simulate.Finding]:
        return [finding for findings in self.findings.values() for finding in findings if finding.severity == "error"]

    def __repr__(self) -> str:
        said = {str(finding) for findings in self.findings.values() for finding in findings}
        return "\n".join([*sorted(said), *(f"{where}: {names} wrong" for where, names in self.wrong.items() if names)])


def run(
    shape: Pipeline,
    fault: str = "NOTHING",
    schedules: Iterable[tuple[str, int]] = SCHEDULES,
    until_error: bool = False,
) -> Outcome:
    """Compile a pipeline once, launch it under each schedule until an error is found, and compare its results."""
    gpu = simulate.Device(strict=True, multiprocessor_count=shape.multiprocessors)
    kernel = gpu.compile(SOURCE, "kernel", defines=shape.defines(fault))
    given = _input(shape)
    expected = _expected(shape, given)
    outcome = Outcome()
    for schedule in schedules:
        arrays = {name: np.zeros_like(array) for name, array in expected.items()}
        flags = np.zeros(32, np.uint32)
        maps = _maps(gpu, shape, given, arrays["out"])
        rest = [arrays[name] for name in ("out", "peers", "partial", "total")]
        config = simulate.Config(shape.grid // shape.ctas, shape.block, shape.ctas)
        order, seed = schedule
        # A thread that spins on a flag takes many steps.
        steps = 3_000_000 if fault == "NOTHING" else 300_000
        report = gpu.launch(
            config, kernel, *maps, given, *rest, flags, shape.items, order=order, seed=seed, max_steps=steps
        )
        outcome.findings[schedule] = report.findings
        outcome.wrong[schedule] = [name for name in expected if not np.array_equal(arrays[name], expected[name])]
        if until_error and outcome.errors:
            break
    return outcome


def _input(shape: Pipeline) -> np.ndarray:
    rows = max(1, shape.items) * 8 * shape.slices
    random = np.random.default_rng(7)
    # The values are -2 to 2 as bf16, so that sums are exact.
    if shape.consumer == "WGMMA":
        values = random.integers(-2, 3, (rows, shape.cols)).astype(np.float32)
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return random.integers(0, 1 << 8 * shape.element_bytes, (rows, shape.cols), dtype=np.uint64).astype(
        _DTYPES[shape.element]
    )


def _maps(gpu: simulate.Device, shape: Pipeline, given: np.ndarray, out: np.ndarray) -> list[simulate.TensorMap]:
    options = {"swizzle": shape.swizzle.removeprefix("SWIZZLE_")}
    plain = gpu.create_tensor_map(given, box_dim=(8, shape.cols), **options)
    into = plain
    if shape.consumer in ("STORE", "REDUCE"):
        into = gpu.create_tensor_map(out.reshape(-1, shape.cols), box_dim=(8, shape.cols), **options)
    if shape.producer == "IM2COL":
        pixels = given.reshape(-1, 8 * shape.slices, shape.cols)
        plain = gpu.create_tensor_map(
            pixels,
            TensorMapIm2colOptions(
                pixel_box_lower_corner=(0,), pixel_box_upper_corner=(0,), channels_per_pixel=shape.cols,
                pixels_per_column=8 * shape.slices, **options,
            ),
        )  # fmt: skip
    return [plain, into]


# ---- the expected result ----


def _items_of(shape: Pipeline, worker: int) -> range:
    return range(worker, shape.items, shape.workers)


def _expected(shape: Pipeline, given: np.ndarray) -> Arrays:
    n = shape.consumers
    tiles = given.reshape(-1, 8 * shape.slices * shape.cols)
    # The array contains the sums of each CTA's threads at the end.
    sums = np.zeros((shape.grid, n), np.uint32)
    if shape.consumer == "LOADS":
        out, sums = _out_of_loads(shape, tiles)
    elif shape.consumer == "WGMMA":
        out = _out_of_products(shape, given)
    elif shape.consumer == "REDUCE":
        out = tiles[: shape.items].sum(axis=0, dtype=np.uint64) * (shape.ctas if shape.multicast else 1)
        out = out.astype(np.uint32)
    else:
        out = np.repeat(tiles, shape.ctas if shape.multicast else 1, axis=0)
        out[shape.items * (shape.ctas if shape.multicast else 1) :] = 0
    ends: Arrays = {"out": np.ascontiguousarray(out), "peers": np.zeros_like(sums)}
    if shape.finish != "NO_PEER":
        ends["peers"] = np.roll(sums.reshape(-1, shape.ctas, n), 1, axis=1).reshape(-1, n)
    ends["partial"], ends["total"] = np.zeros_like(sums), np.zeros(n, np.uint32)
    if shape.handoff == "CHAIN":
        ends["partial"] = np.cumsum(sums, axis=0, dtype=np.uint32)
    elif shape.handoff != "NO_HANDOFF":
        ends["partial"], ends["total"] = sums, sums.sum(axis=0, dtype=np.uint32)
    return ends


def _out_of_loads(shape: Pipeline, tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, each = shape.consumers, shape.ctas if shape.multicast else 1
    columns = [np.arange(first, min(first + n, tiles.shape[1])) for first in range(0, tiles.shape[1], n)]
    out = np.zeros((max(1, shape.items) * each, n), np.uint32)
    sums = np.zeros((shape.grid, n), np.uint32)
    t = np.arange(n)
    other = {"ALONE": t, "LANES": t ^ 1, "NEIGHBOURS": (t + 1) % n}[shape.exchange]
    total = np.zeros(n, np.uint32)
    for worker in range(shape.workers):
        run = np.zeros(n, np.uint32)
        for item in _items_of(shape, worker):
            for some in columns:
                run[: len(some)] = run[: len(some)] * np.uint32(31) + tiles[item, some]
            out[item * each : (item + 1) * each] = run[other]
            total += run[other] * np.uint32(each)
        sums[worker * each : (worker + 1) * each] = run
    if shape.epilogue in ("ATOMIC", "STAGED_REDUCE"):
        out = total
    return out, sums


def _out_of_products(shape: Pipeline, given: np.ndarray) -> np.ndarray:
    each = shape.ctas if shape.multicast else 1
    values = (given.astype(np.uint32) << 16).view(np.float32).reshape(-1, 64, 64)
    out = np.zeros((shape.grid, 128, 32), np.float32)
    t, i = np.arange(128)[:, None], np.arange(32)
    rows, columns = 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + t % 4 * 2 + i % 2
    for worker in range(shape.workers):
        tiles = values[[*_items_of(shape, worker)]]
        product = np.einsum("irk,ick->rc", tiles, tiles)
        out[worker * each : (worker + 1) * each] = product[rows, columns]
    return out
