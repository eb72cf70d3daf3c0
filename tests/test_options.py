import copy
import dataclasses
import inspect
import pickle
import types

import ml_dtypes
import numpy as np
import pytest
from cuda.core import TensorMapDescriptorOptions
from cuda.core._tensor_map import TensorMapDescriptor as CoreDescriptor
from cuda.core._tensor_map import TensorMapInterleave as CoreInterleave
from cuda.core._tensor_map import TensorMapL2Promotion as CoreL2Promotion
from cuda.core._tensor_map import TensorMapSwizzle as CoreSwizzle

import cuda_tma
from cuda_tma import _enum_members, enums
from cuda_tma._keywords import options_from
from cuda_tma._make.create import options_by_keywords
from cuda_tma._option_table import KINDS, OPTIONS, REQUIRED
from cuda_tma._options import (
    TensorMapIm2colOptions,
    TensorMapIm2colWideOptions,
    TensorMapOptions,
    TiledKeywords,
    options_of,
)
from cuda_tma.enums import (
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapSwizzle,
)


@pytest.mark.parametrize("value", ["128B", "128b", "SWIZZLE_128B", 3, CoreSwizzle.SWIZZLE_128B, TensorMapSwizzle(3)])
def test_every_spelling_of_an_enum(value):
    assert TensorMapOptions((8, 8), swizzle=value).swizzle is TensorMapSwizzle.SWIZZLE_128B


@pytest.mark.parametrize(
    "enum",
    [
        TensorMapDataType,
        enums.TensorMapInterleave,
        enums.TensorMapL2Promotion,
        enums.TensorMapOOBFill,
        TensorMapSwizzle,
    ],
)
def test_every_member_by_short_name_full_name_and_value(enum):
    for member in enum:
        assert (
            enum.parse(member.short_name, "x") is enum.parse(member.name, "x") is enum.parse(int(member), "x") is member
        )


