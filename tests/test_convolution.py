"""Tests that the columns of a convolution's im2col map equal the unfolded input."""

import dataclasses
import itertools

import numpy as np
import pytest

from cuda_tma import TensorMapError, TensorSpec, check, emulate, params_of
from cuda_tma._convolution import Convolution
from cuda_tma._options import TensorMapIm2colOptions
from cuda_tma.testing import view_bytes
from tests.support.convolutions import Case, random_case, random_geometry, unfold

# The table has an entry for each number of spatial dimensions.
CASES = 240


def case_params(case):
    return params_of(TensorSpec(case.elements.shape, case.elements.dtype), case.options)


def loaded(case):
    """Return the matrix (output pixels, taps, channels) that the emulator's im2col loads fill, in whole columns and
    chunks."""
    params, memory, place = case_params(case), view_bytes(case.elements), case.smem_bytes()
    assert check(params) == ()
    matrix = np.full_like(case.expected(), 0xEE)
    for load in case.loads():
        smem = emulate.load(params, memory, load.coordinates, load.offsets).smem
        column = matrix[load.row :, load.tap, load.channel :][: case.pixels_per_column, : case.channels_per_pixel]
        column[...] = smem[place].view(matrix.dtype)
    return matrix


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_columns_of_all_output_pixels_at_all_taps_are_the_unfolded_tensor(dims):
    rng = np.random.default_rng(dims)
    strides, spare = set(), 0
    for _ in range(CASES):
        case = random_case(rng, dims)
        assert (loaded(case) == case.expected()).all(), case
        strides.update(case.geometry.stride)
        spare += any(_spare_pixels(case))
    assert strides >= {1, 2, 3, 4} and spare > CASES // 5


def _spare_pixels(case):
    """Return, for each dimension, whether the stride of the convolution leaves unused pixels at the end."""
    g = case.geometry
    spans = [e + sum(p) - r - 1 for e, p, r in zip(case.extents, g.padding, g.reach, strict=True)]
    return [span % step > 0 for span, step in zip(spans, g.stride, strict=True)]


@pytest.mark.parametrize("change", [{"stride": 2}, {"dilation": 2}, {"padding": 0}, {"padding": ((1, 1), (2, 0))}])
def test_another_geometry_gives_another_matrix(change):
    """The loads of one convolution differ from the unfolded tensor of another convolution, so the comparison can
    fail."""
    elements = np.arange(2 * 9 * 9 * 16, dtype=np.uint32).reshape(2, 9, 9, 16) + 1
    case = Case(Convolution(3, padding=1), elements, 16, 32, "64B")
    other = dataclasses.replace(case, geometry=Convolution(**{"kernel_size": 3, "padding": 1, **change}))
    ours, theirs = loaded(case), other.expected()
    assert ours.shape != theirs.shape or (ours != theirs).any()


