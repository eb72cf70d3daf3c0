"""Record the results of the driver's encoders for random and boundary parameters.

The script needs a GPU of compute capability 9.0 or later.

To record, the script needs only the driver, through ctypes. Both commands need the parts of ``cuda_tma`` that need no
GPU (installed, or ``PYTHONPATH=.``). The section below describes the fields of a row of the output.

The cases are those of ``encode_cases.py``.

Fields of a row
---------------
- ``params``: the driver's arguments by name and in its order, and ``kind``: tiled, im2col or im2col_wide. Arrays have
  the length of the rank (less one, less two) where the rank is legal; the driver receives zeros after them;
- ``result``: the driver's CUresult, 0 if it accepted them;
- ``descriptor``: the 128 bytes in hexadecimal digits, null if it did not;
- ``compute_capability``;
- ``allocation_class``, if one was requested and the map accepted: the requested class, and the class that the driver
  reports.

Examples
--------
    python record_encodes.py record encodes.jsonl.gz [--cases 60000] [--seed 1] [--allocation-class LARGE]
    python record_encodes.py compare encodes.jsonl.gz       # compare with check, encode and decode, without a GPU
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

from encode_cases import CORNERS, WIDE_CORNERS, Arguments, cases
from recordings import params_from_recording, read, write

from cuda_tma._errors import TensorMapError
from cuda_tma._limits import MAX_RANK
from cuda_tma.codec import decode, encode
from cuda_tma.enums import TensorMapAllocationClass
from cuda_tma.rules import check

# Driver -------------------------------------------------------------------------------------------------------------

_ENCODERS = {
    "tiled": "cuTensorMapEncodeTiled",
    "im2col": "cuTensorMapEncodeIm2col",
    "im2col_wide": "cuTensorMapEncodeIm2colWide",
}
_SET_CLASS = "cuTensorMapSetAllocationClass"
# Each table maps the arguments of an encoder, in the order of cuda.h, to the C type of an element.
_U32, _U64, _INT = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
_HEAD = {"data_type": _INT, "rank": _U32, "global_address": _U64, "global_dim": _U64, "global_strides": _U64}
_PIXELS = {"channels_per_pixel": _U32, "pixels_per_column": _U32}
_STEPS = {"element_strides": _U32, "interleave": _INT}
_TAIL = {"swizzle": _INT, "l2_promotion": _INT, "oob_fill": _INT}
_SIGNATURES = {
    "tiled": _HEAD | {"box_dim": _U32} | _STEPS | _TAIL,
    "im2col": _HEAD | dict.fromkeys(CORNERS, _INT) | _PIXELS | _STEPS | _TAIL,
    "im2col_wide": _HEAD | dict.fromkeys(WIDE_CORNERS, _INT) | _PIXELS | _STEPS | {"mode": _INT} | _TAIL,
}


class Driver:
    """The encoders of the driver, in the primary context of device 0."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        device, context, number = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        self.must("cuInit", 0)
        self.must("cuDeviceGet", ctypes.byref(device), 0)
        self.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.must("cuCtxSetCurrent", context)
        self.compute_capability = []
        for attribute in (75, 76):  # The attributes are CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
            self.must("cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
            self.compute_capability.append(number.value)
        self.storage = ctypes.create_string_buffer(256)
        self.address = -(-ctypes.addressof(self.storage) // 128) * 128

    def has(self, function: str) -> bool:
        return hasattr(self.cuda, function)

    def must(self, function: str, *arguments: Any) -> None:
        result = self.cuda[function](*arguments)
        if result != 0:
            raise RuntimeError(f"{function} failed with CUresult {result}")

    def encode(self, p: Arguments) -> tuple[int, bytes]:
        ctypes.memset(self.address, 0, 128)
        values = [(p[name], c) for name, c in _SIGNATURES[p["kind"]].items()]
        arguments = [(c * (MAX_RANK + 1))(*v) if isinstance(v, list) else c(v) for v, c in values]
        result = self.cuda[_ENCODERS[p["kind"]]](ctypes.c_void_p(self.address), *arguments)
        return result, ctypes.string_at(self.address, 128)

    def set_allocation_class(self, requested: TensorMapAllocationClass) -> tuple[int, bytes]:
        """Return the class that the driver reports for the last map, and the bytes of the map."""
        effective = ctypes.c_int()
        self.must(_SET_CLASS, ctypes.c_void_p(self.address), ctypes.c_int(requested), ctypes.byref(effective))
        return effective.value, ctypes.string_at(self.address, 128)

    def observe(self, p: Arguments, requested: TensorMapAllocationClass | None) -> Arguments:
        result, raw = self.encode(p)
        row: Arguments = {"params": p, "result": result, "compute_capability": self.compute_capability}
        if result == 0 and requested is not None:
            effective, raw = self.set_allocation_class(requested)
            row["allocation_class"] = {"requested": int(requested), "effective": effective}
        return row | {"descriptor": None if result else raw.hex()}


def record(path: str, count: int, seed: int, requested: TensorMapAllocationClass | None) -> None:
    driver = Driver()
    if requested is not None and not driver.has(_SET_CLASS):
        raise SystemExit(f"this driver has no {_SET_CLASS}, which came with CUDA 13.5: leave out --allocation-class")
    known = [kind for kind, function in _ENCODERS.items() if driver.has(function)]
    rows = [driver.observe(p, requested) for p in cases(count, seed) if p["kind"] in known]
    write(path, rows)
    print(f"{len(rows)} cases, {sum(row['result'] == 0 for row in rows)} accepted; compute capability", end=" ")
    print(".".join(map(str, driver.compute_capability)), "" if len(known) == 3 else f"; the driver has only {known}")


# Comparison ---------------------------------------------------------------------------------------------------------


def verdict(row: Arguments) -> str:
    """Return whether check, encode and decode agree with a row."""
    params, capability = params_from_recording(row["params"]), tuple(row.get("compute_capability", (9, 0)))
    if "allocation_class" in row:
        params = replace(params, allocation_class=row["allocation_class"]["effective"])
    wide = row["params"]["kind"] == "im2col_wide"
    accepted, broken = row["result"] == 0, check(params, capability)
    # Driver 580 accepts im2col wide maps on compute capability 9.0.
    if bool(broken) == accepted and not (wide and capability < (10, 0)):
        return (
            f"DIFFERS: refused by the rule {broken[0].rule} alone" if broken else "DIFFERS: refused by the driver alone"
        )
    if not accepted:
        return "refused by both"
    raw = bytes.fromhex(row["descriptor"])
    try:
        if encode(params, capability) != raw:
            return "DIFFERS in bytes"
        decoded = decode(raw)
    except TensorMapError as error:
        return f"DIFFERS: {error}"
    # The 128 bytes do not distinguish a wide map from a plain im2col map, so decode() returns the same type for both.
    same = encode(decoded, capability) == raw if wide else decoded == params
    return "agrees" if same else "DIFFERS in decoded parameters"


def compare(path: str) -> int:
    """Print the count of each verdict, and the first rows that differ. Return 1 if a row differs."""
    rows = read(path)
    verdicts = [(row["params"]["kind"], verdict(row)) for row in rows]
    for (kind, text), number in sorted(Counter(verdicts).items()):
        print(f"{number:6d}  {kind}: {text}")
    differing = [row for row, (_, text) in zip(rows, verdicts, strict=True) if text.startswith("DIFFERS")]
    for row in differing[:5]:
        print(json.dumps(row))
    return int(bool(differing))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("path")
    recorder.add_argument("--cases", type=int, default=60000)
    recorder.add_argument("--seed", type=int, default=1)
    recorder.add_argument("--allocation-class", choices=TensorMapAllocationClass.__members__)
    commands.add_parser("compare").add_argument("path")
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.path)
    requested = TensorMapAllocationClass[given.allocation_class] if given.allocation_class else None
    record(given.path, given.cases, given.seed, requested)
    return 0


if __name__ == "__main__":
    sys.exit(main())
