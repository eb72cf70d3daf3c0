"""The conversion of a recorded launch to JSON values and back. The texts and the memory of a launch are blobs, whose
names are their SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from ..._budget import PARAMETER_BYTES
from ...simulate._config import Config
from ...simulate._memory.global_memory import Former
from ...simulate._ptx import Place
from ...simulate._warps.spaces import GRID_WORKSPACE
from .recorded import Hardware, MemorySegment, RecordedLaunch

__all__ = ["blobs_of", "launch_of", "values_of_launch"]

_CONFIG = ("grid", "block", "cluster", "shmem_size", "is_cooperative", "programmatic_stream_serialization")
_HARDWARE = ("name", "result", "seconds")
# Addresses on a GPU are usually below the first address of the simulator, such as 0x302000000 on an H200.
_LEAST_ADDRESS = 1 << 16
_PLACE = ("file", "line", "column", "function")
_MOST_MULTIPROCESSORS = 1 << 16

Values = dict[str, Any]


def values_of_launch(launch: RecordedLaunch) -> tuple[Values, dict[str, bytes]]:
    """Return the values of a launch, and the blobs to which the values refer."""
    blobs: dict[str, bytes] = {}
    keys: dict[int, str] = {}

    def key_of(data: bytes) -> str:
        if id(data) not in keys:
            keys[id(data)] = hashlib.sha256(data).hexdigest()
        blobs[keys[id(data)]] = data
        return keys[id(data)]

    place = launch.launched_at
    values = {
        "kernel": launch.kernel,
        "entry": launch.entry,
        "ptx": key_of(launch.ptx.encode("utf-8", "surrogatepass")),
        "config": {name: getattr(launch.config, name) for name in _CONFIG},
        "arguments": [argument.hex() for argument in launch.arguments],
        "tensor_maps": launch.tensor_maps,
        "memory": [
            {"address": each.address, "data": key_of(each.data), "name": each.name, "read_only": each.is_read_only}
            for each in launch.memory
        ],
        "variables": dict(launch.variables),
        "formers": [list(each) for each in launch.formers],
        "next_address": launch.next_address,
        "compute_capability": launch.compute_capability,
        "multiprocessor_count": launch.multiprocessor_count,
        "runtime": launch.runtime,
        "sources": {name: key_of(text.encode("utf-8", "surrogatepass")) for name, text in launch.sources.items()},
        "generated": launch.generated,
        "embedded": {name: _place_values(each) for name, each in launch.embedded.items()},
        "source": key_of(launch.source.encode("utf-8", "surrogatepass")),
        "parameter_names": launch.parameter_names,
        "launched_at": _place_values(place) if place is not None else None,
    }
    if launch.hardware is not None:
        changed = [{"address": each.address, "data": key_of(each.data)} for each in launch.hardware.changed]
        values["hardware"] = {**{name: getattr(launch.hardware, name) for name in _HARDWARE}, "changed": changed}
    return values, blobs


def blobs_of(values: Mapping[str, Any]) -> list[str]:
    """Return the keys of the blobs to which a launch refers. Each key occurs once.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the values do not describe a launch.
    """
    memory = [_typed(each, dict) for each in _typed(values["memory"], list)]
    memory += [_typed(each, dict) for each in _typed(_typed(values.get("hardware", {}), dict).get("changed", []), list)]
    keys = [
        values["ptx"],
        values["source"],
        *_typed(values["sources"], dict).values(),
        *(each["data"] for each in memory),
    ]
    return [*dict.fromkeys(_typed(key, str) for key in keys)]


def launch_of(values: Mapping[str, Any], blobs: Mapping[str, bytes]) -> RecordedLaunch:
    """Return the launch that the result of :func:`values_of_launch` describes.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the values do not describe a launch.
    """
    texts = {key: blobs[key].decode("utf-8", "surrogatepass") for key in _texts(values)}
    config = _typed(values["config"], dict)
    extents: dict[str, Any] = {name: _extents(config[name]) for name in ("grid", "block", "cluster")}
    flags = {name: _typed(config[name], bool) for name in _CONFIG[4:]}
    place = values["launched_at"]
    major, minor = _numbers(values["compute_capability"], 99)
    return RecordedLaunch(
        kernel=_typed(values["kernel"], str),
        entry=_typed(values["entry"], str),
        ptx=texts[values["ptx"]],
        config=Config(**extents, shmem_size=_number(config["shmem_size"], 1 << 31), **flags),
        arguments=tuple(_argument(each) for each in _typed(values["arguments"], list)),
        tensor_maps=tuple(_numbers(values["tensor_maps"], 1 << 16)),
        memory=tuple(_memory(values["memory"], blobs)),
        variables={_typed(k, str): _number(v, 1 << 63) for k, v in _typed(values["variables"], dict).items()},
        formers=tuple(_former(each) for each in _typed(values["formers"], list)),
        next_address=_number(values["next_address"], GRID_WORKSPACE >> 1),
        compute_capability=(major, minor),
        multiprocessor_count=max(1, _number(values["multiprocessor_count"], _MOST_MULTIPROCESSORS)),
        runtime=_typed(values["runtime"], str),
        sources={_typed(name, str): texts[key] for name, key in values["sources"].items()},
        generated=tuple(_typed(each, str) for each in _typed(values["generated"], list)),
        embedded={_typed(k, str): _place(_typed(v, dict)) for k, v in _typed(values["embedded"], dict).items()},
        source=texts[values["source"]],
        parameter_names=tuple(_typed(each, str) for each in _typed(values["parameter_names"], list)),
        launched_at=_place(_typed(place, dict)) if place is not None else None,
        hardware=_hardware(_typed(values["hardware"], dict), blobs) if "hardware" in values else None,
    )


def _hardware(values: Values, blobs: Mapping[str, bytes]) -> Hardware:
    seconds = _typed(values["seconds"], float)
    changed = [MemorySegment(start, data) for start, data, _ in _ascending(_typed(values["changed"], list), blobs)]
    return Hardware(_typed(values["name"], str), _number(values["result"], 1 << 31), seconds, tuple(changed))


def _texts(values: Mapping[str, Any]) -> list[str]:
    return [values["ptx"], values["source"], *values["sources"].values()]


def _memory(values: list[Values], blobs: Mapping[str, bytes]) -> Iterator[MemorySegment]:
    """Yield the segments of memory by ascending address."""
    for start, data, each in _ascending(values, blobs):
        yield MemorySegment(start, data, _typed(each["name"], str), _typed(each["read_only"], bool))


def _ascending(values: list[Values], blobs: Mapping[str, bytes]) -> Iterator[tuple[int, bytes, Values]]:
    """Yield the address and content of each segment. Refuse overlapping segments, and addresses outside the memory."""
    end = _LEAST_ADDRESS
    for each in values:
        data, start = blobs[each["data"]], _number(each["address"], GRID_WORKSPACE >> 1)
        if start < end:
            raise ValueError(f"its memory at 0x{start:x} begins before 0x{end:x}, the end of the preceding memory")
        end = start + len(data)
        yield start, data, each


def _extents(values: Any) -> tuple[int, ...] | None:
    return None if values is None else tuple(_numbers(values, 1 << 31))


def _argument(text: Any) -> bytes:
    data = bytes.fromhex(_typed(text, str))
    if len(data) > PARAMETER_BYTES:
        raise ValueError(f"an argument has {len(data)} bytes; a kernel takes at most {PARAMETER_BYTES}")
    return data


def _former(values: Any) -> Former:
    start, stop, name, end = _typed(values, list)
    return Former(_number(start, 1 << 63), _number(stop, 1 << 63), _typed(name, str), _typed(end, str))


def _place_values(place: Place) -> Values:
    return {name: getattr(place, name) for name in _PLACE}


def _place(values: Values) -> Place:
    function = values["function"]
    line, column = (_number(values[name], 1 << 31) for name in ("line", "column"))
    return Place(_typed(values["file"], str), line, column, None if function is None else _typed(function, str))


def _numbers(values: Any, limit: int) -> list[int]:
    return [_number(each, limit) for each in _typed(values, list)]


def _number(value: Any, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{str(value)[:40]} is not an integer from 0 to {limit - 1}")
    return value


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{str(value)[:40]} is no {kind.__name__}")
    return value
