"""What the examples share: torch or a sentence on how to get it, `--help`, and cases that are run and checked.

A case is (name, ours, rivals, flops, moved_bytes): two kinds of callables that compute the same, ours and those in the
dict `rivals`; the floating-point operations that the problem needs, 0 where data is only moved; and the least bytes
that must move, every input read and every output written once. Examples give them by generators, which check what the
last runs left, in every element, when they are asked for the next case: whoever takes a case may run it as often as he
likes, and `python -m benchmarks kernels` does, to time it.
"""

import argparse
import sys

from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

import cuda_tma

try:
    import torch
except ModuleNotFoundError:
    torch = None  # so that --help works, and what is missing can be said in a sentence


def start(main, text):
    """Run an example's `main`; `text` is its docstring, which --help shows."""
    _parser(text).parse_args()
    _require_torch()
    main()


def start_cases(cases, small, large, text):
    """Run what `cases` gives for the sizes `small` and `large` once, rivals too; with --small, the small ones alone."""
    parser = _parser(text)
    parser.add_argument("--small", action="store_true", help="small sizes alone: a check in seconds, for a sanitizer")
    sizes = (small,) if parser.parse_args().small else (small, large)
    _require_torch()
    for some in sizes:
        name, count = "", 0
        for name, ours, rivals, *_ in cases(some):  # noqa: B007 (the last name is shown)
            for run in (ours, *rivals.values()):
                run()
            count += 1
        print(f"ok: {count} cases, every element of them; the last: {name}", flush=True)


def compile_kernel(device, source, name, smem_bytes=0):
    """A kernel for this device; `smem_bytes` of dynamic shared memory are allowed it, 48 KB if not given."""
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(source, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if smem_bytes:
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (error,) = driver.cuKernelSetAttribute(limit, smem_bytes, kernel.handle, device.device_id)
        assert error == driver.CUresult.CUDA_SUCCESS, error
    return kernel


def _parser(text):
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def _require_torch():
    if torch is None:
        sys.exit("The examples take their tensors from PyTorch, which is not installed: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here: the examples need one of compute capability 9.0 or later")
