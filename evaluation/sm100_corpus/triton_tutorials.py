"""Run the unchanged correctness checks of Triton's tutorials 06, 09 and 10, with sizes up to 512.

The argument is the folder ``python/tutorials`` of a checkout of Triton. A check is a call of a function of the
tutorial, which compares with torch. The functions are `test_op` in tutorial 06, `validate` in
tutorial 09 and `validate_block_scaled` in tutorial 10.

Examples
--------
    cuda-tma sanitize --compute-capability 10.0 -- python triton_tutorials.py ../triton/python/tutorials 09/fp16
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch

FILES = {"06": "06-fused-attention.py", "09": "09-persistent-matmul.py", "10": "10-block-scaled-matmul.py"}
FLOAT8 = torch.float8_e4m3fn


def checks() -> dict[str, Callable[[ModuleType], None]]:
    """Return the checks by name. Each check is a function of the tutorial's module."""
    found: dict[str, Callable[[ModuleType], None]] = {
        "09/fp16": lambda tutorial: validated(tutorial, torch.float16),
        "09/fp8": lambda tutorial: validated(tutorial, FLOAT8),
    }
    for length, mode, provider, causal, specialized in itertools.product(
        (128, 512), ("fwd", "bwd"), ("fp16", "fp8"), (False, True), (False, True)
    ):
        # The test in the tutorial skips cases of other modes and providers.
        if (mode, provider) in (("fwd", "fp8"), ("bwd", "fp16")):
            name = f"06/{mode}-{provider}-{length}{'-causal' * causal}{'-specialized' * specialized}"
            arguments = (1, 2, length, 64, causal, specialized, mode, f"triton-{provider}")
            found[name] = lambda tutorial, arguments=arguments: tutorial.test_op(*arguments)
    for kind, size in itertools.product(("mxfp8", "mxfp4", "nvfp4", "mixed"), (256, 512)):
        found[f"10/{kind}-{size}"] = lambda tutorial, kind=kind, size=size: block_scaled(tutorial, size, kind)
    return found


def validated(tutorial: ModuleType, dtype: torch.dtype) -> None:
    """Run the function `validate` of tutorial 09, which prints a mark for each kernel. Fail if a kernel differs."""
    torch.manual_seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for size in (32, 512):
            tutorial.validate(size, size, size, dtype)
    print(printed.getvalue().replace("\r", "\n"))
    if "❌" in printed.getvalue():
        sys.exit("a kernel of the tutorial differs from its naive kernel")


def block_scaled(tutorial: ModuleType, size: int, kind: str) -> None:
    """Run the function `validate_block_scaled` of tutorial 10, which raises an error if the result differs."""
    torch.manual_seed(0)
    tutorial.validate_block_scaled(size, size, size, kind)


def loaded(folder: Path, number: str) -> ModuleType:
    """Import a tutorial from its file."""
    spec = importlib.util.spec_from_file_location(f"tutorial_{number}", folder / FILES[number])
    assert spec is not None and spec.loader is not None
    tutorial = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tutorial
    spec.loader.exec_module(tutorial)
    return tutorial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", help="Triton's folder python/tutorials (default: list the checks)"
    )
    parser.add_argument("checks", nargs="*", help="names of checks (default: all)")
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("\n".join(checks()))
        return
    os.environ.setdefault("PYTEST_VERSION", "9")  # Tutorial 06 has fewer configurations under pytest.
    for name in arguments.checks or checks():
        began = time.perf_counter()
        checks()[name](loaded(arguments.folder, name[:2]))
        print(f"passed {name}, {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