def test_enum_mistakes_are_named():
    with pytest.raises(ValueError, match='swizzle=\'129B\' is not a TensorMapSwizzle; choose one of "NONE", "32B"'):
        TensorMapOptions((8,), swizzle="129B")
    with pytest.raises(ValueError, match="swizzle=7 is not"):
        TensorMapOptions((8,), swizzle=7)
    with pytest.raises(TypeError, match="is a TensorMapL2Promotion; swizzle takes a TensorMapSwizzle"):
        TensorMapOptions((8,), swizzle=CoreL2Promotion.L2_128B)
    with pytest.raises(TypeError, match="not float 1.0"):
        TensorMapOptions((8,), swizzle=1.0)
    with pytest.raises(TypeError, match="not bool True"):
        TensorMapOptions((8,), swizzle=True)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.float32, "FLOAT32"), (np.dtype("int16"), "UINT16"), ("bfloat16", "BFLOAT16"), ("TFLOAT32", "TFLOAT32"),
        (ml_dtypes.bfloat16, "BFLOAT16"), (ml_dtypes.float8_e4m3fn, "UINT8"), (7, "FLOAT32"), ("bool", "UINT8"),
        ("16u4_align8b", "PACKED_16U4_ALIGN8B"), (TensorMapDataType.INT64, "INT64"), ("complex64", "UINT64"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_data_type(value, wanted):
    assert TensorMapOptions((8,), data_type=value).data_type is TensorMapDataType[wanted]


def test_a_torch_dtype_is_read_by_its_name():
    class TorchDtype:
        def __str__(self):
            return "torch.float8_e5m2"

    assert TensorMapOptions((8,), data_type=TorchDtype()).data_type is TensorMapDataType.UINT8


def test_data_type_mistakes_are_named():
    with pytest.raises(ValueError, match="data_type='float7' is neither a dtype nor"):
        TensorMapOptions((8,), data_type="float7")
    with pytest.raises(ValueError, match="the elements are complex128, which has no tensor-map data type"):
        TensorMapOptions((8,), data_type=np.complex128)


def test_values_are_normalized_and_frozen():
    options = TensorMapOptions([np.int64(8), 16], element_strides=np.array([1, 1]))
    assert options == TensorMapOptions((8, 16), (1, 1))
    assert hash(options) == hash(TensorMapOptions((8, 16), (1, 1)))
    assert type(options.box_dim[0]) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.box_dim = (1,)
    with pytest.raises(TypeError, match="box_dim=8 is not a sequence"):
        TensorMapOptions(8)
    with pytest.raises(TypeError, match=r"box_dim=\(8.5,\) is not a sequence"):
        TensorMapOptions((8.5,))


def keywords(**given):
    """Return the keyword arguments of a function, in the order of the table of options."""
    return tuple(given.get(row.name) for row in KINDS["TensorMapOptions"])


def test_field_order_is_cuda_cores():
    """The order of fields gives positional arguments the same meaning as in cuda.core. Options that cuda.core lacks
    come last."""
    theirs = [f.name for f in dataclasses.fields(TensorMapDescriptorOptions)]
    assert [f.name for f in dataclasses.fields(TensorMapOptions)] == [*theirs, "allocation_class"]


def test_everything_that_as_tensor_map_takes_for_options():
    wanted = TensorMapOptions((8, 16), swizzle="128B")
    core = TensorMapDescriptorOptions(box_dim=(8, 16), swizzle=CoreSwizzle.SWIZZLE_128B)
    assert options_from((8, 16), swizzle="128B", l2_promotion=None) == wanted
    assert options_from(options=wanted) is wanted
    assert options_from(options=core) == wanted
    assert options_from(options={"box_dim": (8, 16), "swizzle": 3}) == wanted


@pytest.mark.parametrize("value", [None, 0, TensorMapSwizzle.NONE, CoreSwizzle.NONE])
def test_a_default_next_to_options_has_no_effect(value):
    """A keyword with its default value has no effect next to `options`, because scripts for cuda.core pass default
    values explicitly."""
    wanted = TensorMapOptions((8, 16), swizzle="128B")
    assert options_by_keywords(wanted, keywords(swizzle=value)) is wanted
    names = ("interleave", "swizzle", "l2_promotion", "oob_fill")
    assert options_from(None, wanted, element_strides=None, data_type=None, **dict.fromkeys(names, value)) is wanted
    assert options_from(options={"box_dim": (8, 16), "swizzle": 3}, swizzle=value) == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("box_dim", (8, 16)), ("swizzle", "NONE"), ("swizzle", 1), ("swizzle", TensorMapSwizzle.SWIZZLE_128B),
        ("element_strides", (1, 1)), ("data_type", 0), ("data_type", "uint8"), ("allocation_class", 0),
        ("l2_promotion", 2), ("oob_fill", 1), ("interleave", CoreL2Promotion.L2_64B),
    ],
)  # fmt: skip
def test_anything_else_next_to_options_is_refused(name, value):
    with pytest.raises(TypeError, match=f"options= and {name} were both passed; pass {name} only in the options"):
        options_by_keywords(TensorMapOptions((8, 16)), keywords(**{name: value}))


def test_cuda_cores_name_of_the_options():
    assert cuda_tma.TensorMapDescriptorOptions is TensorMapOptions
    arguments = (8, 16), (1, 1), None, CoreInterleave.NONE, CoreSwizzle.SWIZZLE_64B, CoreL2Promotion.L2_64B
    ours = cuda_tma.TensorMapDescriptorOptions(*arguments)
    assert options_from(options=TensorMapDescriptorOptions(*arguments)) == ours
    assert ours == TensorMapOptions((8, 16), (1, 1), swizzle="64B", l2_promotion="64B")


def test_options_mistakes_are_named():
    with pytest.raises(TypeError, match=r"pass box_dim=\(...\)"):
        options_from()
    with pytest.raises(TypeError, match="options= and box_dim, swizzle were both passed"):
        options_from((8,), options={"box_dim": (8,)}, swizzle="128B")
    with pytest.raises(TypeError, match="options contains unknown names, 'swizzel', 3; use only box_dim"):
        options_from(options={"swizzel": 2, 3: 1, "box_dim": (8,)})
    with pytest.raises(TypeError, match="options is a int"):
        options_from(options=3)


