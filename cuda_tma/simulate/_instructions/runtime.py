"""Functions that PTX calls but does not define: ``printf``, ``assert``, ``malloc`` and ``free`` of CUDA C++.

Source: CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
Source of the layout of vprintf's arguments: PTX Writer's Guide to Interoperability, "System Calls".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._budget import OUTPUT_CHARACTERS, TEXT_CHARACTERS
from .._memory.global_memory import Segment
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array
from ._table import Group

__all__ = ["RUNTIME"]

_CONVERSION = re.compile(r"%[-+ #0]*([1-9]\d*|\*)?(\.(\d+|\*))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")
_LONG = ("ll", "l", "j", "z", "t")
# For an int with the length modifier h or hh, printf prints only the low 16 or 8 bits.
_SHORT = {"h": 16, "hh": 8}
_MOST_DIGITS = 9  # The width and the precision of a printf conversion have at most nine digits.
_HEAP_BYTES = 8 << 20  # The default of cudaLimitMallocHeapSize is 8 MB.


def vprintf(group: Group, lanes: Lanes, formats: np.ndarray, arguments: np.ndarray) -> np.ndarray:
    """Append the printed text of each thread to the output of the report, up to the largest size of the output."""
    state, counts = group.parts.runtime, []
    if state.printed > OUTPUT_CHARACTERS:
        return np.full(len(formats), -1)
    for lane, pattern, address in zip(as_array(lanes), formats, arguments, strict=True):
        room = OUTPUT_CHARACTERS - state.printed
        text, count = _formatted(group, int(lane), _text(group, int(lane), int(pattern)), int(address), room)
        state.output.append(text)
        state.printed += len(text)
        counts.append(count)
        if state.printed > OUTPUT_CHARACTERS:
            state.output.append(
                f"\n... the kernel prints more than {OUTPUT_CHARACTERS} characters: the rest is dropped\n"
            )
            break
    return np.array(counts + [-1] * (len(formats) - len(counts)))


def _bytes(group: Group, lane: int, address: int, size: int) -> bytes:
    one = np.array([lane])
    ((_, buffer, positions, _),) = group.parts.memory.pieces("", one, np.array([address]), 1)
    return buffer.bytes[int(positions[0]) : int(positions[0]) + size].tobytes()


def _text(group: Group, lane: int, address: int) -> str:
    return _bytes(group, lane, address, TEXT_CHARACTERS).split(b"\0")[0].decode("utf-8", "replace")


class _Arguments:
    """The arguments of a printf in memory, each at a multiple of its size.

    The attribute `count` is the number of arguments that have been read.
    """

    def __init__(self, group: Group, lane: int, address: int):
        self._group, self._lane, self._at = group, lane, address
        self.count = 0

    def take(self, dtype: str) -> Any:
        size = np.dtype(dtype).itemsize
        self._at, self.count = -(-self._at // size) * size + size, self.count + 1
        return np.frombuffer(_bytes(self._group, self._lane, self._at - size, size), dtype)[0].item()

    def text(self) -> str:
        address = self.take("i8")
        return _text(self._group, self._lane, address) if address else "(null)"


def _formatted(group: Group, lane: int, pattern: str, address: int, room: int) -> tuple[str, int]:
    """Return the text that printf writes in C, and the number of arguments that it reads.

    The text ends at the first conversion beyond `room` characters.
    """
    given = _Arguments(group, lane, address)
    pieces, end = [], 0
    for found in _CONVERSION.finditer(pattern):
        group.parts.check_time()
        pieces += [pattern[end : found.start()], _converted(found, given)]
        end, room = found.end(), room - len(pieces[-1]) - len(pieces[-2])
        if room < 0:
            return "".join(pieces), given.count
    return "".join([*pieces, pattern[end:]]), given.count


def _converted(found: re.Match[str], given: _Arguments) -> str:
    """Return the text that a conversion of printf writes."""
    conversion, length = found[5], found[4]
    if conversion == "%":
        return "%"
    width, precision = (given.take("i4") if part == "*" else _count(part) for part in found.group(1, 3))
    spelled = _spelled(found[0], width, precision)
    if conversion == "s":
        return f"{spelled}s" % given.text()
    if conversion == "p":
        return f"{spelled}s" % hex(given.take("u8"))
    if conversion == "c":
        return f"{spelled}c" % (given.take("i4") & 0xFF)
    if conversion in "aA":
        text = _hexadecimal(given.take("f8"))
        return text.upper() if conversion == "A" else text
    if conversion in "eEfFgG":
        return f"{spelled}{conversion}" % given.take("f8")
    kind = "i" if conversion in "di" else "u"
    value = given.take(kind + ("8" if length in _LONG else "4"))
    if length in _SHORT:
        value = _narrowed(value, _SHORT[length], kind == "i")
    text = f"{spelled}{'d' if conversion in 'diu' else conversion}" % value
    # The prefix of an octal number is 0o in Python and 0 in C.
    return text.replace("0o", "0") if conversion == "o" else text


def _count(digits: str | None) -> int | None:
    """Return a width or precision; ignore the digits beyond the largest number of digits."""
    return None if digits is None else int(digits[:_MOST_DIGITS])


def _spelled(conversion: str, width: int | None, precision: int | None) -> str:
    """Return the flags, width and precision of a conversion, whose spelling is equal in Python and C.

    A negative width aligns to the left, and a negative precision is ignored (C17 7.21.6.1). Width and precision are at
    most the length of the longest text that the function writes for a conversion.
    """
    flags = conversion[1 : len(conversion) - len(conversion[1:].lstrip("-+ #0"))]
    spelled = f"%{flags}"
    if width is not None:
        spelled += str(max(-TEXT_CHARACTERS, min(width, TEXT_CHARACTERS)))
    return spelled if precision is None or precision < 0 else f"{spelled}.{min(precision, TEXT_CHARACTERS)}"


def _hexadecimal(value: float) -> str:
    """Return the text that the conversion ``%a`` writes in C, without trailing zeros."""
    digits, point, exponent = float(value).hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}{point}{exponent}"


def _narrowed(value: int, bits: int, signed: bool) -> int:
    low = value % (1 << bits)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


def assert_fail(
    group: Group,
    lanes: Lanes,
    message: np.ndarray,
    file: np.ndarray,
    line: np.ndarray,
    function: np.ndarray,
    *_: object,
) -> np.ndarray:
    """Raise the fault of a failed assertion for the first thread that fails."""
    lane = int(as_array(lanes)[0])
    text, where, name = (_text(group, lane, int(address[0])) for address in (message, file, function))
    raise Fault("fault", f"{where}:{int(line[0])}: {name}: assertion `{text}` failed", lanes)


def malloc(group: Group, lanes: Lanes, sizes: np.ndarray) -> np.ndarray:
    """Return the address of a new block of the heap for each thread; 0 if the heap has too little free memory."""
    memory = group.parts.memory.all_global
    left, found = _HEAP_BYTES - sum(len(segment.bytes) for segment in group.parts.runtime.heap.values()), []
    for size in map(int, sizes):
        left -= max(16, size) if (fits := 0 <= size <= left) else 0
        if not fits:
            found.append(0)
        else:
            name = f"{size} bytes of malloc"
            segment = memory.allocate(np.zeros(max(16, size), np.uint8), name)
            group.parts.runtime.heap[segment.start] = segment
            found.append(segment.start)
    return np.array(found, np.int64)


def free(group: Group, lanes: Lanes, addresses: np.ndarray) -> np.ndarray:
    """Release the block of the heap at each thread's address."""
    for address in map(int, addresses):
        segment: Segment | None = group.parts.runtime.heap.pop(address, None)
        if segment is not None:
            group.parts.memory.all_global.remove(segment)
        elif address:
            raise Fault("fault", f"free of 0x{address:x}, which malloc did not return", lanes)
    return np.zeros(len(addresses), np.int64)


RUNTIME: dict[str, Callable[..., np.ndarray]] = {
    "vprintf": vprintf,
    "__assertfail": assert_fail,
    "__assert_fail": assert_fail,
    "malloc": malloc,
    "free": free,
}
