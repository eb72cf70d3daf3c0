"""Tests that the JavaScript of the swizzle explorer and the Python package compute equal results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cuda_tma import TensorSpec, params_of, plot
from cuda_tma._command import cli
from cuda_tma._data_type import ELEMENTS
from cuda_tma._errors import TensorMapError
from cuda_tma._show import explorer as module
from cuda_tma._show.explorer import facts
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import TiledParams
from cuda_tma.rules import check
from cuda_tma.smem import bank_conflicts, smem_bytes, smem_offset
from cuda_tma.smem._layout import unit_bytes

JS = Path(module.__file__).with_name("explorer.js")
ROWS = 40
ACCESSES = ("row", "column", "ldmatrix")

# The dictionary contains one data type of each size, because the page computes equal values for types of equal size.
KINDS = {(e.bits, e.group_bytes, e.row_elements): (data_type, e) for data_type, e in reversed(ELEMENTS.items())}
KINDS = dict(KINDS.values())

# The program reads facts and cases, and prints the offsets of elements, the bank conflicts of each access, and the
# error of each case.
PROGRAM = """
const page = require(%s);
const {facts, cases} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const named = (list, name) => list.find(each => each.name == name);
console.log(JSON.stringify(cases.map(([typeName, swizzleName, columns, rows]) => {
  const type = named(facts.types, typeName), swizzle = named(facts.swizzles, swizzleName), box = {columns, rows};
  const offsets = [];
  for (let row = 0; row < Math.min(rows, 8); row++)
    for (let column = 0; column < columns; column++)
      offsets.push(page.smemOffset(type, swizzle, columns, row, column));
  const ways = ["row", "column", "ldmatrix"].map(name => page.worst(type, swizzle, box, name, 1).ways);
  const lanes = page.ACCESSES.lanes(type, swizzle, box, {row: 1, column: 0, stride: columns + 3});
  return {offsets, ways, pitch: page.rowPitch(type, swizzle, columns), refused: page.refused(type, swizzle, box),
    strided: page.banksOf(page.wordsOf(swizzle, lanes))};
})));
"""


@pytest.fixture(scope="module")
def computed():
    """Return the results of the page's formulas for all cases, from one run of node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")

    def run(cases):
        given = json.dumps({"facts": facts(), "cases": cases})
        found = subprocess.run(
            [node, "-e", PROGRAM % json.dumps(str(JS))], input=given, capture_output=True, text=True, check=True
        )
        return json.loads(found.stdout)

    return run


