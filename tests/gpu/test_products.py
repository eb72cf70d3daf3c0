"""Tests of every form of wgmma and mma.sync through the header, on tiles of small integers that TMA loads."""

import numpy as np
import pytest
from cuda.core import LaunchConfig

import cuda_tma

from .conftest import compute_capability
from .product_kernels import FORMS, Form, compiled, mma_name, plain_name, wgmma_name

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")

TYPES = {
    "bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32, "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2, "s8": torch.int8, "u8": torch.uint8,
}  # fmt: skip
SUMS = {"float": torch.float32, "int": torch.int32, "unsigned": torch.float16}
BF16 = Form("bf16", "bf16", "float")
EVERY_N = [(BF16, n, False, False) for n in range(8, 257, 8)]
EVERY_FORM = [(form, n, in_registers, False) for form in FORMS for n in (16, 48) for in_registers in (False, True)]
NEGATED = [(form, 24, where, True) for form in FORMS if form.held != "int" for where in (False, True)]
WGMMA = list(dict.fromkeys([*EVERY_N, *EVERY_FORM, *NEGATED]))
MAJORS = [(a, b) for a in ("K", "MN") for b in ("K", "MN")]


@pytest.fixture(scope="module")
def kernels(device, publish):
    if compute_capability()[0] != 9:
        pytest.skip("wgmma exists only on compute capability 9.0")
    publish(f"tensor cores: {len(WGMMA)} products by wgmma, {len(FORMS)} by mma.sync, each exact")
    names = [*(wgmma_name(*case) for case in WGMMA), *map(mma_name, FORMS), mma_name(BF16, "MN")]
    return compiled([*names, *(plain_name(*majors) for majors in MAJORS), "typed_product<128>"])


def matrix(element, rows, columns, most):
    """Return random integers that the type can represent. Values for types other than s8 and u8 are at most `most`."""
    low, high = {"s8": (-128, 127), "u8": (0, 255)}.get(element, (-most, most))
    return torch.randint(low, high + 1, (rows, columns), device="cuda").to(TYPES[element])


def operands(form, rows):
    """Return A with 64 rows of 128 bytes, B with `rows` rows of 128 bytes, and the initial accumulators."""
    elements = 128 // TYPES[form.a].itemsize
    a, b = (
        matrix(t, count, elements, 2 if form.held == "unsigned" else 4) for t, count in ((form.a, 64), (form.b, rows))
    )
    # All values have the same sign, so that the order of additions has no effect with saturation.
    if form.satfinite:
        a, b = a.clamp(min=0), b.clamp(min=0)
    return a, b, {"float": 3.0, "int": 2**31 - 1 - 10**5, "unsigned": 0x42004200}[form.held]


def bytes_map(device, tile):
    plain = tile.view(torch.uint8)
    return device.create_tensor_map(plain, box_dim=tuple(plain.shape), swizzle="128B")


def expected(form, a, b, start, sign=1):
    """Compute the sums in int64, and convert them to the accumulator type. f16 and float are exact, and int wraps or
    saturates."""
    a, b = (each.to(torch.float32).cpu().numpy().astype(np.int64) for each in (a, b))
    if form.held != "int":
        return 3 + sign * (a @ b.T)
    whole = start + a @ b.T
    return np.clip(whole, -(2**31), 2**31 - 1) if form.satfinite else (whole + 2**31) % 2**32 - 2**31


def run(device, kernel, maps, start, out, shmem_size=0):
    config = LaunchConfig(grid=1, block=128, shmem_size=shmem_size)
    cuda_tma.launch(device.default_stream, config, kernel, *maps, *start, out)
    torch.cuda.synchronize()
    return out.cpu().numpy()


@pytest.mark.parametrize("case", WGMMA, ids=lambda case: f"{case[0]}-{case[1]}{'-rs' * case[2]}{'-negated' * case[3]}")
def test_wgmma(device, kernels, case):
    form, n, _, negated = case
    a, b, start = operands(form, n)
    out = torch.full((64, n), -1, dtype=SUMS[form.held], device="cuda")
    maps = bytes_map(device, a), bytes_map(device, b)
    found = run(device, kernels.get_kernel(wgmma_name(*case)), maps, [start], out, (64 + n) * 128)
    assert np.array_equal(found.astype(np.int64), expected(form, a, b, start, -1 if negated else 1))
    if form.satfinite:
        assert (found == 2**31 - 1).any()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_mma(device, kernels, form):
    a, b, start = operands(form, 64)
    out = torch.full((64, 16), -1, dtype=SUMS[form.held], device="cuda")
    found = run(device, kernels.get_kernel(mma_name(form)), (bytes_map(device, a), bytes_map(device, b)), [start], out)
    assert np.array_equal(found.astype(np.int64), expected(form, a, b[:16], start))


def test_mma_of_transposed_tiles(device, kernels):
    """In the test of mma.sync, M and N are the innermost dimensions of the tiles, and ldmatrix transposes the tiles."""
    a, b, start = operands(BF16, 64)
    out = torch.full((64, 16), torch.nan, device="cuda")
    maps = [bytes_map(device, each.T.contiguous()) for each in (a, b)]
    found = run(device, kernels.get_kernel(mma_name(BF16, "MN")), maps, [start], out)
    assert np.array_equal(found.astype(np.int64), expected(BF16, a, b[:16], start))


@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_wgmma_without_a_swizzle(device, kernels, majors):
    a, b = (matrix("bf16", rows, 32, 8) for rows in (64, 96))
    stored = [each if major == "K" else each.T.contiguous() for each, major in zip((a, b), majors, strict=True)]
    maps = [device.create_tensor_map(each, box_dim=(each.shape[0], 8)) for each in stored]
    out = torch.full((64, 96), torch.nan, device="cuda")
    run(device, kernels.get_kernel(plain_name(*majors)), maps, [], out, (64 + 96) * 64)
    assert torch.equal(out, a.float() @ b.float().T)


def test_wgmma_of_typed_tiles(device, kernels):
    """The typed tiles of the test are wider than the spans of their swizzles, so that a tile consists of several
    boxes."""
    a, b = matrix("f16", 64, 128, 8), matrix("f16", 128, 128, 8)
    maps = [
        device.create_tensor_map(each, box_dim=box, swizzle=swizzle)
        for each, box, swizzle in ((a, (64, 64), "128B"), (b, (128, 32), "64B"))
    ]
    out = torch.full((64, 128), torch.nan, device="cuda")
    run(device, kernels.get_kernel("typed_product<128>"), maps, [], out, (64 + 128) * 256)
    assert torch.equal(out, a.float() @ b.float())
