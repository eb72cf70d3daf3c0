"""Random files of recorded launches; some files are right, and others have changed values, PTX or bytes."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from cuda_tma import simulate
from cuda_tma._intercept.launches import captured
from cuda_tma._intercept.launches.values import values_of_launch
from evaluation.fuzzing.hostile_ptx import HEAD, by_grammar, mutated

_PTX = f"""{HEAD}.global .align 4 .b8 x0[64];
.visible .entry f(.param .u64 p0)
{{
.reg .b64 %rd<3>; .reg .b32 %r<3>;
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd1, %r1, 4, %rd1;
st.global.u32 [%rd1], %r1;
ret;
}}
"""
_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        7,
        2**31,
        2**64,
        10**30,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "é\x1b",
        "../../etc/passwd",
    ),
    *([], {}, [0], [[[]]], {"a": 1}, "0" * 64, [1] * 2000, "9" * 5000),
)


@lru_cache(maxsize=1)
def _right() -> tuple[dict[str, Any], dict[str, bytes]]:
    gpu, out = simulate.Device(), np.zeros(64, np.int32)
    kernel, config = gpu.load(_PTX, "f"), simulate.Config(1, 32)
    value = captured(gpu, config, kernel, [out], kernel="f", runtime="fake", sources={"a.cu": "a line\n"})
    values, blobs = values_of_launch(value)
    return json.loads(json.dumps(values)), dict(blobs)


def recording(random: Random) -> bytes:
    """Make the bytes of a file. In nine of ten files, the SHA-256 is right."""
    values, blobs = copy.deepcopy(_right())
    if random.random() < 0.4:
        text = random.choice((by_grammar, mutated))(random)[0].encode("utf-8", "surrogateescape")
        key = hashlib.sha256(text).hexdigest()
        blobs[key] = text
        values = json.loads(json.dumps(values).replace(hashlib.sha256(_PTX.encode()).hexdigest(), key))
    document: Any = {"settings": {"schedules": 1}, "launches": [values] * random.choice((0, 1, 1, 1, 2))}
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        document = _changed(document, random)
    data = _archive(document, blobs, random)
    for _ in range(random.choice((0, 0, 0, 1, 3))):
        at = random.randrange(len(data))
        data = (
            data[:at]
            + random.choice((b"", b"\0", b"\xff", random.randbytes(8)))
            + data[at + random.choice((0, 1, 40)) :]
        )
    digest = hashlib.sha256(data).hexdigest() if random.random() < 0.9 else "0" * 64
    return f"cuda-tma launches 1 sha256:{digest}\n".encode() + data


def _changed(value: Any, random: Random) -> Any:
    """Return the value with one change inside it."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice([*value])
        if random.random() < 0.1:
            return {each: value[each] for each in value if each != key}
        return {**value, key: _changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return [*value[:at], _changed(value[at], random), *value[at + 1 :]]
    return random.choice(_ODD)


def _archive(document: Any, blobs: dict[str, bytes], random: Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for key, data in blobs.items():
            if random.random() < 0.98:
                archive.writestr(f"blobs/{key}", data)
        if random.random() < 0.02:
            archive.writestr("blobs/" + "0" * 64, bytes(40 << 20))
        archive.writestr("launches.json", json.dumps(document) if random.random() < 0.98 else "[" * 100_000)
    return file.getvalue()