# ---- im2col ----


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(TensorMapIm2colOptions, "_from_im2col"), (TensorMapIm2colWideOptions, "_from_im2col_wide")],
)
def test_im2col_fields_are_named_and_ordered_as_cuda_cores_arguments(ours, theirs):
    text = getattr(CoreDescriptor, theirs).__doc__.split("\n")[0]
    names = [part.split("=")[0] for part in text[text.index("(") + 1 : text.rindex(")")].split(", ")]
    wanted = [name for name in names if name not in ("cls", "view", "*")]
    assert [f.name for f in dataclasses.fields(ours)] == [*wanted, "allocation_class"]


def test_im2col_values_are_normalized_and_frozen():
    options = TensorMapIm2colOptions([-1, np.int64(-2)], np.array([1, 0]), np.int32(64), 128, swizzle="128b")
    assert options == TensorMapIm2colOptions((-1, -2), (1, 0), 64, 128, swizzle=3)
    assert type(options.channels_per_pixel) is int and type(options.pixel_box_lower_corner[1]) is int
    assert len({options, dataclasses.replace(options), pickle.loads(pickle.dumps(options))}) == 1
    wide = TensorMapIm2colWideOptions(-1, -1, 64, 64, mode="w128")
    assert wide.mode is TensorMapIm2ColWideMode.W128 and wide.swizzle is TensorMapSwizzle.SWIZZLE_128B
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.channels_per_pixel = 1


def test_im2col_mistakes_are_named():
    with pytest.raises(TypeError, match="pixel_box_lower_corner=-1 is not a sequence of integers"):
        TensorMapIm2colOptions(-1, -1, 64, 128)
    with pytest.raises(TypeError, match="channels_per_pixel=6.5 is not an integer"):
        TensorMapIm2colOptions((-1,), (-1,), 6.5, 128)
    with pytest.raises(TypeError, match=r"pixel_box_upper_corner_width=\(1,\) is not an integer"):
        TensorMapIm2colWideOptions(-1, (1,), 64, 128)
    with pytest.raises(ValueError, match='mode=\'W64\' is not a TensorMapIm2ColWideMode; choose one of "W", "W128"'):
        TensorMapIm2colWideOptions(-1, -1, 64, 128, mode="W64")


def test_the_names_in_a_mapping_or_object_select_the_options():
    im2col = TensorMapIm2colOptions((-1, -1), (0, 0), 64, 128, swizzle="64B")
    wide = TensorMapIm2colWideOptions(-1, 0, 64, 128, mode="W128")
    for options in (im2col, wide):
        assert options_from(options=options) is options
        assert options_from(options=dataclasses.asdict(options)) == options
        assert options_from(options=types.SimpleNamespace(**dataclasses.asdict(options))) == options
    with pytest.raises(TypeError, match="options contains unknown names, 'box'; use only pixel_box_lower_corner, "):
        options_from(options={**dataclasses.asdict(im2col), "box": 1})
    with pytest.raises(TypeError, match="channels_per_pixel"):
        options_from(options={"pixel_box_lower_corner": (0,), "pixel_box_upper_corner": (0,)})
    with pytest.raises(TypeError, match="options= and swizzle were both passed"):
        options_from(options=im2col, swizzle="128B")


@pytest.mark.parametrize(
    ("data_type", "swizzle", "channels"),
    [
        ("bfloat16", "128B", 64), ("float32", "128B", 32), ("float8_e4m3fn", "128B", 128), ("float16", "64B", 32),
        ("float32", "32B", 8), ("float16", "NONE", 64), ("16U4_ALIGN8B", "128B", 256), ("16U4_ALIGN16B", "128B", 128),
        ("16U6_ALIGN16B", "128B", 128),
    ],
)  # fmt: skip
def test_channels_that_fill_the_span(data_type, swizzle, channels):
    options = TensorMapIm2colOptions.convolution(1, data_type=data_type, swizzle=swizzle)
    assert options.channels_per_pixel == channels and options.pixels_per_column == 128


