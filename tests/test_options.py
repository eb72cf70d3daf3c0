import dataclasses

import ml_dtypes
import numpy as np
import pytest
from cuda.core import TensorMapDescriptorOptions
from cuda.core._tensor_map import TensorMapL2Promotion as CoreL2Promotion
from cuda.core._tensor_map import TensorMapSwizzle as CoreSwizzle

from cuda_tma.enums import (
    TensorMapDataType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from cuda_tma.options import TensorMapOptions, as_options


@pytest.mark.parametrize("value", ["128B", "128b", "SWIZZLE_128B", 3, CoreSwizzle.SWIZZLE_128B, TensorMapSwizzle(3)])
def test_every_spelling_of_an_enum(value):
    assert TensorMapOptions((8, 8), swizzle=value).swizzle is TensorMapSwizzle.SWIZZLE_128B


@pytest.mark.parametrize(
    "enum", [TensorMapDataType, TensorMapInterleave, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle]
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
    with pytest.raises(ValueError, match="the elements are complex128, from which no tensor-map data type follows"):
        TensorMapOptions((8,), data_type=np.complex128)


def test_values_are_normalised_and_frozen():
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


def test_field_order_is_cuda_cores():
    """So that positional arguments mean the same; ours that cuda.core lacks come last."""
    theirs = [f.name for f in dataclasses.fields(TensorMapDescriptorOptions)]
    assert [f.name for f in dataclasses.fields(TensorMapOptions)] == [*theirs, "allocation_class"]


def test_everything_that_as_tensor_map_takes_for_options():
    wanted = TensorMapOptions((8, 16), swizzle="128B")
    core = TensorMapDescriptorOptions(box_dim=(8, 16), swizzle=CoreSwizzle.SWIZZLE_128B)
    assert as_options((8, 16), swizzle="128B", l2_promotion=None) == wanted
    assert as_options(options=wanted) is wanted
    assert as_options(options=core) == wanted
    assert as_options(options={"box_dim": (8, 16), "swizzle": 3}) == wanted


def test_options_mistakes_are_named():
    with pytest.raises(TypeError, match=r"needs box_dim=\(...\)"):
        as_options()
    with pytest.raises(TypeError, match="options= and box_dim, swizzle were both given"):
        as_options((8,), options={"box_dim": (8,)}, swizzle="128B")
    with pytest.raises(TypeError, match="options has no 'box', 'swizzel'; its names are box_dim"):
        as_options(options={"box": 1, "swizzel": 2})
    with pytest.raises(TypeError, match="options is a int"):
        as_options(options=3)
