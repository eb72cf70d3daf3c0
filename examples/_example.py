"""Code that the examples share: torch or a hint to install it, `--help`, and cases that run and are checked.

A case is (name, ours, rivals, flops, moved_bytes). `ours` and the values of the dict `rivals` are callables with the
same result. `flops` is the number of floating-point operations of the problem, or 0 if the problem only moves data.
`moved_bytes` counts every input and every output once. Examples yield cases from generators, which check every element
of the last results when the caller requests the next case. The caller may run a case any number of times, as `python -m
benchmarks kernels` does to time the case. An example may have `RIVALS`, which maps names to functions that make rivals
from the operands. Callers may add rivals.
"""

import argparse
import sys

try:
    import torch
except ModuleNotFoundError:
    torch = None  # Without torch, the option --help still works.


def start(main, text):
    """Run the `main` of an example. The option --help prints `text`, which is its docstring."""
    _parser(text).parse_args()
    _require_torch()
    main()


def start_cases(cases, small, large, text):
    """Run the cases of the sizes `small` and `large` once, including rivals. With --small, run only the small cases."""
    parser = _parser(text)
    parser.add_argument("--small", action="store_true", help="only small sizes: a check in seconds, for a sanitizer")
    sizes = (small,) if parser.parse_args().small else (small, large)
    _require_torch()
    for some in sizes:
        name, count = "", 0
        for name, ours, rivals, *_ in cases(some):  # noqa: B007 (the script prints the last name)
            for run in (ours, *rivals.values()):
                run()
            count += 1
        print(f"ok: {count} cases, every element of them; the last: {name}", flush=True)


def dtype_of(map_type):
    """Return the torch dtype of the elements in a kernel's map."""
    return getattr(torch, map_type.data_type.name.lower())


def short_name(dtype):
    """Return the short name of a dtype, such as bf16 or f16, for the names of cases."""
    return str(dtype).removeprefix("torch.").replace("float", "f")


def _parser(text):
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def _require_torch():
    if torch is None:
        sys.exit("The examples take their tensors from PyTorch, which is not installed: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here: the examples need one of compute capability 9.0 or later")
