"""The parser of pasted texts, which finds CUDA errors, tensor maps and mbarriers in any text.

The parser accepts the formats of CUTLASS (``globalDim      (64,16,1,1,1)``), TensorRT-LLM and FlashInfer (``tileShapes:
64 16 1 1``), DeepGEMM (``Making TMA desc: ...``), the ``repr`` of this package, and the driver's names.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .. import TensorMapError
from .._cuda_errors import CUDA_ERRORS, CudaError, find_error
from .._data_type import element_bits
from .._limits import DESCRIPTOR_BYTES
from ..codec import decode
from ..params import Params, TiledParams
from .dump import parse_dump
from .members import ENUMS

__all__ = ["Posted", "PostedMap", "read_posted"]


class PostedMap(NamedTuple):
    """A tensor map in a pasted text.

    Attributes
    ----------
    params : Params
        The parameters of the map.
    error : CudaError or None
        The error at the creation of the map, according to the text.
    assumed : tuple of str
        The parameters that the text does not contain.
    descriptor_address : int or None
        The address of the 128 bytes of the map.
    times : int
        The number of occurrences of the map in the text.
    """

    params: Params
    error: CudaError | None = None
    assumed: tuple[str, ...] = ()
    descriptor_address: int | None = None
    times: int = 1


class Posted(NamedTuple):
    """The errors, tensor maps and mbarriers in a pasted text.

    `unread` explains parts of the text that only resemble a map, and `barriers` contains the 64 bits of mbarriers.
    """

    errors: tuple[CudaError, ...]
    maps: tuple[PostedMap, ...]
    unread: tuple[str, ...] = ()
    barriers: tuple[int, ...] = ()


# ---- errors ----

_BY_TEXT = {row.text: row for row in CUDA_ERRORS.values()}
_NAME = r"\b(?:CUDA_ERROR_[A-Z_]+|cudaError[A-Z]\w+)"
_TEXT = "|".join(sorted(map(re.escape, _BY_TEXT), key=len, reverse=True))
# The patterns match the words before an error number in messages of several programs and languages.
_BEFORE_A_NUMBER = (
    r"TMA descriptor|tensor map|(?<!exit )\b(?:code|status)(?=\s*[:：=(\[])|"
    r"(?:return(?:ed)?|result|driver|CUDA|with|[,;(])[ _-]?(?:code|status)|error(?:[ _]code)?|CUresult|result|returned|"
    r"failed with|failed(?=\s*[:=(])|Fehler(?:code)?|erreur|ошибка|错误|エラー"
)
# A number before a unit or a noun, such as "3 files", is not an error.
_COUNTS = r"\s*(?:of|/)\s*\d|\s+(?:exit|lines?|files?|bytes?|times?|tests?|errors?|warnings?|seconds?|ms)\b"
_NUMBER = (
    rf"(?:{_BEFORE_A_NUMBER})\s*(?:[:：=(\[]+\s*)?(?P<number>\d{{1,3}})\b(?!{_COUNTS})"
    r"|^[ \t]*(?P<alone>\d{3})[ \t]*$"
)
_ERROR = re.compile(rf"(?P<name>{_NAME})|(?P<text>(?i:{_TEXT}))|(?i:{_NUMBER})", re.M)
_ABOUT_CUDA = re.compile(
    r"(?i:cuda|\btma\b|tensor ?map|illegal (?:instruction|memory|address)|misaligned|launch failure|"
    r"^\W*(?:error|Fehler)\W*\d+\W*$)|\bcu[A-Z]\w+|CUresult|^\W*\d{3}\W*$"
)
_OF_A_BUILD = re.compile(
    r"\*\*\* \[|\bin make\b|\bg?make(?:\[\d+\])?:|\bninja:", re.I
)  # Build tools such as make and ninja print their own error numbers, such as Error 1.
_NEAR = 400  # The search includes at most 400 characters of a line, because a line may be a whole log.


def _errors(text: str) -> Iterator[tuple[int, CudaError]]:
    """Yield each error with its place; yield an error only once if one line names the error in several ways."""
    last: tuple[int, CudaError] | None = None
    for found in _ERROR.finditer(text):
        begin, end = found.span()
        before = text[max(begin - _NEAR, 0) : begin].rpartition("\n")[2]
        line = before + found[0] + text[end : end + _NEAR].partition("\n")[0]
        error = _error_of(found)
        if found["number"] and _OF_A_BUILD.search(line):
            continue
        if error and _ABOUT_CUDA.search(line) and (begin - len(before), error) != last:
            last = begin - len(before), error
            yield begin, error


def _error_of(found: re.Match[str]) -> CudaError | None:
    if found["name"]:
        return find_error(found["name"])
    if found["text"]:
        return _BY_TEXT[found["text"].lower()]
    return find_error(int(found["number"] or found["alone"]))


# ---- fields ----

_ALIASES = {
    "descriptor": ("TMA Desc Addr",),
    "data_type": ("tmaFormat", "format", "tensorDataType", "dataType", "data_type"),
    "rank": ("dim", "tensorRank", "rank"),
    "global_address": ("gmem_address", "gmem", "globalAddress", "global_address"),
    "global_dim": ("globalDim", "Shape", "global_dim"),
    "global_strides": ("globalStrides", "Stride", "global_strides"),
    "box_dim": ("boxDim", "tileShapes", "box_dim"),
    "element_strides": ("elementStrides", "tileStrides", "element_strides"),
    "interleave": ("interleave",),
    "swizzle": ("swizzleType", "swizzle"),
    "l2_promotion": ("l2Promotion", "l2_promotion"),
    "oob_fill": ("oobFill", "oob_fill"),
}
_PARAMETERS = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
_INTEGER = r"-?(?:0x[0-9a-fA-F]{1,16}|\d{1,25})"
_FIELD = re.compile(
    rf"(?<![\w.])(?P<key>{'|'.join(sorted(_PARAMETERS, key=len, reverse=True))})(?:\s*[:=]\s*|[ \t]+)"
    rf"(?P<value>\([^()\n]*\)|\[[^\[\]\n]*\]|\{{[^{{}}\n]*\}}|{_INTEGER}(?:[ \t]+{_INTEGER})*(?![\w.])|[A-Z][\w.]+)"
)
_DEEP_GEMM = re.compile(
    r"Making TMA desc: global memory: {n} {n}, shared memory: {n} {n}, outer stride: {n}, swizzle: {n}"
    # A number has at most 25 digits, because Python's int() refuses numbers of 5,000 digits.
    r"(?: \(base: \d{1,25}\))?,? elem size: {n}".replace("{n}", r"(\d{1,25})")
)
# A log with the field tmaFormat prints the error before the fields, and other logs print the error after the fields.
_ERROR_FIRST = ("tmaFormat",)
_NEEDED = ("global_dim", "box_dim", "global_strides")


@dataclass
class _Dump:
    """The fields of one tensor map that the parser has found in a text."""

    values: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    before: CudaError | None = None
    behind: CudaError | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in _NEEDED if not isinstance(self.values.get(name), tuple))

    @property
    def error(self) -> CudaError | None:
        is_told_first = self.keys.get("data_type") in _ERROR_FIRST
        return self.before if is_told_first or self.behind is None else self.behind


def _value(name: str, text: str) -> Any:
    """Return a tuple of integers, an integer, or the value of an enum's name; return None for any other text."""
    if re.fullmatch(r"[A-Z][\w.]+", text):
        enum = ENUMS.get(name)
        try:
            return (
                int(enum.parse(re.sub(r"CU_TENSOR_MAP_(DATA_TYPE_)?", "", text.split(".")[-1]), name)) if enum else None
            )
        except ValueError:
            return None
    values = tuple(int(each, 0) if "x" in each else int(each) for each in re.findall(_INTEGER, text))
    is_one = len(values) == 1 and text[0] not in "([{"
    return values[0] if is_one else values


