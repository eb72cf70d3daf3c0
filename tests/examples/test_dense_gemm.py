"""Tests of the dense GEMM example: contracts of types and layouts on the simulator, refusals, and wrong elements."""

from __future__ import annotations

import pytest

from benchmarks.kernels import example

torch = pytest.importorskip("torch")

dense = example("dense_gemm")
gemm, types = dense.gemm, __import__("_gemm_types")
FP8, INTEGERS = "--a_dtype Float8E4M3FN --b_dtype Float8E5M2", "--a_dtype Int8 --b_dtype Uint8 --acc_dtype Int32"


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a command line on the simulator, and compares every element of C."""
    from tests.support.simulated_examples import simulated

    objects = simulated()
    for module in (gemm, dense):
        for name in objects.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, objects[name])

    def run(line):
        asked = dense.parser().parse_args(line.split())
        dense.run(asked, objects["cuda_tma"].Device(), dense.operands(asked, "cpu"))

    return run


@pytest.mark.parametrize(
    "line",
    [
        "--mnkl 72,56,136,2 --tile_shape_mnk 64,64,64 --a_major m --b_major n --alpha 2 --beta -1",
        "--mnkl 72,56,72,1 --tile_shape_mnk 64,64 --c_major m --acc_dtype Float16 --bias",
        "--mnkl 130,48,48,1 --tile_shape_mnk 128,32 --cluster_shape_mn 2,1 --c_dtype Float32 --activation relu",
        f"{FP8} --mnkl 40,32,144,2 --tile_shape_mnk 64,32,128 --c_dtype Float8E4M3FN --cluster_shape_mn 1,2",
        f"{FP8} --mnkl 48,32,144,1 --tile_shape_mnk 64,32 --acc_dtype Float16 --c_dtype Float32 --c_major m",
        f"{INTEGERS} --mnkl 48,32,144,2 --tile_shape_mnk 64,32 --c_dtype Int8 --c_major m",
        f"{INTEGERS} --mnkl 40,32,144,1 --tile_shape_mnk 64,32 --c_dtype Int32",
        f"{INTEGERS} --mnkl 40,32,400,1 --c_dtype Float16 --alpha 0.5",
        "--a_dtype TFloat32 --b_dtype TFloat32 --c_dtype Float32 --mnkl 5,24,72,3",
    ],
)
def test_a_contract_is_right_in_every_element(run, line):
    run(line)


def test_one_wrong_element_is_an_error():
    asked = dense.parser().parse_args(["--mnkl", "8,8,8,1"])
    a, b, c, bias = dense.operands(asked, "cpu")
    wanted = dense.expected(asked, a, b, c, bias)
    dense.compare(asked, wanted.clone(), wanted)
    wrong = wanted.clone()
    wrong[0, 3, 5] += 1
    with pytest.raises(SystemExit, match=r"1 of 64 elements are wrong, the first at \(0, 3, 5\)"):
        dense.compare(asked, wrong, wanted)


@pytest.mark.parametrize(
    ("contract", "reason"),
    [
        (("float16", "bfloat16", "float32", "float16"), "A is float16 and B is bfloat16"),
        (("float8_e4m3fn", "int8", "float32", "float16"), "A is float8_e4m3fn and B is int8"),
        (("int8", "int8", "float32", "float32"), "do not add products of int8 in float32"),
        (("bfloat16", "bfloat16", "float16", "float16"), "do not add products of bfloat16 in float16"),
        (("float16", "float16", "float32", "int32"), "C is int32, which does not follow from float32"),
        (("int8", "int8", "int32", "int8", False), "an operand of int8 has contiguous M or N"),
        (("float64", "float64", "float32", "float32"), "float64 is not one of bfloat16"),
    ],
)
def test_a_contract_that_the_tensor_cores_lack_is_refused(contract, reason):
    assert reason in types.refusal(types.Contract(*contract))


def test_a_legal_contract_is_not_refused():
    assert types.refusal(types.Contract("int8", "uint8", "int32", "uint8")) is None


def test_a_row_without_a_multiple_of_16_bytes_is_refused(run):
    with pytest.raises(ValueError, match="C has 24 contiguous bytes: TMA requires a multiple of 16"):
        run("--mnkl 8,12,8,1")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (["--tile_shape_mnk", "96,128"], "a tile has 64 or 128 rows"),
        (["--tile_shape_mnk", "128,128,32"], "and a K of 64"),
    ],
)
def test_a_tile_that_the_kernel_lacks_is_refused(line, reason):
    with pytest.raises(SystemExit, match=reason):
        dense.variant_of(dense.parser().parse_args(line))
