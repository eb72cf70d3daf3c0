"""Compare recorded TMA stores and reductions with the emulator, without a GPU.

The script prints the number of agreeing cases of each kind. The script ``record_stores.py`` describes a recording.

Examples
--------
    python replay_stores.py RECORDINGS.jsonl.gz
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zlib
from collections import Counter
from functools import lru_cache

import numpy as np
from recordings import params_from_recording, read

from cuda_tma import emulate
from cuda_tma._errors import TensorMapFault
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.smem import smem_bytes

MEMORY_BYTES = 1 << 20
MEMORY_SEED = 12345
_SMALL_CHANGE_BYTES = 256

FLOATS = {
    T.FLOAT16: "float16",
    T.BFLOAT16: "bfloat16",
    T.FLOAT32: "float32",
    T.FLOAT32_FTZ: "float32",
    T.TFLOAT32: "float32",
    T.TFLOAT32_FTZ: "float32",
    T.FLOAT64: "float64",
}
_EXPONENT_AND_MANTISSA_BITS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


@lru_cache(maxsize=8)  # The results are cached, because many cases have the same initial bytes.
def content(values: str, seed: int, size: int) -> np.ndarray:
    """Return the initial bytes of a case, which are read-only.

    ``"random"`` selects random bytes. ``"tiny"`` clears exponents, so that floats of 2 and 4 bytes are near the
    subnormal range. ``"float16"`` and the names of other formats draw from the special values of the format.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    if values in _EXPONENT_AND_MANTISSA_BITS:
        special = _special_values(*_EXPONENT_AND_MANTISSA_BITS[values])
        data = rng.choice(special, size // special.itemsize).view(np.uint8)
    else:
        data = rng.integers(0, 256, size, dtype=np.uint8)
    if values == "tiny":
        data[1::2] &= 0x80
    data.flags.writeable = False
    return data


def _special_values(exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Return bit patterns of both signs: zero, subnormals, numbers near the least normal number, the number 1, half a
    unit in the last place of 1, the largest number, infinity, a signaling NaN and a quiet NaN.
    """
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    least, one = 1 << mantissa_bits, infinity // 2 & ~((1 << mantissa_bits) - 1)
    half_ulp = one - ((mantissa_bits + 1) << mantissa_bits)
    finite = [0, 1, least - 1, least, least + 1, half_ulp, one, one + 1, infinity - 1]
    magnitudes = [*finite, infinity, infinity + 1, infinity + least // 2]
    width = 1 + exponent_bits + mantissa_bits
    return np.array([m | sign << (width - 1) for m in magnitudes for sign in (0, 1)], f"<u{width // 8}")


def summary(before: np.ndarray, after: np.ndarray) -> dict:
    """Return the effect of a case on global memory."""
    changed = np.flatnonzero(before != after)
    row = {"memory_sha256": hashlib.sha256(after.tobytes()).hexdigest(), "changed_bytes": int(changed.size)}
    if changed.size <= _SMALL_CHANGE_BYTES:
        payload = changed.astype("<i4").tobytes() + after[changed].tobytes()
        row["changed"] = base64.b64encode(zlib.compress(payload)).decode()
    return row


def replay(row: dict) -> dict:
    """Return the emulator's result for a recorded case, in the form of the recording."""
    params = params_from_recording(row["params"])
    before = content(row["values"], MEMORY_SEED, MEMORY_BYTES)
    smem = content(row["values"], row["smem_seed"], smem_bytes(params))
    after = before.copy()
    try:
        if row["op"] == "load":
            tile = emulate.load(params, before, row["coordinates"])
            after[: smem.size] = np.where(tile.written, tile.smem, smem)
        elif row["op"] == "store":
            emulate.store(params, after, smem, row["coordinates"])
        else:
            emulate.reduce(params, after, smem, row["coordinates"], row["op"])
    except TensorMapFault as fault:
        return {"fault": fault.cuda_error}
    return summary(before, after)


def verdict(row: dict) -> str:
    if "refused" in row:
        return "refused by the driver"
    made = replay(row)
    if row.get("fault") != made.get("fault"):
        return f"DIFFERS: hardware {row.get('fault', 'accepts')}, emulator {made.get('fault', 'accepts')}"
    return "agrees" if row.get("memory_sha256") == made.get("memory_sha256") else "DIFFERS in memory"


def compare(path: str) -> None:
    counts: Counter = Counter()
    for row in read(path):
        kind, interleave, data_type = (row["params"][key] for key in ("kind", "interleave", "data_type"))
        where = f"{kind}{' interleaved' * bool(interleave)}"
        counts[verdict(row), where, row["op"], T(data_type).name, row["values"]] += 1
    for key, number in sorted(counts.items()):
        print(f"{number:5d}  {', '.join(key)}")
    print(dict(Counter(key[0].split(":")[0] for key in counts.elements())))


if __name__ == "__main__":
    compare(*sys.argv[1:])
