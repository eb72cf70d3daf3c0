"""A launch on the simulator from the command line, with a kernel and its arguments, for ``run`` and ``sanitize``.

An argument is a number (``7``, ``2.5``, ``0x1f``), an array of zeros or random numbers (``float32[128x64]``,
``random:bfloat16[128x64]``), or a ``.npy`` file. The argument for a typed map is an array. The argument for a plain
``TensorMap`` or ``CUtensorMap`` is an array with the options of the map: ``float32[128x64]@32x32,swizzle=128B``. The
argument for a struct consists of its bytes: ``hex:0100000000000000``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import CompileError, TensorMapError
from .._files import opened
from .._given import shown
from ..kernel_parameters import MapType
from .compile_limit import limited
from .exit_status import Misuse, Unsupported
from .judgement import seed_of

if TYPE_CHECKING:
    from ..simulate import Config, Device, Kernel, Report

__all__ = ["Mapped", "argument", "arrays_of", "as_json", "kernel_of", "launched"]

_ARRAY = re.compile(r"(?P<random>random:)?(?P<dtype>\w+)\[(?P<shape>[0-9]{1,19}(x[0-9]{1,19})*)\]")
_MAP = re.compile(r"(?P<array>.+)@(?P<box>[0-9]{1,19}(x[0-9]{1,19})*)(?P<options>(,\w+=\w+)*)")
_BYTES = re.compile(r"hex:(?P<digits>([0-9a-fA-F]{2})*)")
_NUMBER = re.compile(r"[+-]?([0-9]+|0[xX][0-9a-fA-F]+)")
_FLOAT = re.compile(r"[+-]?(([0-9]+\.?|[0-9]*\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE)
_MOST_DIGITS = 64  # A number has at most 64 binary digits, because no parameter of a kernel has a longer type.
# The pattern matches dtypes that the package ml_dtypes adds to NumPy.
_NARROW = re.compile(r"bfloat16|u?int[1-7]|float[4-8]_\w+")
_NUMBERS = "biufc"  # Each letter is a kind of NumPy dtypes that contain numbers.
_MAP_BYTES = 128
_SEED = 0  # With a fixed seed, the arrays contain the same random numbers in each run.


@dataclass(frozen=True)
class Mapped:
    """An array with the options of its tensor map."""

    array: np.ndarray
    options: dict[str, Any]


def argument(text: str) -> Any:
    """Return the value of an option ``--arg``.

    Examples
    --------
    >>> argument("7"), argument("0.5"), argument("int16[2x3]").shape
    (7, 0.5, (2, 3))
    >>> argument("int16[8x64]@8x32,swizzle=64B").options
    {'box_dim': (8, 32), 'swizzle': '64B'}
    """
    if _NUMBER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise argparse.ArgumentTypeError(
                f"{shown(text)} has {len(text)} characters; pass a number of at most 64 bits"
            )
        return int(text, 0 if "x" in text.lower() else 10)
    if found := _BYTES.fullmatch(text):
        return bytes.fromhex(found["digits"])
    if found := _MAP.fullmatch(text):
        options = dict(option.split("=") for option in found["options"].split(",")[1:])
        _check_options(options)
        return Mapped(_array(found["array"]), {"box_dim": tuple(map(int, found["box"].split("x"))), **options})
    if _ARRAY.fullmatch(text) or text.endswith(".npy"):
        return _array(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    raise argparse.ArgumentTypeError(
        f"cannot parse {shown(text)}; pass a number, an array (float32[128x64], random:float32[128x64]), a .npy file, "
        "an array with a map (float32[128x64]@32x32), or bytes (hex:0100)"
    )


def _check_options(options: dict[str, str]) -> None:
    """Refuse an option that tensor maps do not have."""
    from .. import TensorMapOptions

    known = [field.name for field in fields(TensorMapOptions) if field.name != "box_dim"]
    for name in options:
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"{shown(name)} is not an option of a map; the options are {', '.join(known)}"
            )


def _array(text: str) -> np.ndarray:
    found = _ARRAY.fullmatch(text)
    try:
        if found is None:
            return _loaded(text)
        return _made(found["dtype"], tuple(map(int, found["shape"].split("x"))), bool(found["random"]))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        what = "is not a .npy file of numbers" if found is None else f"cannot be made: {error}"
        raise argparse.ArgumentTypeError(f"{text} {what}") from None
    except MemoryError:
        raise argparse.ArgumentTypeError(f"{text} does not fit in this machine's memory") from None


def _loaded(path: str) -> np.ndarray:
    """Return the numbers in a .npy file; NumPy stores a dtype of ml_dtypes as bytes without a name (V)."""
    try:
        with opened(path) as file:
            found = np.load(file, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # For a damaged file, NumPy raises ValueError, EOFError, TokenError and other exceptions.
        raise ValueError(f"not an array: {error}") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in f"{_NUMBERS}V" or found.dtype.names:
        raise ValueError("its content is not an array of numbers")
    return found


def _made(dtype_name: str, shape: tuple[int, ...], random: bool) -> np.ndarray:
    dtype = _dtype(dtype_name)
    if not random:
        return np.zeros(shape, dtype)
    generator = np.random.default_rng(_SEED)
    drawn = generator.integers(100, size=shape) if dtype.kind in "iu" else generator.standard_normal(shape)
    return drawn.astype(dtype)


def _dtype(name: str) -> np.dtype:
    if _NARROW.fullmatch(name):
        return _dtype_of_ml_dtypes(name)
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise argparse.ArgumentTypeError(f"{shown(name)} is not a dtype of NumPy or ml_dtypes") from None
    if dtype.kind not in _NUMBERS:
        raise argparse.ArgumentTypeError(
            f"{name} is a dtype whose elements are not numbers; pass a dtype such as float32"
        )
    return dtype


def _dtype_of_ml_dtypes(name: str) -> np.dtype:
    """Return bfloat16 or a similar dtype, whose name NumPy accepts after an import of ml_dtypes."""
    try:
        import ml_dtypes
    except ImportError:
        raise argparse.ArgumentTypeError(
            f"{name} is a dtype of ml_dtypes, which is not installed: pip install ml_dtypes, or pass the array as a "
            ".npy file of its bits, as uint16"
        ) from None
    try:
        return np.dtype(getattr(ml_dtypes, name))
    except (AttributeError, TypeError):
        raise argparse.ArgumentTypeError(f"{shown(name)} is not a dtype of NumPy or ml_dtypes") from None


def arrays_of(given: list[Any]) -> dict[int, np.ndarray]:
    """Return the arrays among the arguments, with the index of each argument."""
    plain = (each.array if isinstance(each, Mapped) else each for each in given)
    return {number: each for number, each in enumerate(plain) if isinstance(each, np.ndarray)}


def launched(
    gpu: Device,
    kernel: Kernel,
    arguments: argparse.Namespace,
    *,
    trace: bool = False,
    before: Callable[[Config, list[Any]], None] = lambda config, given: None,
) -> Report:
    """Run the kernel with the configuration and arguments of the command line.

    The function calls `before` with the configuration and the arguments before the launch.
    """
    from ..simulate import Config, UnsupportedInstruction

    try:
        config = Config(arguments.grid, arguments.block, arguments.cluster, arguments.shmem_size)
        given = [_with_map(gpu, number, each) for number, each in enumerate(arguments.arg)]
        _check_maps(kernel, given)
        given = _as_numbers(kernel, given)
        settings = {"order": arguments.order, "seed": seed_of(arguments), "max_steps": arguments.max_steps}
        settings["trace"] = trace
        before(config, given)
        return gpu.launch(config, kernel, *given, **settings)
    except UnsupportedInstruction as error:
        raise Unsupported(str(error)) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Misuse(str(error)) from None


def _as_numbers(kernel: Kernel, given: list[Any]) -> list[Any]:
    """Convert integers on the command line to the types of their parameters, because text has no type."""
    types = [*(parameter.type for parameter in kernel.parameters), *[None] * len(given)]
    return [_as_number(of_type, each) for of_type, each in zip(types, given, strict=False)]


def _as_number(of_type: object, given: Any) -> Any:
    if not isinstance(given, int):
        return given
    if of_type == "float":
        return float(given)
    return bool(given) if of_type == "bool" and given in (0, 1) else given


def as_json(report: Report) -> dict[str, Any]:
    """Return the report of a launch as a value for ``--json``, without the timeline."""
    told = asdict(replace(report, traced=None))
    del told["traced"]
    return told


def _with_map(gpu: Device, number: int, given: Any) -> Any:
    if not isinstance(given, Mapped):
        return given
    try:
        return gpu.create_tensor_map(given.array, **given.options)
    except (TensorMapError, TypeError, ValueError) as error:
        raise Misuse(f"the map of --arg {number}: {error}") from None


def _check_maps(kernel: Kernel, given: list[Any]) -> None:
    """Refuse an array without options as a tensor map if the kernel does not declare the map's box."""
    for number, (parameter, each) in enumerate(zip(kernel.parameters, given, strict=False)):
        is_typed = isinstance(parameter.type, MapType)
        if parameter.size_bytes == _MAP_BYTES and not is_typed and isinstance(each, np.ndarray):
            example = "x".join(["32"] * each.ndim)
            raise Misuse(f"--arg {number} is for a tensor map: add its box, as ...@{example},swizzle=128B")


def kernel_of(gpu: Device, arguments: argparse.Namespace) -> Kernel:
    """Compile or load the kernel that the command line names."""
    from ..simulate import ParseError, TimeLimitReached, UnsupportedInstruction

    path = Path(arguments.file)
    defines = dict(given.partition("=")[::2] for given in arguments.define)
    options = [f"-I{folder}" for folder in arguments.include]
    try:
        if path.suffix == ".ptx":
            return gpu.load(path, arguments.kernel)
        with limited(arguments.time_limit):
            return gpu.compile(path, arguments.kernel, defines=defines, options=options)
    except (TimeLimitReached, UnsupportedInstruction) as error:
        raise Unsupported(str(error)) from None
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror or error}") from None
    except (CompileError, ParseError, RuntimeError, ValueError) as error:
        raise Misuse(str(error)) from None
