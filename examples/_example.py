"""What the examples share: torch or a sentence on how to get it, `--help`, and cases that are run and checked.

A case is (name, ours, rivals, flops, moved_bytes): two kinds of callables that compute the same, ours and those in the
dict `rivals`; the floating-point operations that the problem needs, 0 where data is only moved; and the least bytes
that must move, every input read and every output written once. Examples give them by generators, which check what the
last runs left, in every element, when they are asked for the next case: whoever takes a case may run it as often as he
likes, and `python -m benchmarks kernels` does, to time it. Where an example has `RIVALS`, names with functions that
make such callables of the operands, others may be added there.
"""

import argparse
import sys

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


def dtype_of(map_type):
    """The torch dtype of the elements that a kernel's map moves."""
    return getattr(torch, map_type.data_type.name.lower())


def short_name(dtype):
    """As the names of cases have it: bf16, f16."""
    return str(dtype).removeprefix("torch.").replace("float", "f")


def _parser(text):
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def _require_torch():
    if torch is None:
        sys.exit("The examples take their tensors from PyTorch, which is not installed: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here: the examples need one of compute capability 9.0 or later")
