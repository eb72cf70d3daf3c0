"""The demo, on the emulator: the right picture passes, a wrong one does not, and the files are what they should be."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma import demo


@pytest.fixture
def picture(tmp_path):
    """A grey picture whose rows are no multiple of 16 bytes, and whose edges are no multiple of a tile."""
    path = tmp_path / "in.npy"
    np.save(path, np.random.default_rng(1).random((70, 131), np.float32))
    return path


def run(tmp_path, *arguments) -> int:
    return demo.main(["--emulate", "--output", str(tmp_path / "out.png"), *map(str, arguments)])


def read_png(path) -> np.ndarray:
    return np.asarray(pytest.importorskip("PIL.Image").open(path))


def test_right_picture(tmp_path, picture, capfd):
    assert run(tmp_path, "--input", picture) == 0
    out, err = capfd.readouterr()
    assert "emulator" in out.splitlines()[0]
    assert "source: FLOAT32, global_dim (131, 70, 1), global_strides (528, 36960) bytes, box_dim (72, 72, 1)" in out
    assert out.endswith("every pixel is as NumPy computes it\n")
    assert err == ""
    assert read_png(tmp_path / "out.png").shape == (70, 131 + 8 + 131, 3)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_alone(capfd, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    tiles = [(x, 0, 0) for x in range(6)]
    assert list(demo._with_progress_bar(tiles)) == tiles
    bars = capfd.readouterr().err.split("\r")[1:]
    assert (bars[0], bars[-1]) == (f"tiles [{'#' * 8:50}] 1/6", f"tiles [{'#' * 50}] 6/6\n") if terminal else not bars


@pytest.mark.parametrize("wrong", [0.5, np.nan])
def test_planted_wrong_pixel_is_caught(tmp_path, picture, capfd, monkeypatch, wrong):
    right = demo.blur_by_emulator

    def spoiled(picture):
        blurred = right(picture).copy()
        blurred[0, 69, 130] = wrong
        return blurred

    monkeypatch.setattr(demo, "blur_by_emulator", spoiled)
    assert run(tmp_path, "--input", picture) == 1
    assert f"WRONG: 1 pixel(s), the worst in plane 0, row 69, column 130: {wrong:g} where" in capfd.readouterr().out


def test_a_load_off_by_one_row_is_caught(tmp_path, picture, monkeypatch):
    right = demo.emulate.load

    def shifted(params, memory, coordinates, **keywords):
        x, y, plane = coordinates
        return right(params, memory, (x, y + 1, plane), **keywords)

    monkeypatch.setattr(demo.emulate, "load", shifted)
    assert run(tmp_path, "--input", picture) == 1


@settings(max_examples=20, deadline=None)
@given(planes=st.integers(1, 3), rows=st.integers(1, 140), columns=st.integers(1, 140), seed=st.integers(0, 99))
def test_any_size_is_blurred_as_by_definition(planes, rows, columns, seed):
    """Against the definition, one pixel at a time: 81 weighted neighbours, zeros outside."""
    rng = np.random.default_rng(seed)
    picture = rng.random((planes, rows, columns), np.float32)
    blurred = demo.blur_by_emulator(picture)
    assert blurred.shape == picture.shape
    binomial = [1, 8, 28, 56, 70, 56, 28, 8, 1]
    for _ in range(5):
        plane, row, column = (int(rng.integers(n)) for n in picture.shape)
        expected = sum(
            binomial[dy + 4] * binomial[dx + 4] / 65536 * float(picture[plane, row + dy, column + dx])
            for dy in range(-4, 5)
            for dx in range(-4, 5)
            if 0 <= row + dy < rows and 0 <= column + dx < columns
        )
        assert blurred[plane, row, column] == pytest.approx(expected, abs=1e-5)


def test_png_round_trip(tmp_path):
    rgb = np.random.default_rng(2).integers(0, 256, (9, 7, 3), np.uint8)
    demo.write_png(tmp_path / "rgb.png", rgb)
    assert np.array_equal(read_png(tmp_path / "rgb.png"), rgb)
    assert np.array_equal(demo.read_picture(tmp_path / "rgb.png"), np.moveaxis(rgb, -1, 0).astype(np.float32))


def test_side_by_side_keeps_the_pixels_and_the_scale():
    before = np.array([[[10, 20], [30, 50]]], np.float32)
    both = demo.side_by_side(before, before - 20)
    assert both[:, :2, 0].tolist() == [[0, 64], [128, 255]]  # 10 is black, 50 white
    assert both[:, -2:, 0].tolist() == [[0, 0], [0, 128]]  # and darker than black is black


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), r"float64 of shape \(5,\)"),
        (np.zeros((2, 2), complex), "needs real numbers"),
        (np.zeros((0, 4)), r"shape \(0, 4\)"),
        (np.array([[1.0, np.nan]]), "NaN or infinity"),
    ],
)
def test_unfit_input_is_named(tmp_path, array, message):
    np.save(tmp_path / "in.npy", array)
    with pytest.raises(SystemExit, match=message):
        run(tmp_path, "--input", tmp_path / "in.npy")


def test_missing_input_is_a_usage_error(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        run(tmp_path, "--input", tmp_path / "no.npy")
    assert exit_.value.code == 2
    assert "no such file" in capsys.readouterr().err


def test_without_pillow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    (tmp_path / "in.png").write_bytes(b"")
    with pytest.raises(SystemExit, match="pip install pillow"):
        run(tmp_path, "--input", tmp_path / "in.png")
