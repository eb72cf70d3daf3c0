"""Tests of queries about the memory of a GPU, on a fake driver."""

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma.simulate._memory import allocations, host_array
from cuda_tma.simulate._memory.host_array import Extent, Owner

OK, BAD = allocations.driver.CUresult.CUDA_SUCCESS, allocations.driver.CUresult.CUDA_ERROR_INVALID_VALUE
START = allocations._ATTRIBUTE.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR


@pytest.fixture
def driver(monkeypatch):
    """Return a fake driver, whose results the tests set."""
    fake = SimpleNamespace(CUresult=allocations.driver.CUresult, CUkernel=int, asked=[])
    fake.cuMemGetAddressRange = lambda address: fake.asked.append(address) or fake.range
    fake.cuPointerGetAttribute = lambda attribute, address: fake.start if attribute == START else fake.size
    fake.cuCtxSynchronize = lambda: (fake.result,)
    fake.cuKernelGetLibrary = lambda kernel: (fake.result, kernel)
    fake.cuLibraryGetGlobal = lambda library, name: (fake.found, library + len(name), 4)
    monkeypatch.setattr(allocations, "driver", fake)
    return fake


def test_only_addresses_that_the_bindings_accept_are_asked(driver):
    driver.range = OK, 64, 32
    for address in (0, -1, 1 << 57, 1 << 63):
        assert allocations.allocation(address) is None
    assert driver.asked == []
    assert [allocations.allocation(address) for address in (1, (1 << 57) - 1)] == [(64, 32)] * 2


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"range": (OK, 64, 32)}, (64, 32)),
        ({"range": (OK, 64, 0)}, None),
        ({"range": (BAD, 0, 0), "start": (OK, 128), "size": (OK, 16)}, (128, 16)),
        ({"range": (BAD, 0, 0), "start": (OK, 128), "size": (BAD, 16)}, None),
        ({"range": (BAD, 0, 7), "start": (BAD, 128), "size": (OK, 16)}, None),
    ],
)
def test_page_locked_memory_is_found_by_attributes(driver, answers, found):
    vars(driver).update(answers)
    assert allocations.allocation(200) == found


def test_a_result_other_than_success_is_an_error(driver):
    driver.result = OK
    allocations.synchronize()
    driver.result = BAD
    with pytest.raises(RuntimeError, match="the driver returned CUDA_ERROR_INVALID_VALUE; check whether an earlier"):
        allocations.synchronize()


@pytest.mark.parametrize(("result", "found", "address"), [(OK, OK, 14), (BAD, OK, None), (OK, BAD, None)])
def test_the_address_of_a_variable(driver, result, found, address):
    driver.result, driver.found = result, found
    assert allocations.variable_address(SimpleNamespace(handle=9), "table") == address


# ---- owners of memory of the host ----


def test_an_object_without_weak_references_stays_alive():
    class Weak:
        pass

    extent, weak = Extent(64, 8), Weak()
    strong = Owner((1, 2), lambda _: extent, "a tuple")
    owner = Owner(weak, lambda _: extent, "an object")
    assert strong.watched() == (1, 2) and owner.watched() is weak and strong.extent == extent
    del weak
    assert owner.watched() is None and strong.watched() == (1, 2)


def test_pages_that_cannot_be_listed_count_as_writeable(monkeypatch):
    data = np.zeros(8, np.uint8)
    memory = Extent(data.ctypes.data, 8)
    lines = f"{memory.begin:x}-{memory.begin + 8:x} {{}} 0 0 0\n"
    for text, is_read_only in ((lines.format("rw-p"), False), (lines.format("r--p"), True), ("0-1000 r--p 0\n", False)):
        monkeypatch.setattr(host_array.Path, "read_text", lambda *given, text=text: text)
        assert host_array._has_read_only_pages(memory) is is_read_only

    def fail(*given):
        raise OSError

    monkeypatch.setattr(host_array.Path, "read_text", fail)
    assert host_array._has_read_only_pages(memory) is False