@pytest.mark.parametrize("dims", [1, 2])
def test_unfold_is_torchs(dims):
    functional = pytest.importorskip("torch.nn.functional")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(10 + dims)
    compared = 0
    while compared < 60:
        extents, geometry = random_geometry(rng, dims)
        if any(before != after for before, after in geometry.padding):
            continue
        elements = rng.integers(0, 256, (2, *extents, 3)).astype(np.float32)
        two = lambda values, one: ((one,) * (2 - dims)) + tuple(values)  # noqa: E731  # A 1-D image has one row.
        image = torch.from_numpy(np.moveaxis(elements.reshape(2, *two(extents, 1), 3), -1, 1).copy())
        padding = two([before for before, _ in geometry.padding], 0)
        columns = functional.unfold(
            image, two(geometry.kernel_size, 1), two(geometry.dilation, 1), padding, two(geometry.stride, 1)
        )
        wanted = columns.reshape(2, 3, -1, columns.shape[-1]).permute(0, 3, 2, 1).reshape(-1, columns.shape[1] // 3, 3)
        assert (unfold(elements, geometry) == wanted.numpy()).all(), geometry
        compared += 1


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("padding", [None, "same"])
def test_unfold_times_filter_is_torchs_convolution(dims, padding):
    torch = pytest.importorskip("torch")
    convolve = getattr(torch.nn.functional, f"conv{dims}d")
    rng = np.random.default_rng(20 + dims)
    for _ in range(15):
        extents, g = random_geometry(rng, dims)
        if padding is not None:
            g = Convolution(g.kernel_size, 1, padding, g.dilation)
        elif any(before != after for before, after in g.padding):
            continue
        # The values are integers, whose sums are exact.
        elements = rng.integers(-9, 10, (2, *extents, 3)).astype(np.float64)
        weights = rng.integers(-9, 10, (4, 3, *g.kernel_size)).astype(np.float64)
        wanted = convolve(
            torch.from_numpy(np.moveaxis(elements, -1, 1).copy()), torch.from_numpy(weights), stride=g.stride,
            padding=padding or tuple(before for before, _ in g.padding), dilation=g.dilation,
        ).numpy()  # fmt: skip
        got = np.einsum("ptc,kct->pk", unfold(elements, g), weights.reshape(4, 3, -1))
        assert wanted.shape[2:] == g.output_extents(extents)
        assert (got == np.moveaxis(wanted, 1, -1).reshape(-1, 4)).all(), g


def test_output_pixels_are_counted_in_the_order_of_the_tensor():
    geometry, extents = Convolution((1, 2, 3), (1, 2, 1), 1), (2, 5, 4)
    pixels = itertools.product(range(3), *map(range, geometry.output_extents(extents)))
    assert [geometry.output_pixel(i, extents) for i in range(3 * 4 * 3 * 4)] == list(pixels)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"kernel_size": 3}, Convolution((3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1))),
        ({"kernel_size": 3, "padding": 1, "stride": (2, 1)}, Convolution((3, 3), (2, 1), (1, 1), 1)),
        ({"kernel_size": (3,), "padding": ((1, 2),)}, Convolution([np.int64(3)], 1, [[1, 2]])),
        ({"kernel_size": 4, "padding": "same", "dilation": 3}, Convolution(4, 1, ((4, 5), (4, 5)), 3)),
        ({"kernel_size": 4, "padding": "valid", "stride": 2}, Convolution(4, 2)),
        ({"kernel_size": 3, "stride": (1, 2, 1)}, Convolution((3, 3, 3), (1, 2, 1))),
        ({name: np.array(2) for name in ("kernel_size", "stride", "padding", "dilation")}, Convolution(2, 2, 2, 2)),
        ({"kernel_size": np.array([3]), "padding": [np.array(1)]}, Convolution((3,), padding=1)),
        ({"kernel_size": 3, "padding": [np.array([0, 1]), np.array(2)]}, Convolution(3, padding=((0, 1), (2, 2)))),
    ],
)
def test_spellings(arguments, wanted):
    assert Convolution(**arguments) == wanted and hash(Convolution(**arguments)) == hash(wanted)
    assert dataclasses.replace(wanted, dilation=1).dilation == (1,) * len(wanted.kernel_size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": (3, 3), "stride": (1, 1, 1)}, r"stride=\(1, 1, 1\) have different lengths"),
        ({"kernel_size": (3,) * 4}, "kernel_size has length 4; a convolution has 1 to 3 spatial dimensions"),
        ({"kernel_size": ()}, "kernel_size has length 0; a convolution has 1 to 3 spatial dimensions"),
        ({"kernel_size": np.array([])}, "kernel_size has length 0"),
        ({"kernel_size": 3, "padding": ()}, "padding has length 0; a convolution has 1 to 3"),
        ({"kernel_size": 3, "padding": ((), ())}, r"padding=\(\) has length 0; it needs length 2"),
        ({"kernel_size": "33"}, "kernel_size='33' is neither an integer nor a sequence of integers"),
        ({"kernel_size": 3, "stride": float("nan")}, "stride=nan is neither"),
        ({"kernel_size": 3, "dilation": (1, 1.0)}, r"dilation=\(1, 1.0\) is neither"),
        ({"kernel_size": 3, "padding": None}, "padding=None is neither"),
        ({"kernel_size": 3.0}, "kernel_size=3.0 is neither an integer nor a sequence of integers"),
        ({"kernel_size": np.array(3.0)}, r"kernel_size=array\(3\.\) is neither an integer nor a sequence of integers"),
        ({"kernel_size": 3, "padding": ((1, 1, 1), (0, 0, 0))}, r"padding=\(1, 1, 1\) has length 3; it needs length 2"),
    ],
)  # fmt: skip
def test_mistakes_of_kind(arguments, message):
    with pytest.raises(TypeError, match=message):
        Convolution(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": 0}, "kernel_size=0 has a value below 1; pass 1 or more"),
        ({"kernel_size": 3, "padding": -1}, "padding=-1 has a value below 0"),
        ({"kernel_size": 3, "padding": ((1, -1), (1, 1))}, r"padding=\(1, -1\) has a value below 0; pass 0 or more"),
        ({"kernel_size": 3, "padding": "SAME"}, "padding='SAME' is an unknown padding; pass"),
        ({"kernel_size": 3, "padding": "same", "stride": 2}, 'padding="same" needs a stride of 1'),
        ({"kernel_size": 14, "stride": 14}, r"stride\[0\]=14; .* needs 1 to 8. If it is the kernel_size"),
        ({"kernel_size": (1, 300), "padding": 150}, r"padding\[1\], before,=150; .* 0 to 128. Use less padding"),
        ({"kernel_size": (1, 300)}, r"- 1\) \* dilation\[1\]=299; .* needs 0 to 255. Use a smaller kernel"),
        ({"kernel_size": 130}, r"padding\[0\], after, - .*=-129; .* needs -128 to 127. Use a smaller kernel"),
        ({"kernel_size": (5, 5, 5), "dilation": 5}, "of 3 spatial dimensions needs -16 to 15"),
    ],
)  # fmt: skip
def test_convolutions_without_an_im2col_map(arguments, message):
    with pytest.raises(TensorMapError, match=message):
        Convolution(**arguments)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_limits_are_the_drivers(dims):
    """The driver's rules accept every Convolution on a sufficiently large tensor."""
    limit = {1: 32768, 2: 128, 3: 16}[dims]
    largest = Convolution((limit + 1,) * dims, 8, 0)
    widest = Convolution((2 * limit,) * dims, 8, (limit,) * dims)
    for geometry in (largest, widest):
        case = Case(geometry, np.zeros((1, *(limit + 9,) * dims, 16), np.uint8), 16, 8, "NONE")
        assert check(case_params(case)) == ()
    for wrong in ({"kernel_size": 2 * limit + 1, "padding": limit}, {"kernel_size": limit + 2}, {"padding": limit + 1}):
        with pytest.raises(TensorMapError):
            Convolution(**{"kernel_size": (1,) * dims, **{k: (v,) * dims for k, v in wrong.items()}})


