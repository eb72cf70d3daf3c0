"""Tests that the rules for tensor maps agree with the driver, and that the documentation contains the rules."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cuda_tma.codec._codec import stored_transfer_bytes
from cuda_tma.params import Im2colParams, Im2colWideParams, TiledParams
from cuda_tma.rules import RULES, WARNINGS, check
from cuda_tma.rules._find import tensor_map
from tests.rules._rules import FEW_CHANNELS, LEGAL_WIDE, PACKED, PACKED_IM2COL, PLAIN, SMALL_BOX
from tests.support.descriptors import LEGAL, LEGAL_IM2COL, golden, legal_params, legal_wide_params

ONE_PIXEL = replace(LEGAL_IM2COL, pixels_per_column=1)


def test_check_gives_the_drivers_verdict():
    rows = [(row, check(row.params, row.compute_capability)) for row in golden() if row.is_judged]
    assert [(row, broken) for row, broken in rows if row.accepted and broken] == [], "false refusal"
    assert [row for row, broken in rows if not row.accepted and not broken] == [], "false accept"
    assert len({v.rule for row, broken in rows if not row.accepted for v in broken}) >= 23


def test_initial_params_of_the_tests_are_legal():
    assert check(LEGAL) == check(PLAIN) == check(LEGAL_IM2COL) == ()
    assert check(LEGAL_WIDE, (10, 0)) == check(PACKED, (10, 0)) == check(PACKED_IM2COL, (10, 0)) == ()


@pytest.mark.parametrize("rule", [*RULES, *WARNINGS], ids=lambda rule: f"{rule.name}-{rule.parameter}")
def test_a_rule_without_violations_gives_an_empty_sequence(rule):
    legal = {TiledParams: (LEGAL, PLAIN, PACKED), Im2colParams: (LEGAL_IM2COL,), Im2colWideParams: (LEGAL_WIDE,)}
    found = [rule.find(tensor_map(params, (10, 0))) for mode in rule.modes for params in legal[mode]]
    assert found and all(isinstance(findings, tuple | list) for findings in found)
    assert rule in WARNINGS or not any(found)


def put(name, values, index=None, base=LEGAL):
    """Return a Hypothesis strategy that draws changes of one argument, or of one element of the argument."""
    if index is None:
        return st.fixed_dictionaries({name: values})
    whole = getattr(base, name)
    return values.map(lambda value: {name: (*whole[:index], value, *whole[index + 1 :])})


ints = st.integers
RANK_2 = {
    "global_dim": (64, 48),
    "global_strides": (128,),
    "element_strides": (1, 1),
    "pixel_box_lower_corner": (),
    "pixel_box_upper_corner": (),
}
# fmt: off
# Each row contains a rule, an index, legal params, changes that break only this rule, and a compute capability.
SINGLE = [
    ("data_type", None, PLAIN, put("data_type", ints(16, 99)), (9, 0)),
    ("data_type", None, PACKED, put("swizzle", st.just(3)), (9, 0)),
    ("rank", None, LEGAL_IM2COL, st.just(RANK_2), (9, 0)),
    ("array_length", None, PLAIN, put("box_dim", st.just((32, 16))), (9, 0)),
    ("global_address_range", None, PLAIN, put("global_address", ints(2**60, 2**62).map(lambda n: n * 32)), (9, 0)),
    ("global_address_alignment", None, PLAIN, put("global_address", ints(0, 2**40).filter(lambda n: n % 16)), (9, 0)),
    ("global_dim_range", 1, PLAIN, put("global_dim", st.just(0) | ints(2**32 + 1, 2**40), 1), (9, 0)),
    ("global_dim_packed", 0, PACKED, put("global_dim", ints(1, 2**20).filter(lambda n: n % 128), 0, PACKED), (10, 0)),
    ("global_strides_alignment", 1, PLAIN, put("global_strides", ints(1, 2**39).filter(lambda n: n % 16), 1), (9, 0)),
    ("global_strides_range", 1, PLAIN, put("global_strides", ints(2**36, 2**50).map(lambda n: n * 16), 1), (9, 0)),
    ("box_dim_range", 2, PLAIN, put("box_dim", st.just(0) | st.just(-1), 2), (9, 0)),
    ("box_dim_range", 1, SMALL_BOX, put("box_dim", ints(257, 5000), 1, SMALL_BOX), (9, 0)),
    ("box_dim_multiple", 0, PLAIN, put("box_dim", ints(1, 255).filter(lambda n: n % 4), 0), (9, 0)),
    ("box_dim_packed", 0, PACKED, put("box_dim", st.sampled_from((32, 64, 192)), 0, PACKED), (10, 0)),
    ("box_dim_span", 0, LEGAL, put("box_dim", ints(9, 64).map(lambda n: 4 * n), 0), (9, 0)),
    ("box_dim_bytes", None, PLAIN, put("box_dim", ints(29, 256).map(lambda n: (64, 32, n))), (9, 0)),
    ("pixel_box_lower_corner_range", 1, LEGAL_IM2COL,
     put("pixel_box_lower_corner", ints(-9999, -129), 1, LEGAL_IM2COL), (9, 0)),
    ("pixel_box_upper_corner_range", 0, LEGAL_IM2COL,
     put("pixel_box_upper_corner", ints(128, 9999), 0, LEGAL_IM2COL), (9, 0)),
    ("pixel_box_lower_corner_range", None, LEGAL_WIDE,
     put("pixel_box_lower_corner_width", ints(-99999, -32769)), (10, 0)),
    ("pixel_box_upper_corner_range", None, LEGAL_WIDE,
     put("pixel_box_upper_corner_width", ints(32768, 99999)), (10, 0)),
    ("pixel_box_empty", 0, LEGAL_IM2COL, put("pixel_box_upper_corner", ints(-128, -49), 0, LEGAL_IM2COL), (9, 0)),
    ("pixel_box_empty", None, LEGAL_WIDE, put("pixel_box_upper_corner_width", ints(-32768, -49)), (10, 0)),
    ("channels_per_pixel_range", None, ONE_PIXEL,
     put("channels_per_pixel", st.just(0) | ints(33, 99).map(lambda n: 8 * n)), (9, 0)),
    ("channels_per_pixel_multiple", None, LEGAL_IM2COL,
     put("channels_per_pixel", ints(1, 255).filter(lambda n: n % 8)), (9, 0)),
    ("channels_per_pixel_packed", None, PACKED_IM2COL,
     put("channels_per_pixel", st.sampled_from((32, 64, 192))), (10, 0)),
    ("channels_per_pixel_span", None, replace(LEGAL_IM2COL, swizzle=3),
     put("channels_per_pixel", ints(9, 32).map(lambda n: 8 * n)), (9, 0)),
    ("pixels_per_column_range", None, FEW_CHANNELS, put("pixels_per_column", st.just(0) | ints(1025, 9999)), (9, 0)),
    ("pixels_per_column_bytes", None, replace(LEGAL_IM2COL, channels_per_pixel=256),
     put("pixels_per_column", ints(457, 1024)), (9, 0)),
    ("element_strides_range", 2, PLAIN, put("element_strides", st.just(0) | ints(9, 999), 2), (9, 0)),
    ("interleave", None, PLAIN, put("interleave", ints(3, 99)), (9, 0)),
    ("interleave_packed", None, replace(PACKED, data_type=15), put("interleave", ints(1, 2)), (10, 0)),
    ("mode", None, LEGAL_WIDE, put("mode", ints(2, 9)), (10, 0)),
    ("swizzle", None, PLAIN, put("swizzle", ints(4, 99)), (9, 0)),
    ("swizzle", None, PLAIN, put("swizzle", ints(7, 99)), (10, 0)),
    ("swizzle_packed", None, PACKED, put("swizzle", st.sampled_from((1, 2, 5, 6))), (10, 0)),
    ("swizzle_wide", None, replace(LEGAL_WIDE, channels_per_pixel=8),
     put("swizzle", st.sampled_from((0, 1, 5, 6))), (10, 0)),
    ("l2_promotion", None, PLAIN, put("l2_promotion", ints(4, 99)), (9, 0)),
    ("oob_fill", None, PLAIN, put("oob_fill", ints(2, 99)), (9, 0)),
    ("oob_fill_data_type", None, replace(PLAIN, data_type=2), put("oob_fill", st.just(1)), (9, 0)),
    ("allocation_class", None, PLAIN, put("allocation_class", st.just(0) | ints(3, 99)), (10, 0)),
    ("compute_capability", None, PLAIN, st.just({}), (8, 9)),
    ("compute_capability", None, LEGAL_WIDE, st.just({}), (9, 0)),
]
# fmt: on


@pytest.mark.parametrize(
    "rule,index,base,changes,capability", SINGLE, ids=[f"{s[0]}-{i}" for i, s in enumerate(SINGLE)]
)
@given(data=st.data())
def test_one_broken_constraint_is_named_and_nothing_else(rule, index, base, changes, capability, data):
    change = data.draw(changes)
    found = check(replace(base, **change), capability)
    assert [(v.rule, v.index) for v in found] == [(rule, index)]
    (row,) = [r for r in RULES if r.name == rule and type(base) in r.modes]
    assert (found[0].parameter, found[0].source, found[0].severity) == (row.parameter, row.source, "error")


# Each change in the table breaks one rule for any legal params. Each row contains the rule, the argument, and illegal
# values.
# fmt: off
BREAKS = [
    ("data_type", "data_type", st.integers(17, 99)),
    ("global_address_alignment", "global_address", st.integers(0, 2**50).map(lambda n: 16 * n + 8)),
    ("global_dim_range", "global_dim", st.just(0) | st.integers(2**25 + 1, 2**30).map(lambda n: 128 * n)),
    ("global_strides_alignment", "global_strides", st.integers(0, 2**35).map(lambda n: 16 * n + 4)),
    ("global_strides_range", "global_strides", st.integers(2**35, 2**45).map(lambda n: 32 * n)),
    ("box_dim_range", "box_dim", st.just(0)),
    ("pixel_box_lower_corner_range", "pixel_box_lower_corner", st.integers(-40000, -32769)),
    ("pixel_box_upper_corner_range", "pixel_box_upper_corner", st.integers(32768, 40000)),
    ("channels_per_pixel_range", "channels_per_pixel", st.just(0)),
    ("pixels_per_column_range", "pixels_per_column", st.just(0)),
    ("element_strides_range", "element_strides", st.just(0) | st.integers(9, 99)),
    ("swizzle", "swizzle", st.integers(7, 99)),
    ("l2_promotion", "l2_promotion", st.integers(4, 99)),
    ("oob_fill", "oob_fill", st.integers(2, 99)),
    ("allocation_class", "allocation_class", st.just(0) | st.integers(3, 99)),
]
# fmt: on


@pytest.mark.parametrize("rule,name,values", BREAKS, ids=[b[0] for b in BREAKS])
@given(params=legal_params(), data=st.data())
def test_one_broken_constraint_of_any_legal_map_is_named_and_nothing_else(rule, name, values, params, data):
    assume(getattr(params, name, ()) != ())
    old, new, index = getattr(params, name), data.draw(values), None
    if isinstance(old, tuple):
        index = data.draw(st.integers(0, len(old) - 1))
        new = (*old[:index], new, *old[index + 1 :])
    found = check(replace(params, **{name: new}))
    assert [(v.rule, v.parameter, v.index) for v in found] == [(rule, name, index)]


@given(legal_params())
def test_legal_maps_are_accepted(params):
    assert check(params) == ()


@given(legal_params(compute_capability=(10, 0)) | legal_wide_params(), st.sampled_from([(10, 0), (11, 0), (12, 1)]))
def test_legal_maps_are_accepted_by_later_devices(params, capability):
    assert check(params, capability) == ()


def test_a_load_of_exactly_228_kib_is_legal():
    """In the recordings, the driver accepts a box of 233,472 bytes, and refuses a box of 233,520 bytes, the next
    recorded size."""
    rows = [row for row in golden() if row.is_judged and not _broken_otherwise(row)]
    sizes = {(stored_transfer_bytes(row.params), row.accepted) for row in rows}
    assert max(size for size, accepted in sizes if accepted) <= 228 * 1024
    assert min(size for size, accepted in sizes if not accepted) > 228 * 1024
    assert check(replace(PLAIN, box_dim=(256, 228, 1))) == () != check(replace(PLAIN, box_dim=(256, 229, 1)))


def _broken_otherwise(row):
    return [v for v in check(row.params, row.compute_capability) if not v.rule.endswith("_bytes")]


@pytest.mark.parametrize(
    ("base", "capability", "global_dim", "message"),
    [
        (PLAIN, (9, 0), (1,) * 6, "rank=6 must be 1 to 5. Use 5."),
        (PLAIN, (9, 0), (), "rank=0 must be 1 to 5. Use 1."),
        (replace(PLAIN, interleave=1), (9, 0), (64, 64), "rank=2 must be 3 to 5 with an interleaved layout. Use 3."),
        (replace(PLAIN, interleave=2), (9, 0), (1,) * 6, "rank=6 must be 3 to 5 with an interleaved layout. Use 5."),
        (LEGAL_IM2COL, (9, 0), (64, 64), "rank=2 must be 3 to 5 for im2col. Use 3."),
        (LEGAL_IM2COL, (9, 0), (8,) * 6, "rank=6 must be 3 to 5 for im2col. Use 5."),
        (LEGAL_IM2COL, (9, 0), (), "rank=0 must be 3 to 5 for im2col. Use 3."),
        (LEGAL_WIDE, (10, 0), (64, 64), "rank=2 must be 3 to 5 for im2col. Use 3."),
    ],
)
def test_the_rank_at_its_boundary(base, capability, global_dim, message):
    rank = len(global_dim)
    arrays = {"global_strides": (4096,) * max(rank - 1, 0), "element_strides": (1,) * rank}
    if base is LEGAL_IM2COL:
        arrays |= dict.fromkeys(("pixel_box_lower_corner", "pixel_box_upper_corner"), (0,) * max(rank - 2, 0))
    elif base is not LEGAL_WIDE:
        arrays["box_dim"] = (4,) * rank
    (broken,) = check(replace(base, global_dim=global_dim, **arrays), capability)
    assert (broken.rule, broken.message) == ("rank", message)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank_is_legal(rank):
    arrays = {"global_dim": (64,) * rank, "global_strides": (4096,) * (rank - 1)}
    box = {"box_dim": (4,) * rank, "element_strides": (1,) * rank}
    assert check(replace(PLAIN, **arrays, **box)) == ()


@pytest.mark.parametrize(
    ("base", "capability", "messages"),
    [
        (PLAIN, (9, 0), []),
        (PLAIN, (8, 9), ["compute_capability=(8, 9) must be 9.0 or later."]),
        (LEGAL_IM2COL, (8, 9), ["compute_capability=(8, 9) must be 9.0 or later."]),
        (LEGAL_WIDE, (10, 0), []),
        (LEGAL_WIDE, (12, 1), []),
        (LEGAL_WIDE, (9, 9), ["compute_capability=(9, 9) must be 10.0 or later for im2col wide."]),
    ],
)
def test_the_compute_capability_at_its_boundary(base, capability, messages):
    assert [v.message for v in check(base, capability)] == messages


def test_every_rule_is_broken_once():
    assert {rule.name for rule in RULES} == {rule for rule, *_ in SINGLE}


# The remedies of these rules are alternatives or combinations of several numbers, so no nearest value exists.

NO_NEAREST = {
    *("data_type", "interleave", "mode", "swizzle", "swizzle_packed", "swizzle_wide", "l2_promotion", "oob_fill"),
    *("allocation_class", "compute_capability", "array_length", "box_dim_bytes", "pixels_per_column_bytes"),
}


@pytest.mark.parametrize("rule,index,base,changes,capability", [s for s in SINGLE if s[0] != "rank"])
@given(data=st.data())
def test_the_nearest_legal_value_is_legal(rule, index, base, changes, capability, data):
    wrong = replace(base, **data.draw(changes))
    (violation,) = check(wrong, capability)
    assert (violation.nearest is None) == (rule in NO_NEAREST)
    if rule in NO_NEAREST:
        return
    values, nearest = getattr(wrong, violation.parameter), violation.nearest
    remedied = nearest if index is None else (*values[:index], nearest, *values[index + 1 :])
    left = check(replace(wrong, **{violation.parameter: remedied}), capability)
    # A box may have 1 row, but not 1 element in a row of 16 bytes, so a second remedy gives the legal value.
    assert rule not in [v.rule for v in left]
    assert {v.rule for v in left} <= {"box_dim_multiple", "channels_per_pixel_multiple"}


@given(legal_params(), st.integers(0, 3))
def test_all_violations_are_reported_in_the_order_of_the_arguments(params, fill):
    assume(params.rank > 1)
    strides = tuple(s + 8 for s in params.global_strides)
    wrong = replace(params, global_address=params.global_address + 4, global_strides=strides, l2_promotion=9)
    assert [(v.rule, v.index) for v in check(wrong)] == [
        ("global_address_alignment", None),
        *(("global_strides_alignment", i) for i in range(params.rank - 1)),
        ("l2_promotion", None),
    ]


def test_the_message_is_in_the_drivers_terms():
    (violation,) = check(replace(PLAIN, global_strides=(6932, 443648)))
    assert violation.message == "global_strides[0]=6932 must be a multiple of 16. Use 6944."
    assert violation.source == "CUDA 13.5 driver API, cuTensorMapEncode*: globalStrides"


def test_interleaved_im2col_pairs_the_corners_as_the_driver_does():
    """With an interleaved layout, the driver takes the extent of W from global_dim[0] (observed)."""
    interleaved = replace(LEGAL_IM2COL, interleave=1, global_dim=(8, 48, 40, 8), pixel_box_upper_corner=(-9, 3))
    (violation,) = check(interleaved)
    assert (violation.rule, violation.index, violation.nearest) == ("pixel_box_empty", 0, -8)
    assert check(replace(interleaved, interleave=0)) == ()


WARNED = [
    ("small_tensor", LEGAL, {"global_dim": (64, 48, 2)}, (10, 0)),
    ("global_dim_documented", LEGAL, {"global_dim": (64, 2**32, 40)}, (9, 0)),
    ("global_dim_store", LEGAL, {"global_dim": (63, 48, 40)}, (9, 0)),
    ("global_dim_narrow", LEGAL, {"global_dim": (3, 48, 40)}, (9, 0)),
    ("global_strides_overlap", LEGAL, {"global_strides": (128, 12288)}, (9, 0)),
    ("box_dim_beyond_tensor", LEGAL, {"box_dim": (32, 16, 41)}, (9, 0)),
    ("box_dim_narrow", LEGAL, {"box_dim": (16, 16, 2)}, (9, 0)),
    ("channels_per_pixel_narrow", LEGAL_IM2COL, {"swizzle": 3, "channels_per_pixel": 32}, (9, 0)),
    ("element_strides_transfer", LEGAL, {"element_strides": (1, 3, 1)}, (9, 0)),
    ("element_strides_ignored", LEGAL, {"element_strides": (2, 1, 1)}, (9, 0)),
    ("box_dim_smem", replace(PLAIN, data_type=0), {"box_dim": (256, 228, 4)}, (9, 0)),
    ("pixels_per_column_smem", LEGAL_IM2COL, {"channels_per_pixel": 256, "pixels_per_column": 455}, (9, 0)),
    ("unexplained", LEGAL, {"unexplained": ((31, 1),)}, (9, 0)),
    ("interleave_swizzle", LEGAL, {"interleave": 2, "swizzle": 0}, (9, 0)),
]


@pytest.mark.parametrize("rule,base,change,capability", WARNED, ids=[w[0] for w in WARNED])
def test_a_warning_needs_a_request(rule, base, change, capability):
    params = replace(base, **change)
    assert check(params, capability) == ()
    found = check(params, capability, warnings=True)
    assert rule in [v.rule for v in found] and {v.severity for v in found} == {"warning"}
    assert rule not in [v.rule for v in check(base, capability, warnings=True)]


def test_every_warning_appears_once():
    assert {rule.name for rule in WARNINGS} == {rule for rule, *_ in WARNED}


@pytest.mark.parametrize("allocation_class,fix", [(1, "Have the driver set SMALL"), (2, "Use the SMALL allocation")])
def test_a_small_tensor_of_later_devices_needs_the_small_class(allocation_class, fix):
    small = replace(LEGAL, global_dim=(64, 48, 2), allocation_class=allocation_class)
    (violation,) = check(small, (10, 0), warnings=True)
    assert violation.rule == "small_tensor" and violation.fix.startswith(fix)
    assert f"(the tensor ends after {12288 + 47 * 256 + 256})" in violation.message


def test_a_store_through_an_interleaved_map_stays_inside_rows():
    changes = {"interleave": 1, "swizzle": 0, "global_dim": (63, 48, 40)}
    assert "global_dim_store" not in [v.rule for v in check(replace(LEGAL, **changes), warnings=True)]


def test_expect_tx_of_strided_boxes_is_the_ceiling():
    (violation,) = check(replace(LEGAL, element_strides=(1, 3, 1)), warnings=True)
    assert f"a load delivers {32 * 6 * 2 * 4} bytes, not the {32 * 16 * 2 * 4}" in violation.message


def test_unverified_facts_are_marked():
    for rule in RULES:
        if rule.name.endswith("_packed") or rule.name in ("mode", "swizzle_wide", "allocation_class"):
            assert "documented, not verified on hardware" in rule.source
