"""Tests of the three functions that create a tensor map descriptor from the same options."""

import dataclasses
import inspect

import pytest

import cuda_tma
from cuda_tma import TensorMapError, TensorMapOptions

FIELDS = [field.name for field in dataclasses.fields(TensorMapOptions)]


def device():
    """Return a Device of the fake driver without a call of the constructor, which would need the real driver."""
    found = object.__new__(cuda_tma.Device)
    object.__setattr__(found, "_ordinal", 0)
    return found


DOORS = {
    "create_tensor_map": cuda_tma.create_tensor_map,
    "Device.create_tensor_map": lambda tensor, *args, **keywords: device().create_tensor_map(tensor, *args, **keywords),
    "as_tensor_map": lambda tensor, options=None, **keywords: cuda_tma.StridedMemoryView.from_any_interface(
        tensor, stream_ptr=-1
    ).as_tensor_map(options=options, **keywords),
}


@pytest.fixture(params=DOORS)
def door(request, driver):
    return DOORS[request.param]


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (cuda_tma.create_tensor_map, ["tensor", "options", *FIELDS]),
        (cuda_tma.Device.create_tensor_map, ["self", "tensor", "options", *FIELDS]),
        (cuda_tma.StridedMemoryView.as_tensor_map, ["self", "box_dim", "options", *FIELDS[1:]]),
    ],
)
def test_every_option_is_a_keyword_of_every_door(function, first):
    parameters = inspect.signature(function).parameters
    assert [*parameters] == first
    assert [parameters[name].default for name in ("options", *FIELDS)] == [None] * (1 + len(FIELDS))
    by_keyword = {name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    assert by_keyword == set(first[first.index("box_dim") + (first[1] == "box_dim") :])
    assert function.__name__ in ("create_tensor_map", "as_tensor_map") and "Make a descriptor of" in function.__doc__


def test_every_option_reaches_its_field(door, device_tensor):
    """The test passes a different value for each option of a tensor map."""
    tensor = device_tensor((4, 16, 16, 32), dtype="float16")
    keywords = {
        "box_dim": (1, 7, 5, 16), "element_strides": (4, 3, 2, 1), "data_type": "FLOAT16", "interleave": "32B",
        "swizzle": "32B", "l2_promotion": "256B", "oob_fill": "NAN", "allocation_class": "LARGE",
    }  # fmt: skip
    assert [*keywords] == FIELDS
    wanted = cuda_tma.create_tensor_map(tensor, TensorMapOptions(**keywords)).params
    assert wanted.box_dim == (16, 5, 7, 1) and wanted.allocation_class == 2
    # The second call reads the compiled options from the cache.
    for _ in range(2):
        assert door(tensor, **keywords).params == wanted
    assert door(tensor, TensorMapOptions(**keywords)).params == wanted
    assert door(tensor, keywords).params == wanted
    with pytest.raises(TypeError, match="unexpected keyword argument 'swizzel'"):
        door(tensor, box_dim=(1, 7, 5, 16), swizzel="128B")


def test_calls_that_differ_in_one_keyword(door, device_tensor):
    """The test runs each call directly after every other call, and also twice in a row."""
    tensor = device_tensor((64, 64))
    box_dim, nan, steps = (8, 16), "NAN", (2, 1)
    calls = [
        {"box_dim": box_dim},
        {"box_dim": box_dim, "swizzle": "64B"},
        {"box_dim": box_dim, "oob_fill": nan},
        {"box_dim": box_dim, "element_strides": steps},
        {"box_dim": (8, 8), "element_strides": steps},
        {"box_dim": box_dim, "allocation_class": "LARGE"},
        {"box_dim": box_dim, "l2_promotion": "64B"},
    ]
    wanted = [TensorMapOptions(**call) for call in calls]
    assert len(set(wanted)) == len(calls)
    for _ in range(2):
        for call, options in zip(calls, wanted, strict=True):
            for _ in range(2):
                params = door(tensor, **call).params
                assert TensorMapOptions.from_params(params) == dataclasses.replace(
                    options, data_type=7, element_strides=call.get("element_strides", (1, 1))
                )


def test_known_keywords_are_refused_next_to_options(door, device_tensor):
    tensor, box_dim = device_tensor((64, 64)), (8, 16)
    door(tensor, box_dim=box_dim)
    with pytest.raises(TypeError, match="options= and box_dim were both passed"):
        door(tensor, TensorMapOptions((8, 8)), box_dim=box_dim)
    with pytest.raises(TypeError, match=r"pass box_dim=\(...\)"):
        door(tensor)


def test_mutable_values_are_read_at_every_call(door, device_tensor):
    tensor, box_dim, steps = device_tensor((64, 64)), [8, 16], [1, 1]
    assert door(tensor, box_dim=box_dim, element_strides=steps).params.box_dim == (16, 8)
    box_dim[0] = 32
    assert door(tensor, box_dim=box_dim, element_strides=steps).params.box_dim == (16, 32)
    steps[0] = 2
    fixed = (8, 16)
    assert door(tensor, box_dim=fixed, element_strides=steps).params.element_strides == (1, 2)
    steps[0] = 4
    assert door(tensor, box_dim=fixed, element_strides=steps).params.element_strides == (1, 4)


def test_wrong_keywords_are_not_cached(door, device_tensor):
    tensor, box_dim, wrong = device_tensor((64, 64)), (8, 16), "12B"
    for _ in range(2):
        with pytest.raises(ValueError, match="swizzle") as caught:
            door(tensor, box_dim=box_dim, swizzle=wrong)
    assert "12B" in str(caught.value)
    for _ in range(2):
        with pytest.raises(TypeError, match="swizzle") as caught:
            door(tensor, box_dim=box_dim, swizzle=[1])
    assert "unhashable" not in str(caught.value)


def test_a_device_is_compared_before_anything_is_read(driver, device_tensor):
    tensor = device_tensor((64, 64))
    driver.device, driver.context = 1, 0xD1
    with pytest.raises(TensorMapError, match=r"^Device\(0\).* while device 1 is current; call Device\(0\).set_current"):
        device().create_tensor_map(tensor, box_dim=(8, 16))
    assert tensor.asked == [] and driver.encoded == 0