def test_a_split_filter_is_the_whole_filter():
    """A filter that is too large needs two im2col maps. The second map is shifted by the offset of its first tap."""
    rng = np.random.default_rng(5)
    elements = rng.integers(0, 2**32, (2, 3, 160, 4), np.uint32)
    whole = Case(Convolution((1, 5), padding=((0, 0), (60, 60)), dilation=(1, 30)), elements, 4, 64, "NONE")
    first_tap = 3
    moved = whole.geometry.offsets((0, first_tap))[0]
    lower, upper = (-60 + moved,), (60 - 4 * 30 + moved,)
    options = TensorMapIm2colOptions((0, *lower), (0, *upper), 4, 64)
    params = params_of(TensorSpec(elements.shape, "uint32"), options)
    wanted = whole.expected()
    for load in whole.loads():
        if load.tap < first_tap:
            continue
        at = (load.coordinates[0], load.coordinates[1] + moved, *load.coordinates[2:])
        tile = emulate.load(params, view_bytes(elements), at, (load.offsets[0] - moved, 0))
        column = tile.smem.view(np.uint32).reshape(64, 4)
        assert (column == wanted[load.row : load.row + 64, load.tap]).all()


def test_a_tensor_without_dimensions_is_an_integer():
    """A NumPy array without dimensions counts as an integer. An array with one element counts as a sequence, so the
    convolution has one dimension."""
    tensor = pytest.importorskip("torch").tensor
    assert Convolution(tensor(3), padding=tensor(1)) == Convolution(3, padding=1)
    assert Convolution(tensor([3])) == Convolution((3,))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda conv: conv.output_pixel(8 / 2, (5, 5)), "index=4.0 is not an integer"),
        (lambda conv: conv.output_pixel(float("nan"), (5, 5)), "index=nan is not an integer"),
        (lambda conv: conv.output_pixel("4", (5, 5)), "index='4' is not an integer"),
        (lambda conv: conv.output_pixel(4, (5, 5.0)), r"extents=\(5, 5.0\) is neither an integer nor a sequence of"),
        (lambda conv: conv.coordinates((0, 0, 0), channel="a"), "channel='a' is not an integer"),
        (lambda conv: conv.coordinates((0, 0, 0), 1.5), "channel=1.5 is not an integer"),
        (lambda conv: conv.coordinates((0, 0, 0.0)), r"pixel=\(0, 0, 0.0\) is neither"),
        (lambda conv: conv.coordinates((0, 0)), r"pixel=\(0, 0\) has length 2; it needs length 3"),
        (lambda conv: conv.coordinates((0, 0, 0, 0)), r"pixel=\(0, 0, 0, 0\) has length 4; it needs length 3"),
        (lambda conv: conv.offsets(()), r"tap=\(\) has length 0; it needs length 2"),
        (lambda conv: conv.offsets((0, None)), r"tap=\(0, None\) is neither"),
        (lambda conv: conv.output_extents((5,)), r"extents=\(5,\) has length 1; it needs length 2"),
    ],
)
def test_only_integers_are_counted(ask, message):
    with pytest.raises(TypeError, match=message):
        ask(Convolution(3, padding=1))


