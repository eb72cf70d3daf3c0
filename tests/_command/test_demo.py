"""Tests of the blur demo on the emulator. The demo accepts the right picture, refuses a wrong picture, and writes the
right files."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma._command import cli, demo


@pytest.fixture
def picture(tmp_path):
    """Return a gray picture whose rows are not a multiple of 16 bytes, and whose edges are not a multiple of a tile."""
    path = tmp_path / "in.npy"
    np.save(path, np.random.default_rng(1).random((70, 131), np.float32))
    return path


def run(tmp_path, *arguments) -> int:
    return cli.main(["demo", "--emulate", "--output", str(tmp_path / "out.png"), *map(str, arguments)])


def read_png(path) -> np.ndarray:
    return np.asarray(pytest.importorskip("PIL.Image").open(path))


def test_right_picture(tmp_path, picture, capfd):
    assert run(tmp_path, "--input", picture) == 0
    out, err = capfd.readouterr()
    assert "emulator" in out.splitlines()[0]
    assert "source: FLOAT32, global_dim (131, 70, 1), global_strides (528, 36960) bytes, box_dim (72, 72, 1)" in out
    assert out.endswith("every pixel is equal to NumPy's\n")
    assert err == ""
    assert read_png(tmp_path / "out.png").shape == (70, 131 + 8 + 131, 3)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_only_on_a_terminal(capfd, monkeypatch, terminal):
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
    """Each pixel of the blurred picture equals the weighted sum of 81 neighbors, with zeros outside the picture."""
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
    # The value 10 is drawn in black, and the value 50 in white.
    assert both[:, :2, 0].tolist() == [[0, 64], [128, 255]]
    # Values below the black level are also drawn in black.
    assert both[:, -2:, 0].tolist() == [[0, 0], [0, 128]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), r"float64 of shape \(5,\)"),
        (np.zeros((2, 2), complex), "pass real numbers"),
        (np.zeros((0, 4)), r"shape \(0, 4\)"),
        (np.array([[1.0, np.nan]]), "contains NaN, infinity, or values beyond float32"),
        (np.array([[1.0, -np.inf]]), "contains NaN, infinity"),
        (np.array([[1.0, 1e300]]), "values beyond float32"),
        (np.array([["a"]]), "pass real numbers"),
        (np.array([[None]]), "is not a picture that can be read: Object arrays cannot be loaded"),
    ],
)
def test_unfit_input_is_named(tmp_path, capsys, array, message):
    np.save(tmp_path / "in.npy", array)
    assert run(tmp_path, "--input", tmp_path / "in.npy") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"cuda-tma: {tmp_path / 'in.npy'}") and re.search(message, err)
    assert not (tmp_path / "out.png").exists()


@pytest.mark.parametrize("name", ["no.npy", "no.png"])
def test_missing_input_is_misuse(tmp_path, capsys, name):
    assert run(tmp_path, "--input", tmp_path / name) == 2
    assert capsys.readouterr().err == f"cuda-tma: {tmp_path / name} cannot be read: No such file or directory\n"


def test_without_pillow(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "PIL", None)
    (tmp_path / "in.png").write_bytes(b"")
    assert run(tmp_path, "--input", tmp_path / "in.png") == 2
    message = f"cuda-tma: reading {tmp_path / 'in.png'} needs Pillow: pip install pillow, or pass a .npy array, or no"
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("name", ["in.npy", "in.png"])
@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n\x1a\n" + bytes(50), b"\x93NUMPY\x01\0\x08\0garbage", bytes(100)]
)
def test_a_broken_file_is_not_a_picture(tmp_path, capsys, name, content):
    pytest.importorskip("PIL")
    (tmp_path / name).write_bytes(content)
    assert run(tmp_path, "--input", tmp_path / name) == 2
    assert re.match(
        f"cuda-tma: {tmp_path / name} (cannot be read|is not a picture that can be read): .", capsys.readouterr().err
    )


def test_several_arrays_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "in.npz", a=np.zeros((2, 2)))
    (tmp_path / "in.npz").rename(tmp_path / "in.npy")
    assert run(tmp_path, "--input", tmp_path / "in.npy") == 2
    assert "in.npy contains several arrays; pass one of them as a .npy" in capsys.readouterr().err


def test_the_output_is_refused_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "blur_by_emulator", lambda _: pytest.fail("it was done"))
    (tmp_path / "folder.png").mkdir()
    for name, message in {
        "o.jpg": "is not the name of a PNG file; end the name in .png",
        "": "is not the name of a PNG",
        "folder.png": "cannot be written: it is a folder, or ",
        "none/o.png": f"or {tmp_path / 'none'} is not a folder",
    }.items():
        assert cli.main(["demo", "--emulate", "--output", str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"cuda-tma: --output {tmp_path / name} ") and message in err


def test_an_output_that_cannot_be_written(tmp_path, capsys, picture, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "write_png", fail)
    assert run(tmp_path, "--input", picture) == 2
    message = f"cuda-tma: --output {tmp_path / 'out.png'} cannot be written: [Errno 28] No space left on device\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("largest", [3e38, -3e38, 0.0])
def test_any_finite_numbers_are_blurred(tmp_path, capsys, largest):
    """Python runs with ``-W error``, so the test fails if an intermediate result overflows."""
    pixels = np.zeros((20, 20), np.float32)
    pixels[3, 4], pixels[5, 6] = largest, -largest
    np.save(tmp_path / "in.npy", pixels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(tmp_path, "--input", tmp_path / "in.npy") == 0
    assert capsys.readouterr().out.endswith("every pixel is equal to NumPy's\n")


def test_the_suffix_of_the_output_may_be_large(tmp_path, picture):
    assert cli.main(["demo", "--emulate", "--input", str(picture), "--output", str(tmp_path / "O.PNG")]) == 0
    assert (tmp_path / "O.PNG").read_bytes().startswith(b"\x89PNG")


class _Device:
    """A device of a given compute capability that records the call to make it current."""

    def __init__(self, capability):
        self.compute_capability, self.name, self.is_current = capability, "a GPU", False
        self.arch = "{}{}".format(*capability)

    def set_current(self):
        self.is_current = True


@pytest.mark.parametrize("capability", [(9, 0), (10, 0), (12, 1)])
def test_a_gpu_with_tma_is_used(monkeypatch, tmp_path, picture, capsys, capability):
    device, seen = _Device(capability), []
    monkeypatch.setattr(demo, "Device", lambda: device)
    assert demo.find_gpu() == (device, "") and device.is_current
    monkeypatch.setattr(demo, "blur_on_gpu", lambda gpu, picture: seen.append(gpu) or demo.blur_by_emulator(picture))
    assert cli.main(["demo", "--input", str(picture), "--output", str(tmp_path / "out.png")]) == 0
    assert seen == [device] and capsys.readouterr().out.startswith("Running on a GPU.\n")
    assert run(tmp_path, "--input", picture) == 0 and len(seen) == 1
    assert capsys.readouterr().out.startswith("Running on the emulator, because of --emulate.\n")


def test_without_a_gpu_the_simulator_runs_the_kernel(monkeypatch, tmp_path, picture, capsys):
    monkeypatch.setattr(demo, "find_gpu", lambda: (None, "no driver"))
    output = str(tmp_path / "out.png")
    assert cli.main(["demo", "--input", str(picture), "--output", output]) == 0
    out = capsys.readouterr().out
    assert out.startswith("No GPU found: running on the simulator.\n(no driver)\n")
    assert "source: FLOAT32, global_dim (131, 70, 1), global_strides (528, 36960) bytes, box_dim (72, 72, 1)" in out
    assert out.endswith("every pixel is equal to NumPy's\n")
    wrong = demo.SOURCE.replace("x - HALO, y - HALO", "x - HALO, y + 1 - HALO")
    monkeypatch.setattr(demo, "SOURCE", wrong)
    assert cli.main(["demo", "--input", str(picture), "--output", output]) == 1


def test_without_a_compiler_the_emulator_runs(monkeypatch, tmp_path, picture, capsys):
    def fail():
        raise RuntimeError("there is no NVRTC")

    monkeypatch.setattr(demo, "find_gpu", lambda: (None, "no driver"))
    monkeypatch.setattr(demo, "simulated_kernel", fail)
    assert cli.main(["demo", "--input", str(picture), "--output", str(tmp_path / "out.png")]) == 0
    expected = "No GPU and no compiler found: running on the emulator.\n(no driver; there is no NVRTC)\n"
    assert capsys.readouterr().out.startswith(expected)


def test_a_gpu_without_tma_is_not_used(monkeypatch):
    monkeypatch.setattr(demo, "Device", lambda: _Device((8, 9)))
    assert demo.find_gpu() == (None, "a GPU has compute capability 89; TMA needs 90 or later")


def test_without_a_driver_the_reason_is_one_line(monkeypatch):
    def fail():
        raise RuntimeError("no driver (looking up a name)\nand much more")

    monkeypatch.setattr(demo, "Device", fail)
    assert demo.find_gpu() == (None, "no driver")


def test_the_generated_picture_is_blurred_without_an_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "generated_picture", lambda: np.ones((1, 9, 70), np.float32))
    assert run(tmp_path) == 0
    out = capsys.readouterr().out
    assert "70 x 9 pixels, 1 plane: " in out and f"before and after: {tmp_path / 'out.png'}\n" in out


def test_the_zone_plate():
    rings = demo.generated_picture(64)[0]
    assert rings.shape == (64, 64) and rings.dtype == np.float32 and rings.flags.c_contiguous
    assert rings[32, 32] == 1 and rings.min() >= 0 and rings.max() <= 1
    assert np.array_equal(rings[32, 1:32][::-1], rings[32, 33:]) and np.array_equal(rings, rings.T)
    assert rings[32, 32 + 8] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * 64 / 80), abs=1e-6)


@pytest.mark.parametrize("planes", [1, 3, 4])
def test_three_planes_are_the_colors_of_the_picture(planes):
    before = np.zeros((planes, 2, 2), np.float32)
    before[planes - 1], before[0] = 0.5, 1
    rgb = demo.side_by_side(before, before)
    colors = [tuple(int(each) for each in rgb[0, column]) for column in (0, rgb.shape[1] - 1)]
    assert colors == {1: [(0, 0, 0)] * 2, 3: [(255, 0, 128)] * 2, 4: [(255, 0, 0)] * 2}[planes]
