"""Launch the examples of cuda_tma in small sizes, for ``run_trial.py``.

The examples use TMA copies, wgmma and clusters.
"""

import sys

import torch

from benchmarks.kernels import example

# The sizes are chosen so that a tile crosses an edge of the tensor in each example.
SIZES = {
    "copy_2d": ((70, 600), (64, 64)),
    "transpose": ((72, 140),),
    "gather_rows": ((60, 45),),
    "kv_tiles": ((96, 2, 64, "bfloat16", 2, 2),),
    "gemm": ((136, 264, 136), (128, 256, 64)),
    "conv_im2col": ((1, 64, 7, 8, (3, 1, 1, 1)),),
    "attention": ((1, 2, 1, 70, 130, 64, True), (1, 1, 1, 65, 140, 128, False)),
    "grouped_gemm": (("edges", ((0, 1, 70),), 256, 136),),
}


def run(name):
    """Run each case of an example once."""
    module = example(name)
    if not hasattr(module, "cases"):
        module.main()
        return
    for _, ours, *_ in module.cases(SIZES[name]):
        ours()
        torch.cuda.synchronize()


if __name__ == "__main__":
    for each in SIZES:
        try:
            run(each)
        except Exception as error:
            print(f"failed: {each}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
