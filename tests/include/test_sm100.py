"""Tests that each function of sm100.cuh is the PTX instruction in the function's comment, with the right operands."""

from __future__ import annotations

import pytest

from tests.include._header import defined_in, words
from tests.include._instructions import MULTICAST, PARAMETERS, REMOTE, copies
from tests.support.ptx_interpreter import effects

TARGET = "compute_100a"
# Each row contains the state space, the mode, and the columns of the tables in test_instructions.py.
LOAD = (
    "cp.async.bulk.tensor.{rank}d.shared::%s.global.%s.mbarrier::complete_tx::bytes%s{hint}"
    " [shared(tile)], [map, {at}], [shared(full)]"
)
PREFETCH = "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.%s{hint} [map, {at}]"
GATHER4 = "tile::gather4"
HALO = ", {s, t}"
ROWS = "{b, c, d, e}"
FOUR_ROWS = {
    key: form.replace("{at}", "{a, b, c, d, e}").replace("{rank}", "2")
    for key, form in {
        f"load_gather4(tile, *map, *full, a, {ROWS}{{policy}});": LOAD % ("cta", GATHER4, "") + "{policy}",
        f"load_gather4_multicast(tile, *map, *full, a, {ROWS}, mask{{policy}});": (
            LOAD % ("cluster", GATHER4, MULTICAST) + ", mask{policy}"
        ),
        f"prefetch_gather4(*map, a, {ROWS}{{policy}});": PREFETCH % GATHER4 + "{policy}",
        f"store_scatter4(*map, a, FourRows{ROWS}, tile{{policy}});": (
            "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile::scatter4.bulk_group{hint}"
            " [map, {at}], [shared(tile)]{policy}"
        ),
    }.items()
}
ALONG_W = {
    key: form
    for mode in ("im2col::w", "im2col::w::128")
    for name in [mode.replace("::", "_")]
    for key, form in {
        f"load_{name}(tile, *map, *full, Coordinates{{at}}, s, t{{policy}});": (
            LOAD % ("cta", mode, "") + HALO + "{policy}"
        ),
        f"load_{name}_multicast(tile, *map, *full, Coordinates{{at}}, s, t, mask{{policy}});": (
            LOAD % ("cluster", mode, MULTICAST) + HALO + ", mask{policy}"
        ),
        f"prefetch_{name}(*map, Coordinates{{at}}, s, t{{policy}});": PREFETCH % mode + HALO + "{policy}",
    }.items()
}


def of_pairs(forms: dict[str, str]) -> dict[str, str]:
    """Return load statements with functions of the namespace cta_group2, whose barrier may be in another CTA."""
    return {
        f"cta_group2::{statement.replace('*full', barrier)}": (
            form.replace("shared::cta", "shared::cluster")
            .replace("{hint}", ".cta_group::2{hint}")
            .replace("[shared(full)]", f"[{address}]")
        )
        for statement, form in forms.items()
        if statement.startswith("load")
        for barrier, address in (("*full", "shared(full)"), ("full->in_cta(rank)", REMOTE.format("full")))
    }


TILED = {
    f"load{name}(tile, *map, *full, Coordinates{{at}}{mask}{{policy}});": (
        LOAD % ("cluster", "tile", cast) + mask + "{policy}"
    )
    for name, mask, cast in (("", "", ""), ("_multicast", ", mask", MULTICAST))
}
IM2COL = {
    f"load_im2col{name}(tile, *map, *full, Coordinates{{at}}, Offsets{{offsets}}{mask}{{policy}});": (
        LOAD % ("cluster", "im2col", cast) + ", {offsets}" + mask + "{policy}"
    )
    for name, mask, cast in (("", "", ""), ("_multicast", ", mask", MULTICAST))
}
TABLES = {
    "four rows": copies(FOUR_ROWS | of_pairs(FOUR_ROWS), range(2, 3)),
    "along W": copies(ALONG_W | of_pairs(ALONG_W), range(3, 6)),
    "pairs, tiled": copies(of_pairs(TILED), range(1, 6)),
    "pairs, im2col": copies(of_pairs(IM2COL), range(3, 6)),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_function_is_its_instruction(table):
    """Each function of sm100.cuh is one instruction. The test compares the instruction's name and all operands in
    order."""
    assert effects("sm100.cuh", PARAMETERS, table, target=TARGET) == table


def test_nothing_is_left_out():
    assert defined_in("sm100.cuh") <= words([statement for table in TABLES.values() for statement in table])