def _dumps(text: str, errors: Iterable[tuple[int, CudaError]]) -> list[_Dump]:
    """Return the fields of each tensor map in the order of the text; a repeated field begins the next map."""
    events: list[tuple[int, Any]] = [(found.start(), found) for found in _FIELD.finditer(text)]
    events += errors
    dumps = [_Dump()]
    last: CudaError | None = None
    for _, event in sorted(events, key=lambda pair: pair[0]):
        dump = dumps[-1]
        if isinstance(event, CudaError):
            last = event
            if dump.values and dump.behind is None:
                dump.behind = event
            continue
        name = _PARAMETERS[event["key"]]
        value = _value(name, event["value"])
        if value is None:
            continue
        if name in dump.values or (dump.behind and not dump.missing) or not dump.values:
            dumps.append(dump := _Dump(before=last))
        dump.values[name], dump.keys[name] = value, event["key"]
    return dumps[1:]


def _from_fields(dump: _Dump) -> PostedMap:
    values = dict(dump.values)
    address, count = values.pop("descriptor", None), values.pop("rank", None)
    most = len(values["global_dim"])
    rank = count if isinstance(count, int) and 0 < count <= most else most
    values.setdefault("data_type", 0)
    for name in ("global_dim", "box_dim", "element_strides"):
        value = values.get(name, (1,) * rank)
        values[name] = value[:rank] if isinstance(value, tuple) else (value,)
    values["global_strides"] = _strides(values, rank, dump.keys.get("global_strides", ""))
    optional = ("data_type", "global_address", "interleave", "swizzle", "l2_promotion", "oob_fill")
    values = {name: value for name, value in values.items() if isinstance(value, int | tuple)}
    assumed = tuple(name for name in optional if name not in dump.values)
    params = TiledParams(**{"global_address": 0} | values)
    return PostedMap(params, dump.error, assumed, address if isinstance(address, int) else None)