def test_options_of_a_convolution():
    options = TensorMapIm2colOptions.convolution(
        (3, 5), padding=(1, 2), stride=(1, 2), dilation=(2, 1), channels_per_pixel=32, pixels_per_column=64,
        swizzle="64B", l2_promotion="128B", allocation_class="LARGE",
    )  # fmt: skip
    assert options == TensorMapIm2colOptions(
        (-1, -2), (1 - 4, 2 - 4), 32, 64, (1, 1, 2, 1), swizzle="64B", l2_promotion="128B", allocation_class="LARGE"
    )
    with pytest.raises(TypeError, match="pass channels_per_pixel, or data_type"):
        TensorMapIm2colOptions.convolution(3)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_options_are_pickled_by_every_protocol(protocol):
    options = TensorMapOptions((64, 64), swizzle="128B", data_type="bfloat16")
    assert pickle.loads(pickle.dumps(options, protocol)) == options == copy.deepcopy(options)


EVERYTHING = {"data_type": 6, "interleave": 2, "swizzle": 1, "l2_promotion": 3, "oob_fill": 1, "allocation_class": 2}
EVERY_KIND = [
    (TensorMapOptions((2, 4, 8, 16), (1, 2, 3, 4), **EVERYTHING), cuda_tma.TiledParams),
    (TensorMapIm2colOptions((-1, -2), (3, 4), 16, 32, (1, 2, 3, 4), **EVERYTHING), cuda_tma.Im2colParams),
    (TensorMapIm2colWideOptions(-1, 3, 16, 32, (1, 2, 3, 4), mode="W128", **EVERYTHING), cuda_tma.Im2colWideParams),
]


@pytest.mark.parametrize("options", [options for options, _ in EVERY_KIND])
def test_every_field_is_copied_and_pickled(options):
    values = dataclasses.asdict(options)
    assert pickle.loads(pickle.dumps(options)) == copy.copy(options) == type(options)(**values) == options
    assert {type(value) for name, value in values.items() if name in EVERYTHING} == {
        TensorMapDataType, enums.TensorMapInterleave, TensorMapSwizzle, enums.TensorMapL2Promotion,
        enums.TensorMapOOBFill, cuda_tma.enums.TensorMapAllocationClass,
    }  # fmt: skip
    for name in values:
        changed = dataclasses.replace(options, **{name: () if isinstance(values[name], tuple) else 0})
        assert changed != options and pickle.loads(pickle.dumps(changed)) == changed


@pytest.mark.parametrize(("options", "kind"), EVERY_KIND)
def test_options_make_parameters_and_parameters_options(options, kind):
    params = cuda_tma.params_of(cuda_tma.TensorSpec((32, 32, 32, 64), "float16"), options)
    assert type(params) is kind and params.element_strides == (4, 3, 2, 1)
    assert {name: getattr(params, name) for name in EVERYTHING} == EVERYTHING
    if kind is cuda_tma.Im2colWideParams:
        assert (params.pixel_box_lower_corner_width, params.pixel_box_upper_corner_width, params.mode) == (-1, 3, 1)
        return
    again = type(options).from_params(params)
    assert again == options == options_of(params)
    assert options_of(dataclasses.replace(params, allocation_class=1)).allocation_class is None


def test_no_option_but_those_with_a_default_of_none_may_be_none():
    TensorMapOptions((8,), None, None, allocation_class=None)
    for name in ("box_dim", "interleave", "swizzle", "l2_promotion", "oob_fill"):
        with pytest.raises(TypeError, match=name):
            TensorMapOptions(**{"box_dim": (8,), name: None})
    with pytest.raises(TypeError, match="mode takes a TensorMapIm2ColWideMode"):
        TensorMapIm2colWideOptions(-1, -1, 64, 128, mode=None)


