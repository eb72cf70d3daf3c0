"""Plant faults in kernels one by one, and run the tests on a GPU that must detect them.

``python evaluation/mutation/plant_gpu_faults.py`` copies the repository, and runs ``tests/gpu/test_exact.py`` without a
fault and with each fault. The script prints "killed by" and the first failing test, or "survived". The status is 0 if
each fault is detected. ``--simulator`` runs the same kernels on the simulator.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from evaluation.mutation.trials import Folder  # noqa: E402

SECONDS = 120.0  # The time limit applies to all tests with one fault together.
ON_GPU, ON_SIMULATOR = "tests/gpu/test_exact.py", "tests/examples/test_exact.py"


class Fault(NamedTuple):
    """A fault of a kernel: a text that occurs once in a file, and the text in its place."""

    name: str
    path: str
    before: str
    after: str


ATTENTION, GEMM = "examples/attention.py", "examples/gemm.py"
EPILOGUE, WARPGROUP = (f"cuda_tma/include/cuda_tma/{name}.cuh" for name in ("epilogue", "warpgroup"))
FENCE = "fence_proxy_async();"
FAULTS = (
    Fault("attention loads the first tile of V one row too low", ATTENTION,
          "before{0, (tile + 1) * keys(D),", "before{0, (tile + 1) * keys(D) + (tile < 0),"),
    Fault("attention multiplies two rows of weights by each other's rows of V", ATTENTION,
          "mn_major(v, i, 0), accumulate", "mn_major(v, i ^ (i < 32 ? 16 : 0), 0), accumulate"),
    Fault("attention omits the last 16 keys of each tile", ATTENTION,
          "for (int i = 0; i < keys(D); i += 16) {\n            const unsigned",
          "for (int i = 0; i < keys(D) - 16; i += 16) {\n            const unsigned"),
    Fault("the epilogue rounds toward zero", WARPGROUP, 'asm("cvt.rn.bf16x2.f32 %0', 'asm("cvt.rz.bf16x2.f32 %0'),
    Fault("the epilogue truncates", EPILOGUE, "pairs[i] = rounded(sums[2 * i], sums[2 * i + 1]);",
          "pairs[i] = __byte_perm(__float_as_uint(sums[2 * i]), __float_as_uint(sums[2 * i + 1]), 0x7632);"),
    Fault("the GEMM omits the last product of each tile of K", GEMM,
          "for (int k = 0; k < TILE_K; k += 16) wgmma", "for (int k = 0; k < TILE_K - 16; k += 16) wgmma"),
    Fault("the epilogue has no fence between its writes and the store", EPILOGUE,
          f"        {FENCE}   //", "        //"),
    Fault("attention has no fence between its writes and the store", ATTENTION,
          f"        {FENCE}                              //", "        //"),
)  # fmt: skip


def planted(folder: Folder, fault: Fault, tests: str, device: str) -> str:
    """Run the tests with a fault; return the first failing test, "time", or "" if the fault survives."""
    path = folder.path / fault.path
    source = path.read_text()
    if source.count(fault.before) != 1:
        raise SystemExit(f"{fault.path} contains {fault.before!r} {source.count(fault.before)} times; change this list")
    try:
        path.write_text(source.replace(fault.before, fault.after))
        return failure(folder, tests, device)
    finally:
        path.write_text(source)


def failure(folder: Folder, tests: str, device: str) -> str:
    """Return the first test that fails, "time" after `SECONDS`, or "" if all tests pass."""
    variables = {"CUDA_VISIBLE_DEVICES": device, "CUDA_TMA_RESULTS": "off"}
    status, output = folder.pytest(["-x", "-rfEs", tests], SECONDS, **variables)
    if status is None:
        return "time"
    if status == 0 and not re.search(r"\d+ passed", output):
        raise SystemExit(f"no test ran:\n{output}")
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    return "" if status == 0 else found[1] if found else f"status {status}:\n{output}"


def main() -> int:
    """Plant each fault, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulator", action="store_true", help="run the kernels on the simulator")
    parser.add_argument("--extensions", type=Path, help="a folder with cuda_tma of a wheel for this Python")
    parser.add_argument("--device", default="0", help="the number of the GPU")
    options, began = parser.parse_args(), time.monotonic()
    tests, device = (ON_SIMULATOR, "") if options.simulator else (ON_GPU, options.device)
    with tempfile.TemporaryDirectory(prefix="planted") as place:
        folder = Folder.copied(ROOT, Path(place, "copy"), options.extensions)
        if failed := failure(folder, tests, device):
            raise SystemExit(f"without a fault: {failed}")
        print(f"without a fault: passed after {time.monotonic() - began:.0f} s", flush=True)
        survived = 0
        for fault in FAULTS:
            by = planted(folder, fault, tests, device)
            survived += not by
            print(f"{fault.name}: {f'killed by {by}' if by else 'survived'}", flush=True)
    print(f"{len(FAULTS) - survived} of {len(FAULTS)} faults killed in {time.monotonic() - began:.0f} s")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
