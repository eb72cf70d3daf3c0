"""Tests of ``cuda-tma run``, which runs a kernel of a file on the simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cuda_tma._command import cli

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<8, 16>>;
extern "C" __device__ int printf(const char*, ...);
extern "C" __global__ void scale(const __grid_constant__ TiledMap<Window> from, float* to, float by, int n) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, Coordinates{0, 0});
        printf("%d rows\\n", ROWS);
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = by * tile(i / 16, i % 16);
}
"""


@pytest.fixture
def run(tmp_path, capsys):
    source = tmp_path / "scale.cu"
    source.write_text(SOURCE)

    def run(*arguments):
        common = ["run", str(source), "--kernel", "scale", "--grid", "1", "--block", "32", "-D", "ROWS=8"]
        return cli.main([*common, *map(str, arguments)]), *capsys.readouterr()

    return run


def test_arrays_are_copied_in_and_out(run, tmp_path):
    given = np.arange(128, dtype=np.float32).reshape(8, 16)
    np.save(tmp_path / "in.npy", given)
    arguments = ["--arg", tmp_path / "in.npy", "--arg", "float32[8x16]", "--arg", "0.5", "--arg", "128"]
    status, out, err = run(*arguments, "--output", tmp_path / "out")
    assert (status, err) == (0, "")
    assert out.startswith("8 rows\nno errors; ")
    assert np.array_equal(np.load(tmp_path / "out" / "arg1.npy"), given / 2)


def test_the_fault_is_reported(run):
    arguments = ["--arg", "random:float32[8x16]", "--arg", "float32[64]", "--arg", "1.0", "--arg", "128"]
    status, out, _ = run(*arguments)
    assert status == 1
    assert "scale.cu:18: error: a write of 4 bytes at 0x" in out and "[out-of-bounds]" in out
    status, out, _ = run(*arguments, "--json")
    (finding,) = json.loads(out)["findings"]
    assert (status, finding["kind"], finding["source"][0]["line"]) == (1, "out-of-bounds", 18)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--arg", "1"], "kernel scale takes 4 arguments, and 1 was given"),
        (["--arg", "what"], "cannot parse 'what'; pass a number, an array"),
        (["--arg", "nothing[3]"], "'nothing' is not a dtype"),
        (["--arg", "2_000"], "cannot parse '2_000'"),
        (["--arg", "9" * 5000], "...9999999999999' has 5000 characters; pass a number of at most 64 bits"),
        (["--arg", f"int8[{'9' * 5000}]"], "cannot parse 'int8["),
        (["--arg", f"int8[8]@{'9' * 5000}"], "cannot parse 'int8["),
        (
            ["--arg", "float32[4x8]@4x8,bogus=3"],
            "'bogus' is not an option of a map; the options are element_strides, data_type",
        ),
        (["--arg", "absent.npy"], "absent.npy cannot be read"),
        (["--cluster", "99"], "pass a cluster of at most 16"),
        (["-D", "Window=3"], "does not compile"),
    ],
)
def test_misuse(run, arguments, text):
    status, _, err = run(*arguments)
    assert status == 2 and text in err


def test_a_timeline_is_written(run, tmp_path):
    arguments = ["--arg", "random:float32[8x16]", "--arg", "float32[8x16]", "--arg", "1.0", "--arg", "128"]
    status, out, _ = run(*arguments, "--timeline", tmp_path / "scale.svg", "--json")
    assert status == 0 and "traced" not in out
    assert "scale: 1 CTA" in (tmp_path / "scale.svg").read_text()
    status, _, err = run(*arguments, "--timeline", "scale.pdf")
    assert status == 2 and "--timeline scale.pdf is not the name of a timeline; end the name in .svg or .html" in err
    status, _, err = run(*arguments, "--timeline", tmp_path / "no" / "scale.svg")
    assert status == 2 and "cannot be written" in err
