"""Tests of the simulated tensor cores, with operands in the layout of TMA, and with registers as in the figures of the
PTX ISA."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma import smem as shared
from cuda_tma.simulate._errors import UnsupportedInstruction
from cuda_tma.simulate._matrix import matrix_move_of, wgmma_of
from cuda_tma.simulate._matrix.formats import FORMATS
from tests.include._wgmma_operands import SWIZZLES, descriptor
from tests.support.pure_instructions import entry_of, instruction

NARROW = ("e4m3", "e5m2")
TYPES = [
    *((t, t, "f32") for t in ("f16", "bf16", "tf32")),
    ("f16", "f16", "f16"),
    *((a, b, d) for a, b, d in product(NARROW, NARROW, ("f32", "f16"))),
    *((a, b, "s32") for a, b in product(("s8", "u8"), repeat=2)),
]
DTYPES = {"s8": np.int8, "u8": np.uint8}
START = 0x2000


def element_bytes(type_: str) -> int:
    return {"tf32": 4, "f16": 2, "bf16": 2}.get(type_, 1)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], type_: str) -> np.ndarray:
    """Return small integers, which every type can represent."""
    return rng.integers(0 if type_ == "u8" else -6, 7, shape).astype(np.float64)


def encoded(values: np.ndarray, type_: str) -> np.ndarray:
    """Return an array of values as an array of bytes, in which the last axis is longer by the size of a value."""
    bits = values.astype(DTYPES[type_]) if type_ in DTYPES else FORMATS[type_].encode(values)
    return np.ascontiguousarray(bits).view(np.uint8)


def sums_as_registers(sums: np.ndarray, d_type: str) -> np.ndarray:
    """Distribute a 64 x N matrix among 128 threads (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16")."""
    count = sums.shape[1] // 2
    i, t = np.ogrid[:count, :128]
    values = sums[t // 32 * 16 + i // 2 % 2 * 8 + t % 32 // 4, i // 4 * 8 + t % 4 * 2 + i % 2]
    if d_type == "f16":
        bits = FORMATS["f16"].encode(values).astype(np.uint32)
        return bits[0::2] | bits[1::2] << 16
    return values.astype(np.int32 if d_type == "s32" else np.float32)


def form(shape: str, types: str, count: int, a: str, rest: str) -> str:
    sums = ", ".join(f"d{i}" for i in range(count))
    return f"wgmma.mma_async.sync.aligned.{shape}.{types} {{{sums}}}, {a}, b, {rest}"


def tile(matrix: np.ndarray, mode: int, box: tuple[int, int], at: tuple[int, int]) -> np.ndarray:
    """Return the content of shared memory after a TMA load of a box of bytes."""
    params = params_of(TensorSpec(matrix.shape, "uint8"), box_dim=box, swizzle=mode)
    return emulate.load(params, matrix.reshape(-1), at).smem


def gathered(smem: np.ndarray, addresses: np.ndarray) -> np.ndarray:
    assert addresses.dtype.kind == "i" and (addresses % 16 == 0).all()
    return smem.reshape(-1, 16)[(addresses - START) // 16][None]


@pytest.mark.parametrize(("a_type", "b_type", "d_type"), TYPES)
@pytest.mark.parametrize("in_registers", [False, True], ids=["shared", "registers"])
def test_products_of_every_type(a_type, b_type, d_type, in_registers):
    """In the test of products, the tiles are K-major with a 128-byte swizzle, and the product uses the second 32 bytes
    of K."""
    rng = np.random.default_rng(1)
    size, mode = element_bytes(a_type), SWIZZLES[2]
    k = 32 // size
    for n in (8, 24, 64, 256):
        a, b = numbers(rng, (64, 2 * k), a_type), numbers(rng, (n, 2 * k), b_type)
        a_smem = tile(np.pad(encoded(a, a_type), ((0, 0), (0, 64))), mode, (64, 128), (0, 0))
        b_smem = tile(np.pad(encoded(b, b_type), ((0, 0), (0, 64))), mode, (n, 128), (0, 0))
        signs = "" if d_type == "s32" else ", -1, 1" + (", 0" * (2 - in_registers) if size == 2 else "")
        count = n // (4 if d_type == "f16" else 2)
        text = form(
            f"m64n{n}k{k}", f"{d_type}.{a_type}.{b_type}", count, "{a, c, e, f}" if in_registers else "a", f"p{signs}"
        )
        wgmma = wgmma_of(instruction(text))
        bits = descriptor(mode, START, 16, 1024) + 2
        b_pieces = gathered(b_smem, wgmma.b_addresses(bits))
        if in_registers:
            i, t = np.ogrid[:4, :128]
            words = encoded(a[:, k:], a_type).view(np.uint32)
            a_operand = words[t // 32 * 16 + i % 2 * 8 + t % 32 // 4, i // 2 * 4 + t % 4]
        else:
            a_operand = gathered(a_smem, wgmma.a_addresses(bits))
        before = numbers(rng, (64, n), "f32")
        # The addition of 0.0 replaces each sum -0 by 0.
        expected = (a[:, k:] @ b[:, k:].T) * (-1 if signs else 1) + 0.0
        start = sums_as_registers(before, d_type)
        assert (wgmma.multiply(a_operand, b_pieces, start) == sums_as_registers(expected + before, d_type)).all()
        assert (wgmma.multiply(a_operand, b_pieces, None) == sums_as_registers(expected, d_type)).all()


@pytest.mark.parametrize(("a_major", "b_major"), list(product(("K", "MN"), repeat=2)))
@pytest.mark.parametrize("mode", SWIZZLES, ids=lambda mode: mode.name)
def test_both_orders_in_every_swizzle(a_major, b_major, mode):
    rng = np.random.default_rng(2)
    span = shared.pattern(mode).span_bytes
    k, n = span // 2, 128
    values = numbers(rng, (64, k), "bf16"), numbers(rng, (n, k), "bf16")
    text = form(f"m64n{n}k16", "f32.bf16.bf16", n // 2, "a", f"p, 1, 1, {int(a_major == 'MN')}, {int(b_major == 'MN')}")
    wgmma = wgmma_of(instruction(text))

    def operand(matrix, major, addresses, step):
        data = encoded(matrix if major == "K" else matrix.T, "bf16")
        if major == "K":
            smem = tile(data, mode, (len(matrix), span), (0, 0))
            return gathered(smem, addresses(descriptor(mode, START, 16, 8 * span) + 2 * step))
        boxes = [tile(data, mode, (k, span), (column, 0)) for column in range(0, data.shape[1], span)]
        bits = descriptor(mode, START, k * span, 8 * span) + step * span
        return gathered(np.concatenate(boxes), addresses(bits))

    total = np.zeros((n // 2, 128), np.float32)
    for step in range(k // 16):
        a = operand(values[0], a_major, wgmma.a_addresses, step)
        total = wgmma.multiply(a, operand(values[1], b_major, wgmma.b_addresses, step), total)
    assert (total == sums_as_registers(values[0] @ values[1].T, "f32")).all()


@pytest.mark.parametrize("major", ["K", "MN"])
def test_core_matrices_without_a_swizzle(major):
    """The test uses arbitrary offsets between core matrices, 3 * 128 bytes along M or N, and 5120 bytes along K."""
    rng = np.random.default_rng(3)
    b = numbers(rng, (64, 16), "f16")
    data = encoded(b if major == "K" else b.T, "f16")
    smem = np.zeros(1 << 14, np.uint8)
    for along_k, along_n in product(range(2), range(8)):
        rows, pieces = (along_n, along_k) if major == "K" else (along_k, along_n)
        core = data[8 * rows : 8 * rows + 8, 16 * pieces : 16 * pieces + 16]
        smem[along_k * 5120 + along_n * 384 :][:128] = core.reshape(-1)
    wgmma = wgmma_of(
        instruction(form("m64n64k16", "f32.f16.f16", 32, "{a, c, e, f}", f"p, 1, 1, {int(major == 'MN')}"))
    )
    identity = np.zeros((4, 128), np.uint32)
    i, t = np.ogrid[:4, :128]
    row, column = t // 32 * 16 + i % 2 * 8 + t % 32 // 4, i // 2 * 8 + t % 4 * 2
    for half in range(2):
        identity |= (0x3C00 * (row % 16 == column + half)).astype(np.uint32) << 16 * half
    found = wgmma.multiply(identity, gathered(smem, wgmma.b_addresses(descriptor(0, START, 5120, 384))), None)
    assert (found == sums_as_registers(np.tile(b.T, (4, 1)), "f32")).all()


def test_several_warpgroups_at_once():
    rng = np.random.default_rng(4)
    wgmma = wgmma_of(instruction(form("m64n8k16", "f32.f16.f16", 4, "a", "p, 1, 1, 0, 0")))
    a, b = (encoded(numbers(rng, (3, rows, 16), "f16"), "f16").reshape(3, rows, 2, 16) for rows in (64, 8))
    d = rng.integers(-9, 9, (4, 384)).astype(np.float32)
    each = [wgmma.multiply(a[g : g + 1], b[g : g + 1], d[:, 128 * g : 128 * g + 128]) for g in range(3)]
    assert (wgmma.multiply(a, b, d) == np.concatenate(each, axis=1)).all()


def test_integers_wrap_or_saturate():
    a, b = np.full((1, 64, 2, 16), 127, np.uint8), np.full((1, 8, 2, 16), 127, np.uint8)
    most = np.full((4, 128), 2**31 - 1, np.int32)
    for end, expected in ((".satfinite", 2**31 - 1), ("", 2**31 - 1 + 32 * 127 * 127 - 2**32)):
        wgmma = wgmma_of(instruction(form("m64n8k32", f"s32.s8.s8{end}", 4, "a", "p")))
        assert (wgmma.multiply(a, b, most) == expected).all()


@pytest.mark.parametrize(
    "text",
    [
        form("m64n8k16", "f32.f16.bf16", 4, "a", "p, 1, 1, 0, 0"),
        form("m64n12k16", "f32.f16.f16", 6, "a", "p, 1, 1, 0, 0"),
        form("m64n8k32", "f32.f16.f16", 4, "a", "p, 1, 1, 0, 0"),
        form("m64n8k16", "f32.f16.f16", 4, "a", "p, 1, 1"),
        form("m64n8k16", "f32.f16.f16", 2, "a", "p, 1, 1, 0, 0"),
        form("m64n8k256", "s32.b1.b1.and.popc", 4, "a", "p"),
        form("m64n8k32", "f32.e4m3.e4m3", 4, "a", "p, 1, 2"),
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {d}, a, b, c, 0, p, 1, 1, 0, 0",
    ],
)
def test_other_products_are_unknown(text):
    with pytest.raises(UnsupportedInstruction, match=r"^PTX line 1: the simulator does not know wgmma\.mma_async"):
        wgmma_of(instruction(text))


def test_an_unknown_base_offset_is_refused():
    wgmma = wgmma_of(instruction(form("m64n8k16", "f32.f16.f16", 4, "a", "p, 1, 1, 0, 0")))
    with pytest.raises(NotImplementedError, match="base offset 3"):
        wgmma.a_addresses(descriptor(3, START, 16, 1024) | 3 << 49)


# ---- one warp ----


@pytest.mark.parametrize(("a_type", "b_type", "d_type"), TYPES)
@pytest.mark.parametrize("pieces", [1, 2])
def test_mma_sync(a_type, b_type, d_type, pieces):
    """The layout of mma.sync follows "Matrix Fragments for mma.m16n8k16 with floating point type" and related sections
    of the PTX ISA."""
    rng = np.random.default_rng(5)
    k = 16 * pieces // element_bytes(a_type)
    a, b = numbers(rng, (2, 16, k), a_type), numbers(rng, (2, 8, k), b_type)
    c = numbers(rng, (2, 16, 8), "f32")
    warp, lane = np.ogrid[:2, :32]
    words = [encoded(each, type_).view(np.uint32) for each, type_ in ((a, a_type), (b, b_type))]
    of_a = [words[0][warp, i % 2 * 8 + lane // 4, i // 2 * 4 + lane % 4] for i in range(2 * pieces)]
    of_b = [words[1][warp, lane // 4, i * 4 + lane % 4] for i in range(pieces)]

    def fragment(matrix):
        sums = [matrix[warp, i // 2 * 8 + lane // 4, lane % 4 * 2 + i % 2] for i in range(4)]
        if d_type == "f16":
            bits = [FORMATS["f16"].encode(each).astype(np.uint32) for each in sums]
            return [bits[0] | bits[1] << 16, bits[2] | bits[3] << 16]
        return [each.astype(np.int32 if d_type == "s32" else np.float32) for each in sums]

    operands = [", ".join(f"{name}{i}" for i in range(count)) for name, count in
                zip("dabc", (len(fragment(c)), 2 * pieces, pieces, len(fragment(c))), strict=True)]  # fmt: skip
    text = f"mma.sync.aligned.m16n8k{k}.row.col.{d_type}.{a_type}.{b_type}.{d_type} " + ", ".join(
        f"{{{o}}}" for o in operands
    )
    entry = entry_of(text)
    assert entry.warp and len(entry.sources) == 3 * pieces + len(fragment(c))
    found = entry.compute(np.ones((2, 32), bool), *of_a, *of_b, *fragment(c))
    expected = fragment(a @ b.swapaxes(1, 2) + c)
    assert all((x == y).all() and x.dtype == y.dtype for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(
    ("types", "end"), [("s4.s4", ""), ("u4.s4", ".satfinite"), ("b1.b1", ".and.popc"), ("b1.b1", ".xor.popc")]
)
def test_mma_sync_of_parts_of_a_byte(types, end, pieces):
    """For elements of less than a byte, the layout of mma.sync counts bytes. The first element of a byte is in the
    lowest bits."""
    bits = {"s": 4, "u": 4, "b": 1}
    a_type, b_type = types.split(".")
    k, rng = 128 * pieces // bits[a_type[0]], np.random.default_rng(9)
    a_bytes, b_bytes = (rng.integers(256, size=(rows, 16 * pieces)).astype(np.uint8) for rows in (16, 8))

    def values(data, type_):
        width = bits[type_[0]]
        found = np.stack([data >> shift & (1 << width) - 1 for shift in range(0, 8, width)], 2).reshape(len(data), k)
        return found.astype(int) - 16 * (found >= 8) * (type_ == "s4")

    a, b = values(a_bytes, a_type), values(b_bytes, b_type)
    c = rng.integers(-99, 99, (16, 8)) + (np.iinfo(np.int32).max - 99) * ("satfinite" in end)
    expected = (a[:, None] ^ b[None]).sum(2) if "xor" in end else a @ b.T
    expected = np.clip(expected + c, None, np.iinfo(np.int32).max)
    lane = np.arange(32)
    words = [each.view(np.uint32) for each in (a_bytes, b_bytes)]
    of_a = [words[0][i % 2 * 8 + lane // 4, i // 2 * 4 + lane % 4][None] for i in range(2 * pieces)]
    of_b = [words[1][lane // 4, i * 4 + lane % 4][None] for i in range(pieces)]
    fragment = lambda m: [m[i // 2 * 8 + lane // 4, lane % 4 * 2 + i % 2][None].astype(np.int32) for i in range(4)]  # noqa: E731
    operands = ", ".join(
        "{" + ", ".join(f"{name}{i}" for i in range(count)) + "}"
        for name, count in zip("dabc", (4, 2 * pieces, pieces, 4), strict=True)
    )
    entry = entry_of(f"mma.sync.aligned.m16n8k{k}.row.col.s32.{types}.s32{end} {operands}")
    found = entry.compute(np.ones((1, 32), bool), *of_a, *of_b, *fragment(c))
    assert all((x == y).all() for x, y in zip(found, fragment(expected), strict=True))


@pytest.mark.parametrize(("rows", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_mma_sync_of_f64(rows, k):
    rng = np.random.default_rng(6)
    a, b, c = numbers(rng, (rows, k), "f32"), numbers(rng, (k, 8), "f32"), numbers(rng, (rows, 8), "f32")
    lane = np.arange(32)
    halves = rows // 8
    of_a = [a[i % halves * 8 + lane // 4, lane % 4 + i // halves * 4][None] for i in range(halves * k // 4)]
    of_b = [b[lane % 4 + 4 * i, lane // 4][None] for i in range(k // 4)]
    fragment = lambda m: [m[i // 2 * 8 + lane // 4, lane % 4 * 2 + i % 2][None] for i in range(2 * halves)]  # noqa: E731
    operands = ", ".join(
        "{" + ", ".join(f"{name}{i}" for i in range(count)) + "}"
        for name, count in zip("dabc", (2 * halves, len(of_a), len(of_b), 2 * halves), strict=True)
    )
    entry = entry_of(f"mma.sync.aligned.m{rows}n8k{k}.row.col.f64.f64.f64.f64 {operands}")
    found = entry.compute(np.ones((1, 32), bool), *of_a, *of_b, *fragment(c))
    assert all((x == y).all() for x, y in zip(found, fragment(a @ b + c), strict=True))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_between_rows_and_registers(count, transposed):
    registers = ", ".join(f"d{i}" for i in range(count))
    trans = ".trans" * transposed
    move = matrix_move_of(instruction(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [a]"))
    assert (move.count, move.transposed) == (count, transposed)
    assert move == matrix_move_of(
        instruction(f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared::cta.b16 [a], {{{registers}}}")
    )
    # The header files in cute/arch of CUTLASS write the qualifiers of ldmatrix in this order.
    cutlass = f"ldmatrix.sync.aligned.x{count}{trans}.m8n8.shared.b16 {{{registers}}}, [a]"
    assert move == matrix_move_of(instruction(cutlass))
    elements = np.arange(3 * count * 64, dtype=np.uint16).reshape(3, 8 * count, 8)
    found = move.to_registers(elements.view(np.uint8))
    warp, lane = np.ogrid[:3, :32]
    for m in range(count):
        row, column = lane // 4, lane % 4 * 2
        halves = [
            elements[warp, 8 * m + (column + h if transposed else row), row if transposed else column + h].astype(
                np.uint32
            )
            for h in range(2)
        ]
        assert (found[m] == halves[0] | halves[1] << 16).all()
    assert (move.to_rows(found) == elements.view(np.uint8)).all()


def test_other_moves_are_unknown():
    for shape in ("m8n8.x3.shared.b16", "m16n16.x1.shared.b8", "m8n8.x1.global.b16"):
        with pytest.raises(UnsupportedInstruction):
            matrix_move_of(instruction(f"ldmatrix.sync.aligned.{shape} {{d}}, [a]"))


def test_movmatrix():
    elements = np.arange(64, dtype=np.uint16).reshape(8, 8)
    words = elements.view(np.uint32).reshape(1, 32)
    found = entry_of("movmatrix.sync.aligned.m8n8.trans.b16 d, a").compute(np.ones((1, 32), bool), words)
    assert (np.ascontiguousarray(found).view(np.uint16).reshape(8, 8) == elements.T).all()