def test_narrow_integers_count_as_far_as_any():
    conv = Convolution(np.int8(3), padding=np.uint8(1))
    pixel = conv.output_pixel(np.uint8(200), np.array([15, 15], np.int8))
    assert pixel == (0, 13, 5) == conv.output_pixel(200, (15, 15)) and {*map(type, pixel)} == {int}
    at = conv.coordinates(np.array(pixel, np.uint8), np.uint8(64))
    assert at == (64, 4, 12, 0) and {*map(type, at)} == {int}


def test_no_output_pixel():
    with pytest.raises(
        TensorMapError, match=r"extents\[1\]=4 with a padding of 1 \+ 1 is 6, .* filter spans 7: there is no"
    ):
        Convolution(7, padding=1).output_extents((5, 4))
    assert Convolution(7, padding=1).output_extents((5, 5)) == (1, 1)
    with pytest.raises(TensorMapError, match=r"extents=\(0, 4\) has a value below 1; pass 1 or more"):
        Convolution(1, padding=1).output_extents((0, 4))


def test_pixels_and_taps_are_counted_from_0():
    conv = Convolution((3, 5))
    assert conv.offsets((2, 4)) == (4, 2)
    for tap in ((3, 0), (0, 5)):
        with pytest.raises(TensorMapError, match=r"is outside the filter of \(3, 5\)"):
            conv.offsets(tap)
    with pytest.raises(TensorMapError):
        conv.offsets((-1, 0))
    with pytest.raises(TensorMapError, match="index=-1 is negative"):
        conv.output_pixel(-1, (8, 8))