def test_a_word_that_is_equal_to_all_others_is_read():
    class Word(str):
        __hash__ = str.__len__

        def __eq__(self, other):
            return True

    options = [options_by_keywords(None, keywords(box_dim=(8, 8), swizzle=Word(word))) for word in ("64B", "32B")]
    assert [each.swizzle.short_name for each in options] == ["64B", "32B"]


def test_only_plain_integers_are_cached():
    """The cache of options accepts only plain integers. Two equal values can differ in legality, and a mutable value
    cannot be a key."""

    class Extent:
        def __init__(self, value):
            self.value = value

        def __index__(self):
            return self.value

    def options(box_dim, element_strides=None, swizzle=None):
        return options_by_keywords(None, keywords(box_dim=box_dim, element_strides=element_strides, swizzle=swizzle))

    assert options((8, 8)) is options((8, 8)) is not options((8, 16))
    assert options((8, 8), swizzle="32B") is options((8, 8), swizzle="32B") == options((8, 8), swizzle=1)
    assert options((8, 8), (1, 1)).element_strides == (1, 1)
    for wrong in ((8.0, 8), (True, 8.0)):
        with pytest.raises(TypeError, match="not a sequence of integers"):
            options(wrong)
    with pytest.raises(TypeError, match="not a sequence of integers"):
        options((8, 8), (1.0, 1.0))
    for wrong in (1.0, [1]):
        with pytest.raises((TypeError, ValueError), match="swizzle"):
            options((8, 8), swizzle=wrong)
    extent = Extent(16)
    assert options((extent, 8)).box_dim == (16, 8)
    extent.value = 32
    assert options((extent, 8)).box_dim == (32, 8)
    promotion = Extent(1)
    assert options_by_keywords(None, keywords(box_dim=(8, 8), l2_promotion=promotion)).l2_promotion == 1
    promotion.value = 2
    assert options_by_keywords(None, keywords(box_dim=(8, 8), l2_promotion=promotion)).l2_promotion == 2
    # The test creates more entries than the cache can contain.
    for n in range(600):
        assert options((1 + n % 256, 1 + n // 256)).box_dim == (1 + n % 256, 1 + n // 256)


def test_one_table_gives_every_field_keyword_and_enum():
    for kind, rows in KINDS.items():
        fields = dataclasses.fields(getattr(cuda_tma._options, kind))
        assert [f.name for f in fields] == [row.name for row in rows]
        for field, row in zip(fields, rows, strict=True):
            assert field.default is (dataclasses.MISSING if row.default is REQUIRED else row.default)
    tiled = [row.name for row in KINDS["TensorMapOptions"]]
    assert list(TiledKeywords.__annotations__) == tiled
    for door in (cuda_tma.create_tensor_map, cuda_tma.Device.create_tensor_map):
        assert [name for name in inspect.signature(door).parameters if name in tiled] == tiled
    enums_of_rows = {name: row.type for name, row in OPTIONS.items() if row.is_enum}
    assert enums_of_rows == _enum_members.PARAMETER_ENUMS


def test_a_field_has_its_row_of_the_table_as_metadata():
    swizzle = next(field for field in dataclasses.fields(TensorMapOptions) if field.name == "swizzle")
    assert swizzle.metadata["type"] is TensorMapSwizzle
    assert swizzle.metadata["flag"] == "permutation of rows in shared memory"


def test_docstrings_describe_every_option():
    for kind, rows in KINDS.items():
        text = inspect.getdoc(getattr(cuda_tma._options, kind))
        assert "<fields>" not in text and all(f"\n{row.name} : " in text for row in rows)


def test_the_padding_of_a_convolution_is_zeros():
    with pytest.raises(TypeError, match="leave oob_fill out"):
        TensorMapIm2colOptions.convolution(3, data_type="float16", oob_fill="NAN")


def test_both_names_of_a_fill_with_nan_have_the_drivers_value():
    """Both names of the fill with NaN have the value of CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA in cuda.h."""
    fill = cuda_tma.TensorMapOOBFill
    assert (int(fill.NONE), int(fill.NAN), int(fill.NAN_REQUEST_ZERO_FMA)) == (0, 1, 1)
