"""Record what mad.hi.sat.s32 becomes by the driver's compiler, at each level of optimisation, beside what PTX says.

    python tools/record_saturation.py OUT       # a folder; half a minute, on a GPU of compute capability 9.0

By itself, over operands at which something ends, in each way in which registers can be shared; and in random sequences
of scalar instructions (``tests/scalar_sequences.py``), of which each has one. OUT gets ``saturation.json``: of each
level the results that differ, and the sequences in which they do; and of each batch with such a sequence
``batch<N>.ptx`` and ``.cubin``, for a disassembler.

Recorded on an H200, driver 580: by itself it saturates at each level. In six lanes of three of 2,048 sequences it
wrapped at level 4, and at 3 of those tried; at 0 it did not. Each has a product of the same two operands beside it:
ptxas makes one IMAD.WIDE of both, whose upper half is the sum, and has no end.

Needs ``cuda.core``, and this repository's ``tests``.
"""

from __future__ import annotations

import ctypes
import json
import sys
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from cuda.bindings import driver

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests import scalar_sequences as sequences
from tests.scalar_forms import forms

FORM = "mad.hi.sat.s32 d, a, b, c"
LEVELS = range(5)
WAYS = ("%a, %b, %c", "%a, %b, %a", "%a, %b, %b", "%a, %a, %c", "%a, %a, %a")  # which registers are the same
ENDS = (0, 1, 2, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xC0000000, 0xFFFFFFFF)
SEEN = (0x80C000C1, 0x243A2121, 0x80C000C1)  # 0x6ebe1be4 was once made of them
BATCH, BATCHES = 256, 8

ALONE = """
.version 8.2
.target sm_90a
.address_size 64
.visible .entry alone(.param .u64 inputs, .param .u64 outputs)
{{
.reg .b64 %in, %out, %o; .reg .b32 %i, %a, %b, %c, %d;
ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs]; mov.u32 %i, %ctaid.x;
mul.wide.u32 %o, %i, 12; add.u64 %in, %in, %o; mul.wide.u32 %o, %i, {bytes}; add.u64 %out, %out, %o;
ld.volatile.global.u32 %a, [%in]; ld.volatile.global.u32 %b, [%in+4]; ld.volatile.global.u32 %c, [%in+8];
{steps}
ret;
}}
"""


def done(call: tuple) -> Any:
    error, *rest = call
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return rest[0] if rest else None


def linked(ptx: str, level: int) -> bytes:
    """Machine code, by the driver's compiler."""
    options = [driver.CUjit_option.CU_JIT_OPTIMIZATION_LEVEL]
    state = done(driver.cuLinkCreate(1, options, [level]))
    data = ptx.encode() + b"\0"
    kind = driver.CUjitInputType.CU_JIT_INPUT_PTX
    done(driver.cuLinkAddData(state, kind, data, len(data), b"", 0, [], []))
    _, image, size = driver.cuLinkComplete(state)
    found = ctypes.string_at(int(image), size)
    done(driver.cuLinkDestroy(state))
    return found


def launched(cubin: bytes, name: str, blocks: int, threads: int, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """`outputs`, which a kernel of two pointers has written."""
    module = done(driver.cuModuleLoadData(cubin))
    kernel = done(driver.cuModuleGetFunction(module, name.encode()))
    memory = [done(driver.cuMemAlloc(array.nbytes)) for array in (inputs, outputs)]
    values = np.array([int(each) for each in memory], np.uint64)
    addresses = np.array([values.ctypes.data, values.ctypes.data + 8], np.uint64)
    for pointer, array in zip(memory, (inputs, outputs), strict=True):
        done(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    done(driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, 0, addresses.ctypes.data, 0))
    done(driver.cuMemcpyDtoH(outputs.ctypes.data, memory[1], outputs.nbytes))
    for pointer in memory:
        done(driver.cuMemFree(pointer))
    done(driver.cuModuleUnload(module))
    return outputs


def alone(level: int) -> list[str]:
    """What differs of single instructions."""
    steps = (f"mad.hi.sat.s32 %d, {way}; st.global.u32 [%out+{4 * i}], %d;" for i, way in enumerate(WAYS))
    ptx = ALONE.format(bytes=4 * len(WAYS), steps="\n".join(steps))
    inputs = np.array([SEEN, *product(ENDS, repeat=3)], np.uint32)
    found = launched(linked(ptx, level), "alone", len(inputs), 1, inputs, np.zeros((len(inputs), len(WAYS)), np.uint32))
    registers = {"%a": 0, "%b": 1, "%c": 2}
    wrong = []
    for i, way in enumerate(WAYS):
        sources = inputs[:, [registers[each] for each in way.split(", ")]].view(np.int32).astype(np.int64)
        total = (sources[:, 0] * sources[:, 1] >> 32) + sources[:, 2]
        expected = np.clip(total, -(2**31), 2**31 - 1).astype(np.int32).view(np.uint32)
        wrong += [f"{way}: {[*map(hex, inputs[at].tolist())]} gives {found[at, i]:#x}, and not {expected[at]:#x}"
                  for at in np.flatnonzero(found[:, i] != expected)]  # fmt: skip
    return wrong


def drawn(seed: int) -> sequences.Program:
    """A sequence with one such instruction; in half of them the third operand is the first."""
    random, which = Random(seed), forms().index(FORM)
    program = sequences.program_of(seed)
    at = random.randrange(len(program.picks))
    reads = [random.randrange(64) for _ in range(sequences.MOST_READS)]
    reads[2] = reads[0] if random.random() < 0.5 else reads[2]
    picks = [(which, tuple(reads)) if i == at else pick for i, pick in enumerate(program.picks)]
    return sequences.Program(tuple(picks), program.offset, program.stride)


def in_sequences(batch: int, level: int, out: Path) -> list[str]:
    """What differs of a batch; if something does, what it was compiled from and to is kept."""
    programs = [drawn(batch * BATCH + i) for i in range(BATCH)]
    ptx, inputs = sequences.ptx_of(programs), sequences.inputs_of(programs)
    cubin = linked(ptx, level)
    outputs = np.zeros((BATCH, sequences.MOST_SLOTS, sequences.LANES), np.uint64)
    outputs = launched(cubin, "sequences", BATCH, sequences.LANES, inputs, outputs)
    wrong = [str(each) for each in sequences.mismatches(programs, inputs, outputs) if each.text == FORM]
    if wrong:
        (out / f"batch{batch}.ptx").write_text(ptx)
        (out / f"batch{batch}-{level}.cubin").write_bytes(cubin)
    return wrong


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    done(driver.cuInit(0))
    context = done(driver.cuDevicePrimaryCtxRetain(done(driver.cuDeviceGet(0))))
    done(driver.cuCtxSetCurrent(context))
    found: dict[str, Any] = {"driver": done(driver.cuDriverGetVersion())}
    found["alone"] = {level: alone(level) for level in LEVELS}
    found["sequences"] = {}
    for level, batches in ((4, BATCHES), (3, 2), (0, 2)):
        found["sequences"][level] = [text for batch in range(batches) for text in in_sequences(batch, level, out)]
        (out / "saturation.json").write_text(json.dumps(found, indent=1))
    for where in ("alone", "sequences"):
        print(where, {level: len(texts) for level, texts in found[where].items()})


if __name__ == "__main__":
    main()