def matrix(data_type, swizzle, columns, rows=ROWS):
    row_bytes = -(-columns * ELEMENTS[data_type].bits // 8 // 32) * 32
    return TiledParams(
        data_type=data_type,
        global_address=0,
        global_dim=(columns, rows),
        global_strides=(row_bytes,),
        box_dim=(columns, rows),
        element_strides=(1, 1),
        swizzle=swizzle,
    )


def cases_of_every_mode():
    """Return, for each type and swizzle, one box row that fills the swizzle span and one box row that leaves a gap."""
    for data_type, element in KINDS.items():
        for swizzle in S:
            if element.swizzles is None or swizzle in element.swizzles:
                widths = {128, 48} if swizzle == S.NONE else {32, 64, 128, 16}
                columns = {element.row_elements} if element.row_elements else {8 * w // element.bits for w in widths}
                for width in sorted(columns):
                    if not check(matrix(data_type, swizzle, width), (10, 3)):
                        yield data_type, swizzle, width


def test_the_page_computes_the_same_as_python(computed):
    """The page and Python compute equal offsets of elements and equal bank conflicts, for every type, every swizzle and
    several widths."""
    cases = [*cases_of_every_mode()]
    assert {(data_type, swizzle) for data_type, swizzle, _ in cases} >= {(T.UINT16, swizzle) for swizzle in S}
    assert {data_type for data_type, _, _ in cases} == set(KINDS) and len(cases) > 50
    answers = computed([(t.short_name, s.short_name, width, ROWS) for t, s, width in cases])
    for (data_type, swizzle, width), answer in zip(cases, answers, strict=True):
        params = matrix(data_type, swizzle, width)
        what = f"{data_type.short_name} {swizzle.short_name} {width}"
        expected = [smem_offset(params, (i, row)) for row in range(8) for i in range(width)]
        assert answer["offsets"] == expected, what
        assert answer["ways"] == [bank_conflicts(params, access) for access in ACCESSES], what
        assert answer["pitch"] * ROWS == smem_bytes(params) and answer["refused"] == "", what
        assert answer["strided"] == strided(params, width), what


def strided(params, width):
    """Return the shared-memory words in each bank, for lanes whose addresses differ by one row and three elements."""
    unit = unit_bytes(params)
    words = set()
    for lane in range(min(32, 128 // unit)):
        row, column = divmod(width + lane * (width + 3), width)
        if row < ROWS:
            words |= {(smem_offset(params, (column, row)) + byte) // 4 for byte in range(0, unit, 4)}
    return [sum(word % 32 == bank for word in words) for bank in range(32)]


def test_refusals_of_a_driver_are_refused(computed):
    wide, odd, packed = computed(
        [("BFLOAT16", "64B", 64, 8), ("FLOAT32", "NONE", 6, 8), ("16U4_ALIGN16B", "64B", 128, 8)]
    )
    assert wide["refused"] == "a row of 64 elements of BFLOAT16 is 128 bytes, and the swizzle's span is 64"
    assert odd["refused"] == "a row of 6 elements of FLOAT32 is 24 bytes, which is not a multiple of 16"
    assert packed["refused"].startswith("16U4_ALIGN16B takes the swizzles NONE, 128B")


def test_the_page_is_self_contained_and_begins_with_the_map():
    params = params_of(TensorSpec((60, 128), "float32"), box_dim=(16, 32), swizzle="128B_ATOM_32B")
    page = plot.explorer(params)
    assert len(page) < 200_000 and "{{" not in page.replace("${", "")
    assert not re.findall(r"(?:src|href)=|@import|fetch\(|XMLHttp", page)
    assert {*re.findall(r"https?://[^\"' ]+", page)} == {"http://www.w3.org/2000/svg"}
    first = json.loads(re.search(r"const FACTS = (.*);\n", page)[1])["first"]
    assert first == {"type": "FLOAT32", "swizzle": "128B_ATOM_32B", "columns": 32, "rows": 16, "access": "ldmatrix"}


def test_a_map_that_the_page_does_not_show_is_refused():
    with pytest.raises(TensorMapError, match="whose box has at most one extent above 1 besides the innermost"):
        plot.explorer(params_of(TensorSpec((8, 8, 8), "float32"), box_dim=(4, 4, 8)))
    with pytest.raises(TensorMapError, match="box_dim"):
        plot.explorer(params_of(TensorSpec((8, 64), "float32"), box_dim=(8, 64), swizzle="128B"))


def test_the_command_writes_the_page(capsys, tmp_path):
    def run(*arguments):
        return cli.main(["plot", *map(str, arguments)]), *capsys.readouterr()

    page = tmp_path / "swizzle.html"
    assert run("--html", page) == (0, f"wrote {page}\n", "")
    assert page.read_text("utf-8") == plot.explorer()
    tensor = ["--shape", "64x64", "--dtype", "bfloat16", "--box", "8x64", "--swizzle", "128B"]
    assert run("--html", page, *tensor, "--json")[:2] == (0, json.dumps({"output": str(page)}, indent=2) + "\n")
    assert '"rows": 8' in page.read_text("utf-8")
    assert "leave out tile" in run("tile", "--html", page)[2]
    assert "leave out --at" in run("--html", page, "--at", "0x0")[2]
    assert run("--html", tmp_path / "no" / "x.html")[0] == 2
    assert "end the name in .html" in run("--html", tmp_path / "x.svg")[2]
    assert "invalid choice: 'squares'" in run("squares", *tensor, "--output", str(tmp_path / "x.png"))[2]
