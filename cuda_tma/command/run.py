"""``cuda-tma run``: a kernel of C++ or PTX on the simulator, with arguments from the command line.

An argument is a number (``7``, ``2.5``), an array of zeros or random numbers (``float32[128x64]``,
``random:bfloat16[128x64]``), or a ``.npy`` file; for a parameter that is a typed map, the array. Arrays that the kernel
may have changed are written with ``--output``.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CompileError
from .console import print_json
from .exit_status import ACCEPTED, REFUSED, Misuse

if TYPE_CHECKING:
    from ..simulate import Device, Kernel, Report

__all__ = ["argument", "run"]

_ARRAY = re.compile(r"(?P<random>random:)?(?P<dtype>\w+)\[(?P<shape>\d+(x\d+)*)\]")
_NUMBER = re.compile(r"[+-]?\d+")
_SEED = 0  # of arrays of random numbers: the same in each run


def argument(text: str) -> Any:
    """What ``--arg`` says.

    Examples
    --------
    >>> argument("7"), argument("0.5"), argument("int16[2x3]").shape
    (7, 0.5, (2, 3))
    """
    if _NUMBER.fullmatch(text):
        return int(text)
    if found := _ARRAY.fullmatch(text):
        return _array(found["dtype"], tuple(map(int, found["shape"].split("x"))), bool(found["random"]))
    if text.endswith(".npy"):
        try:
            return np.load(text, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise argparse.ArgumentTypeError(f"{text} cannot be read: {error}") from None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is no number, no array such as float32[128x64] or random:float32[128x64], and no .npy file"
        ) from None


def _array(dtype_name: str, shape: tuple[int, ...], random: bool) -> np.ndarray:
    try:
        dtype = np.dtype(dtype_name)
    except TypeError:
        import ml_dtypes  # bfloat16 and the like

        if not hasattr(ml_dtypes, dtype_name):
            raise argparse.ArgumentTypeError(f"{dtype_name} is no dtype of NumPy or ml_dtypes") from None
        dtype = np.dtype(getattr(ml_dtypes, dtype_name))
    if not random:
        return np.zeros(shape, dtype)
    generator = np.random.default_rng(_SEED)
    drawn = generator.integers(100, size=shape) if dtype.kind in "iu" else generator.standard_normal(shape)
    return drawn.astype(dtype)


def run(arguments: argparse.Namespace) -> int:
    """Compile or load the kernel, run it, print what it printed and what was found."""
    from ..simulate import Config, Device

    gpu = Device(arguments.compute_capability)
    kernel = _kernel(gpu, arguments)
    try:
        config = Config(arguments.grid, arguments.block, arguments.cluster, arguments.shmem_size)
        report = gpu.launch(config, kernel, *arguments.arg, order=arguments.order, seed=arguments.seed)
    except (TypeError, ValueError) as error:
        raise Misuse(str(error)) from None
    if arguments.output:
        _write(Path(arguments.output), arguments.arg)
    _print(report, arguments.json)
    return REFUSED if report.errors else ACCEPTED


def _kernel(gpu: Device, arguments: argparse.Namespace) -> Kernel:
    from ..simulate import ParseError, UnsupportedInstruction

    path = Path(arguments.file)
    defines = dict(given.partition("=")[::2] for given in arguments.define)
    options = [f"-I{folder}" for folder in arguments.include]
    try:
        if path.suffix == ".ptx":
            return gpu.load(path, arguments.kernel)
        return gpu.compile(path, arguments.kernel, defines=defines, options=options)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror or error}") from None
    except (CompileError, ParseError, UnsupportedInstruction, ValueError) as error:
        raise Misuse(str(error)) from None


def _write(folder: Path, given: list[Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, value in enumerate(given):
            if isinstance(value, np.ndarray):
                np.save(folder / f"arg{number}.npy", value)
    except OSError as error:
        raise Misuse(f"--output {folder} cannot be written: {error}") from None


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    print(report.output, end="")
    for finding in report.findings:
        print(finding)
    errors = len(report.errors)
    verdict = f"{errors} error{'s' * (errors > 1)}" if errors else "no errors"
    print(f"{verdict}; {report.thread_instructions} instructions of threads")