def _strides(values: dict[str, Any], rank: int, key: str) -> tuple[int, ...]:
    """Return the strides of the driver; CUTLASS also prints the innermost stride, which is the size of an element."""
    strides: tuple[int, ...] = values["global_strides"]
    element_bytes = element_bits(values["data_type"]) // 8 if values["data_type"] in range(16) else 0
    has_innermost = key == "globalStrides" and len(strides) >= rank and strides[:1] == (element_bytes,)
    return strides[1:rank] if has_innermost else strides[: rank - 1]


_TYPE_OF_BYTES = {1: "UINT8", 2: "BFLOAT16", 4: "FLOAT32", 8: "FLOAT64"}
_SWIZZLE_OF_BYTES = {0: 0, 32: 1, 64: 2, 128: 3}


def _deep_gemm(text: str) -> Iterator[PostedMap]:
    """Yield tensor maps from inner and outer extents, a stride in elements, and the swizzle in bytes."""
    for found in _DEEP_GEMM.finditer(text):
        inner, outer, box_inner, box_outer, stride, swizzle, element_bytes = map(int, found.groups())
        if element_bytes in _TYPE_OF_BYTES and swizzle in _SWIZZLE_OF_BYTES:
            params = TiledParams(
                data_type=int(ENUMS["data_type"][_TYPE_OF_BYTES[element_bytes]]),
                global_address=0,
                global_dim=(inner, outer),
                global_strides=(stride * element_bytes,),
                box_dim=(box_inner, box_outer),
                element_strides=(1, 1),
                swizzle=_SWIZZLE_OF_BYTES[swizzle],
            )
            yield PostedMap(params, assumed=("data_type", "global_address"))


# ---- bytes ----

_LITERAL = re.compile(r"""b(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""")
_DIGITS = re.compile(r"(?<![0-9a-z])[0-9a-f][\s,;_(){}\[\]0-9a-fxul]{200,3000}(?![0-9a-z])", re.I)
# The pattern matches text that may be next to the digits of a dump: an address, an index, or the prefix 0x.
_AROUND = re.compile(
    r"^[ \t]*(?:(?:0x)?[0-9a-f]{3,16}(?:[ \t]*<[^<>\n]*>)?:|[\w.>-]*\[\d{1,3}\][ \t]*[:=]?)[ \t]+|\\x", re.I | re.M
)
# A line of hexdump -C or of xxd contains 16 bytes in the order of memory, and their text.
_LINE_OF_A_DUMP = re.compile(
    r"^[ \t]*[0-9a-f]{7,8}(?::|  )[ \t]*(?P<bytes>(?:[0-9a-f]{2} {0,2}){15}[0-9a-f]{2})  .*$", re.I | re.M
)
_HEX_LIST = re.compile(r"[\[({]\s*0x[0-9a-f]+u?l{0,2}(?:\s*,\s*0x[0-9a-f]+u?l{0,2}){15,127}\s*(?:,\s*)?[\])}]", re.I)
_NUMBER_LIST = re.compile(r"[\[({]\s*\d+(?:\s*,\s*\d+){15,127}\s*(?:,\s*)?[\])}]")
_WORD_BYTES = {128: 1, 32: 4, 16: 8}


