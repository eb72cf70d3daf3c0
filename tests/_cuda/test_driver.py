"""Tests of the table of driver entry points, in which the position of an entry determines the called function."""

import re
from pathlib import Path

import pytest

from cuda_tma._cuda import driver as _driver
from cuda_tma._data_type import DLPACK_NAMES
from cuda_tma._make import arguments as _arguments
from cuda_tma.enums import TensorMapDataType
from tests.support.fake_driver import SIGNATURES

PACKAGE = Path(_driver.__file__).parent
CALL = re.compile(r"^    CUresult \(\*(cu\w+)\)\((.*?)\) noexcept nogil$", re.MULTILINE | re.DOTALL)


def test_the_structure_and_the_names_have_one_order():
    structure = (PACKAGE / "driver.pxd").read_text().partition("cdef struct Driver:")[2]
    table = (PACKAGE / "driver.pyx").read_text().partition("_ENTRY_POINTS = {")[2].partition("}")[0]
    declared = [name for name, _ in CALL.findall(structure)]
    assert declared == re.findall(r'"(cu\w+)": \d+', table) and len(declared) == structure.count("(*")


def test_the_fake_takes_as_many_arguments():
    """If the fake driver's function declared more arguments than the real function, ctypes would read beyond the passed
    arguments."""
    structure = (PACKAGE / "driver.pxd").read_text().partition("cdef struct Driver:")[2]
    assert {name: len(types.split(",")) for name, types in CALL.findall(structure)} == {
        name: len(types) for name, types in SIGNATURES.items()
    }


def test_installed_functions_are_called(driver):
    """In the driver's table, the pointer of each entry point is at the position of its name, and no name is missing."""
    found = _driver.snapshot()
    assert list(found) == list(_driver.snapshot()) and set(found) == set(SIGNATURES) and all(found.values())
    assert len(set(found.values())) == len(found)
    driver.install(without=["cuCtxGetId"])
    assert [name for name, address in _driver.snapshot().items() if not address] == ["cuCtxGetId"]
    _driver.restore(found)
    assert _driver.snapshot() == found
    _driver.restore(None)
    assert _driver.snapshot() is None
    _driver.restore(found)


def test_excess_text_is_not_written_past_the_end_of_a_table():
    class Later(int):
        name = "LATER"

    for number in (32, 255, -1):
        with pytest.raises(IndexError, match=f"data type {number} has no place in tables of 32"):
            _arguments.fill_tables([Later(number)], {})
    for dtype in [(32, 8, 1), (-1, 8, 1), (1, 4, 1), (1, 6, 1)]:
        with pytest.raises(IndexError, match="has no place in the table of inferred data types"):
            _arguments.fill_tables([], {**DLPACK_NAMES, dtype: "float32"})
    _arguments.fill_tables(TensorMapDataType, DLPACK_NAMES)
