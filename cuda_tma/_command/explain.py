"""The command ``cuda-tma explain``, which explains a CUDA error, a tensor map, or the 64 bits of an mbarrier.

Every statement has a source, which is a rule or a row of the table of errors.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from .._cuda_errors import CUDA_ERRORS, OBSERVED, CudaError
from .._files import first_bytes
from ..barrier import decode_barrier
from ..codec import diff, encode
from ..hang import MbarrierWait
from ..params import Im2colParams, Params, TiledParams
from ..rules import RULES, Violation, check
from .console import print_json
from .exit_status import ACCEPTED, REFUSED, Misuse
from .members import word_of
from .posted import Posted, PostedMap, read_posted

__all__ = ["Statement", "of_barrier", "of_error", "of_map", "run"]

INVALID_VALUE = 1
_MOST_BYTES = 1 << 22  # The command reads a log of at most 4 MB.
_DESCRIPTOR_ALIGNMENT = 64
_WHERE_DESCRIPTORS_LIE = "CUDA 13.5 driver API, cuTensorMapEncode*: tensorMap"
_FIELDS = "the table of fields"
_RULES = "the table of rules"
_NOT_IN_THE_TEXT = "the text"
_BARRIER_SOURCE = "the table of an mbarrier's bits: observed: driver 580, sm_90"


class Statement(NamedTuple):
    """A sentence of an explanation, with its source."""

    text: str
    source: str


def run(arguments: argparse.Namespace) -> int:
    """Read the pasted text, and print an explanation."""
    text = _given(arguments.text)
    posted = read_posted(text)
    if not any(posted):
        raise Misuse(
            f"no known content; pass one of the driver's errors {', '.join(map(str, CUDA_ERRORS))} (as error 715, "
            "CUDA_ERROR_..., CUDA error: misaligned address), the fields of a tensor map (globalDim, boxDim, ...), its "
            "128 bytes, or the word of an mbarrier (mbarrier 0x...)"
        )
    maps = [(each, _violations(each.params, arguments.compute_capability)) for each in posted.maps]
    if arguments.json:
        print_json(_as_json(posted, maps, arguments.compute_capability))
    else:
        _print(posted, maps, arguments.compute_capability)
    return REFUSED if posted.unread or any(_errors_of(found) for _, found in maps) else ACCEPTED


def _given(words: list[str]) -> str:
    """Return the text from standard input, from a file, or from the words of the command line."""
    if not words or words == ["-"]:
        if sys.stdin is None:
            raise Misuse("standard input is closed; pass the text or a file")
        return sys.stdin.buffer.read(_MOST_BYTES).decode("utf-8", "replace")
    if len(words) == 1 and len(words[0]) < 4096 and "\0" not in words[0] and os.path.exists(words[0]):
        try:
            data = first_bytes(words[0], _MOST_BYTES)
        except OSError as error:
            raise Misuse(f"{words[0]} cannot be read: {error.strerror or error}") from None
        return repr(data) if len(data) == 128 else data.decode("utf-8", "replace")
    return " ".join(words)


# ---- statements ----


def of_error(error: CudaError) -> Iterator[Statement]:
    """Yield statements about the meaning of an error, and about its causes in TMA."""
    yield Statement(f'{error.name} ({error.number}, "{error.text}"): {error.meaning}.', error.source)
    if error.causes:
        yield Statement(f"Causes of {error.number} on an H200: {'; '.join(error.causes)}.", error.source)
    elif error.is_sticky:
        yield Statement(f"No recorded misuse of TMA caused {error.number} on an H200.", OBSERVED)


def of_map(posted: PostedMap, found: tuple[Violation, ...], capability: tuple[int, int]) -> Iterator[Statement]:
    """Yield statements about whether a map is legal, and about the error at its creation."""
    params, errors = posted.params, _errors_of(found)
    for violation in found:
        yield Statement(violation.sentence, f"rule {violation.rule}: {violation.source}")
    if not errors:
        device = "{}.{}".format(*capability)
        yield Statement(
            f"The map is legal on compute capability {device}: none of {len(RULES)} rules is broken.",
            _RULES,
        )
    others = diff(encode(params), encode(replace(params, unexplained=()))) if params.unexplained else ()
    for other in others:
        yield Statement(f"{other.field}: {other.a}, where the driver writes {other.b}: {other.meaning}.", _FIELDS)
    yield from _of_both(posted, errors)
    address = posted.descriptor_address
    if address is not None and address % _DESCRIPTOR_ALIGNMENT:
        yield Statement(
            f"Its 128 bytes were to be written at {address:#x}, which is not a multiple of "
            f"{_DESCRIPTOR_ALIGNMENT}: declare the CUtensorMap with its alignment.",
            _WHERE_DESCRIPTORS_LIE,
        )
    if posted.assumed:
        yield Statement(f"Not in the text, usual values assumed: {', '.join(posted.assumed)}.", _NOT_IN_THE_TEXT)


def _of_both(posted: PostedMap, errors: list[Violation]) -> Iterator[Statement]:
    """Yield a statement about whether the map explains the error at its creation."""
    error = posted.error
    if error is None:
        return
    if error.number == INVALID_VALUE:
        why = "That is why its creation returned" if errors else "No rule explains why its creation returned"
        yield Statement(f"{why} {error.name}.", _RULES if errors else error.source)
    elif error.is_sticky:
        whose = "also" if errors else "not about this map: it is"
        text = f"Error {error.number} at its creation is {whose} that of an earlier kernel, and sticky."
        yield Statement(text, error.source)


def of_barrier(word: int) -> Iterator[Statement]:
    """Yield statements about the counts in the 64 bits of an mbarrier."""
    barrier = decode_barrier(word)
    if not word:
        text = "Zeros: no mbarrier was made there, or it is in use: shared memory then has its word only after inval."
    else:
        state = MbarrierWait("the mbarrier", None, barrier.phase, barrier).state
        text = f"{barrier}: in the phase of parity {barrier.phase}, {state}."
    yield Statement(text, _BARRIER_SOURCE)


def _violations(params: Params, capability: tuple[int, int]) -> tuple[Violation, ...]:
    return check(params, capability, True, dtype_name=_dtype_name(params))


def _errors_of(found: tuple[Violation, ...]) -> list[Violation]:
    return [violation for violation in found if violation.severity == "error"]


def _dtype_name(params: Params) -> str:
    return word_of("data_type", params.data_type) or f"data type {params.data_type}"


def _described(posted: PostedMap) -> str:
    """Return a description of a tensor map in one line, in tensor order."""
    params = posted.params
    parts = [_dtype_name(params), f"shape {tuple(reversed(params.global_dim))}"]
    if isinstance(params, TiledParams):
        parts.append(f"box {tuple(reversed(params.box_dim))}")
    else:
        # The decoder returns Im2colParams for every tensor map that is not tiled.
        assert isinstance(params, Im2colParams)
        parts.append(f"im2col, {params.channels_per_pixel} channels of {params.pixels_per_column} pixels")
    parts.append(f"swizzle {word_of('swizzle', params.swizzle) or params.swizzle}")
    if params.interleave:
        parts.append(f"interleave {word_of('interleave', params.interleave) or params.interleave}")
    return ", ".join(parts) + f" ({posted.times} times)" * (posted.times > 1)


# ---- output ----


def _print(posted: Posted, maps: list[tuple[PostedMap, Any]], capability: tuple[int, int]) -> None:
    for error in posted.errors:
        print(f"error {error.number}")
        _print_statements(of_error(error))
    for number, (each, found) in enumerate(maps, 1):
        print(f"map {number} of {len(maps)}: {_described(each)}")
        _print_statements(of_map(each, found, capability))
    for word in posted.barriers:
        print(f"mbarrier {word:#018x}")
        _print_statements(of_barrier(word))
    for why in posted.unread:
        print(why)


def _print_statements(statements: Iterator[Statement]) -> None:
    for statement in statements:
        print(f"  - {statement.text} [{statement.source}]")


def _as_json(posted: Posted, maps: list[tuple[PostedMap, Any]], capability: tuple[int, int]) -> dict[str, Any]:
    return {
        "errors": [
            {
                "number": error.number,
                "name": error.name,
                "sticky": error.is_sticky,
                "causes": error.causes,
                "statements": [each._asdict() for each in of_error(error)],
            }
            for error in posted.errors
        ],
        "maps": [
            {
                "params": asdict(each.params),
                "mode": type(each.params).__name__,
                "accepted": not _errors_of(found),
                "error": each.error and each.error.number,
                "times": each.times,
                "violations": [asdict(violation) | {"message": violation.message} for violation in found],
                "statements": [statement._asdict() for statement in of_map(each, found, capability)],
            }
            for each, found in maps
        ],
        "barriers": [
            {
                "word": f"{word:#018x}",
                **asdict(decode_barrier(word)),
                "statements": [s._asdict() for s in of_barrier(word)],
            }
            for word in posted.barriers
        ],
        "unread": posted.unread,
    }