def _bytes_of(text: str) -> Iterator[bytes]:
    """Yield each group of 128 bytes, as a bytes literal of Python, decimal words in a list, or hex digits."""
    readers: tuple[tuple[re.Pattern[str], Callable[[str], bytes | None]], ...] = (
        (_LITERAL, _literal),
        (_NUMBER_LIST, _decimal),
        (_HEX_LIST, _hexadecimal),
        (_DIGITS, _hexadecimal),
    )
    for pattern, read in readers:
        if pattern is _DIGITS:
            text = _without_addresses(text)
        found = [raw for each in pattern.finditer(text) if (raw := read(each[0])) and len(raw) == DESCRIPTOR_BYTES]
        if found:
            yield from found
            return


def _without_addresses(text: str) -> str:
    """Return the digits of a dump without addresses; lines of bytes do not change."""
    text = _LINE_OF_A_DUMP.sub(lambda found: re.sub(r"\s", "", found["bytes"]), text)
    return _AROUND.sub(lambda found: " " * (found[0] != "\\x"), text)


def _literal(text: str) -> bytes | None:
    try:
        with warnings.catch_warnings():  # Python 3.12 emits a warning for an escape such as \\9.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, bytes) else None


def _decimal(text: str) -> bytes | None:
    words = [int(each) for each in re.findall(r"\d{1,25}", text)]
    size = _WORD_BYTES.get(len(words), 0)
    fits = size and max(words) < 1 << 8 * size
    return b"".join(word.to_bytes(size, "little") for word in words) if fits else None


def _hexadecimal(text: str) -> bytes | None:
    try:
        return parse_dump(text)
    except TensorMapError:
        return None


# ---- mbarriers ----

_BARRIER = re.compile(
    r"mbarrier(?:[ \t]+(?:word|state))?[ \t]*(?:[:=][ \t]*)?0x(?P<word>[0-9a-f]{1,16})\b"
    r"|mbarrier[^\n]{0,60}?\b(?:0x)?(?P<later>[0-9a-f]{16})\b"
    # A debugger prints the address of an mbarrier, and then its value as 16 hexadecimal digits.
    r"|\A\s*(?:0x[0-9a-f]+:\s*)?(?:0x)?(?P<alone>[0-9a-f]{16})\s*\Z",
    re.I,
)


def _barriers(text: str) -> Iterator[int]:
    """Yield the 64 bits of each mbarrier, which follow the word mbarrier or are the whole text."""
    for found in _BARRIER.finditer(text):
        yield int(found["word"] or found["later"] or found["alone"], 16)


# ---- the whole text ----


def read_posted(text: str) -> Posted:
    """Return the errors and the tensor maps in a text, each of them once, in the order of the text.

    Examples
    --------
    >>> posted = read_posted("RuntimeError: CUDA error: misaligned address")
    >>> [error.number for error in posted.errors], posted.maps
    ([716], ())
    """
    errors = list(_errors(text))
    dumps = _dumps(text, errors)
    found = [_from_fields(dump) for dump in dumps if not dump.missing]
    unread = [
        f"fields without {', '.join(dump.missing)} are not a whole map: perhaps several processes wrote at once"
        for dump in dumps
        if dump.missing and len(dump.values) > 2
    ]
    found += _deep_gemm(text)
    for raw in _bytes_of(text):
        try:
            found.append(PostedMap(decode(raw)))
        except TensorMapError as error:
            unread.append(str(error))
    words = tuple(dict.fromkeys(_barriers(text)))
    return Posted(
        tuple(dict.fromkeys(error for _, error in errors)), _counted(found), tuple(dict.fromkeys(unread)), words
    )


def _counted(maps: list[PostedMap]) -> tuple[PostedMap, ...]:
    """Merge equal maps, even if the addresses of their bytes differ."""
    counts: dict[Any, PostedMap] = {}
    for each in maps:
        key = replace(each.params, global_address=0), each.params.global_address % 128, each.error
        first = counts.get(key)
        counts[key] = each if first is None else first._replace(times=first.times + 1)
    return tuple(counts.values())
