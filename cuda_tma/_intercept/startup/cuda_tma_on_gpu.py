"""The part of ``cuda-tma sanitize --on-gpu`` in a Python process, which describes launches to the C library.

This module imports only the standard library, as ``cuda_tma_startup`` does.
"""

import array
import atexit
import contextlib
import ctypes
import json
import sys
from types import FrameType
from typing import Any

from cuda_tma_startup import after_import

_MOST_FRAMES = 64
_Describe = ctypes.CFUNCTYPE(None)
_kept: list[Any] = []  # The list _kept keeps the registered function alive, because the library may still call it.


def begin():
    """Register this process with the library that LD_PRELOAD has loaded into it."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "cuda_tma_on_gpu_describe"):
        return
    library.cuda_tma_on_gpu_code.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64)
    _kept[:] = [library, _Describe(_describe)]
    library.cuda_tma_on_gpu_describe(_kept[1])
    atexit.register(library.cuda_tma_on_gpu_describe, None)
    after_import(("triton",), lambda name: _keep_ptx_of_triton())


def _describe():
    """Pass the stack of the launching thread, and the blocks of torch's allocator, to the library."""
    with contextlib.suppress(Exception):  # An error in the description must not stop the launch.
        stack, blocks = json.dumps(_frames()).encode(), _blocks()
        pairs = (ctypes.c_uint64 * len(blocks)).from_buffer(blocks) if blocks else None
        _kept[0].cuda_tma_on_gpu_described(stack, ctypes.c_uint64(len(stack)), pairs, ctypes.c_uint64(len(blocks) // 2))


def _frames():
    """Return the file, line and function of each frame, with the innermost frame first."""
    frames: list[tuple[str, int, str]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < _MOST_FRAMES:
        code = frame.f_code
        if code.co_filename != __file__:
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return frames


def _blocks():
    """Return the address and the size of each block that torch's allocator has allocated, by ascending address."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return array.array("Q")
    pairs = []
    for segment in cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"].startswith("active"):
                pairs.append((address, block.get("requested_size") or block["size"]))
            address += block["size"]
    return array.array("Q", [number for pair in sorted(pairs) for number in pair])


def _keep_ptx_of_triton():
    """Pass the PTX of each kernel of Triton to the library, together with the kernel's machine code."""
    from triton.compiler.compiler import CompiledKernel

    own = CompiledKernel.__init__

    def init(kernel, *arguments, **keywords):
        own(kernel, *arguments, **keywords)
        with contextlib.suppress(Exception):
            code, ptx = kernel.asm["cubin"], kernel.asm["ptx"].encode()
            _kept[0].cuda_tma_on_gpu_code(code, len(code), ptx, len(ptx))

    CompiledKernel.__init__ = init
