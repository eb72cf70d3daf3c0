"""Compute one dense GEMM with the flags of CUTLASS' Hopper tutorial, and compare every element with torch.

    python dense_gemm.py --mnkl 4096,4096,4096,1 --tile_shape_mnk 128,256,64 --cluster_shape_mn 2,1
        --a_dtype Float16 --b_dtype Float16 --acc_dtype Float32 --c_dtype Float16 --a_major k --b_major k --c_major n

C (M, N, L) = activation(alpha * A (M, K, L) @ B (N, K, L).T + beta * C + bias). A dtype has the name of CUTLASS or of
torch. Without a tile and a cluster, a model of the time chooses both. The operands are small integers, so all sums are
exact, and without an activation the tolerance is 0.
"""

import argparse

import gemm_every_shape as gemm
from _example import _require_torch, torch
from _gemm_types import Contract, refusal
from _gemm_variants import STEP_BYTES, Variant

import cuda_tma

NAMES = {
    "Float16": "float16",
    "BFloat16": "bfloat16",
    "Float32": "float32",
    "TFloat32": "float32",
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
    "Int32": "int32",
    "Int8": "int8",
    "Uint8": "uint8",
}


def parser():
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--mnkl", type=integers, default=(4096, 4096, 4096, 1))
    made.add_argument("--tile_shape_mnk", "--tile_shape_mn", type=integers, help="default: by a model of the time")
    made.add_argument("--cluster_shape_mn", type=integers, default=(1, 1))
    for name in ("a", "b", "c"):
        made.add_argument(f"--{name}_dtype", type=dtype, default="float16")
    made.add_argument("--acc_dtype", type=dtype, default="float32")
    made.add_argument("--a_major", choices=("k", "m"), default="k")
    made.add_argument("--b_major", choices=("k", "n"), default="k")
    made.add_argument("--c_major", choices=("n", "m"), default="n")
    made.add_argument("--alpha", type=float, default=1.0)
    made.add_argument("--beta", type=float, default=0.0)
    made.add_argument("--bias", action="store_true", help="add a row of N")
    made.add_argument("--activation", choices=("relu", "gelu", "silu"))
    made.add_argument("--tolerance", type=float, help="default: 0, with an activation 0.01")
    made.add_argument("--iterations", type=int, default=0, help="launches to time, after the check")
    return made


def integers(text):
    """Return the integers of a text such as 4096,4096,4096,1."""
    return tuple(int(each) for each in text.split(","))


def dtype(name):
    """Return torch's name of a dtype of CUTLASS or torch."""
    if name not in NAMES and name not in NAMES.values():
        raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(NAMES)}")
    return NAMES.get(name, name)


def variant_of(asked):
    """Return the variant of the given tile and cluster; None without a tile."""
    if asked.tile_shape_mnk is None:
        return None
    rows, columns, *depth = asked.tile_shape_mnk
    depth_of_kernel = STEP_BYTES // Contract(asked.a_dtype, asked.b_dtype, "", "").item_bytes
    if rows not in (64, 128) or columns % 8 or not 8 <= columns <= 256 or depth not in ([], [depth_of_kernel]):
        raise SystemExit(f"a tile has 64 or 128 rows, 8 to 256 columns in steps of 8, and a K of {depth_of_kernel}")
    # If M is contiguous in C, the kernel computes the transposed C, and then the rows of its sums are columns.
    return Variant(rows, columns, *asked.cluster_shape_mn, 1, asked.c_major == "m")


def drawn(shape, name, is_row_major, device):
    """Return a batch of matrices of small integers, with contiguous rows or columns."""
    batch, rows, columns = shape
    lowest = 0 if name == "uint8" else -1
    order = (batch, rows, columns) if is_row_major else (batch, columns, rows)
    values = torch.randint(lowest, 2, order, device=device).to(getattr(torch, name))
    return values if is_row_major else values.mT


def operands(asked, device="cuda"):
    """Return A, B, C and the bias of a command line."""
    m, n, k, batch = asked.mnkl
    a = drawn((batch, m, k), asked.a_dtype, asked.a_major == "k", device)
    b = drawn((batch, n, k), asked.b_dtype, asked.b_major == "k", device)
    c = drawn((batch, m, n), asked.c_dtype, asked.c_major == "n", device)
    bias = torch.randint(-2, 3, (n,), device=device).to(torch.float32) if asked.bias else None
    return a, b, c, bias


def expected(asked, a, b, former, bias):
    """Return the result in C's dtype. Integers have the nearest value in their range."""
    exact = asked.alpha * (a.double() @ b.double().mT)
    if asked.beta:
        exact += asked.beta * former.double()
    if bias is not None:
        exact += bias.double()
    if asked.activation:
        exact = getattr(torch.nn.functional, asked.activation)(exact)
    target = getattr(torch, asked.c_dtype)
    if not target.is_floating_point:
        limits = torch.iinfo(target)
        exact = exact.round().clamp(limits.min, limits.max)
    return exact.to(target)


def compare(asked, c, wanted):
    """Raise an error that gives the first element with a difference above the tolerance."""
    tolerance = asked.tolerance if asked.tolerance is not None else 0.01 if asked.activation else 0.0
    difference = (c.double() - wanted.double()).abs()
    wrong = ~(difference <= tolerance * wanted.double().abs().clamp(min=1))
    if wrong.any():
        place = tuple(torch.nonzero(wrong)[0].tolist())
        raise SystemExit(
            f"{int(wrong.sum())} of {wrong.numel()} elements are wrong, the first at {place}: "
            f"{c[place].item()} instead of {wanted[place].item()}"
        )


def run(asked, device, tensors):
    """Compute the product of a command line, compare it, and return a function that repeats the launch."""
    a, b, c, bias = tensors
    former = c.clone() if asked.beta else None
    scale = {"alpha": asked.alpha, "beta": asked.beta, "former": former, "sums": asked.acc_dtype}
    launch = gemm.prepare(device, a, b, c, bias, asked.activation, variant_of(asked), **scale)
    launch()
    compare(asked, c, expected(asked, a, b, former, bias))
    return launch


def main():
    """Run the product of the command line."""
    asked = parser().parse_args()
    majors = asked.a_major == "k", asked.b_major == "k"
    reason = refusal(Contract(asked.a_dtype, asked.b_dtype, asked.acc_dtype, asked.c_dtype, *majors))
    if reason:
        raise SystemExit(reason)
    _require_torch()
    device = cuda_tma.Device()
    device.set_current()
    launch = run(asked, device, operands(asked))
    print(f"ok: {asked.mnkl} {asked.a_dtype} x {asked.b_dtype} -> {asked.c_dtype}, every element")
    if asked.iterations:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(asked.iterations):
            launch()
        end.record()
        end.synchronize()
        m, n, k, batch = asked.mnkl
        print(f"{2e-9 * m * n * k * batch * asked.iterations / begin.elapsed_time(end):.0f} TFLOP/s")


if __name__ == "__main__":
    main()
