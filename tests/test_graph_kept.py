"""Tests of objects that graphs keep alive, and of their release on a thread of the driver."""

import ctypes
import gc
import sys
import threading
import time
import weakref

import pytest

from cuda_tma import graph
from tests._graph import Definition, Executable, Thing, dropped
from tests.support.fake_graphs import call_on_a_native_thread
from tests.support.launching import ForeignStream


@pytest.fixture
def definition(driver):
    return Definition(driver)


def test_a_definition_keeps_objects_until_it_ends(driver, definition):
    thing = Thing()
    gone = weakref.ref(thing)
    graph.keep_alive(definition, thing, [thing])
    del thing
    gc.collect()
    assert gone() is not None and driver.kept == [(0x6000, 0xA000)]
    thread = threading.Thread(target=driver.destroy_graph, args=(0x6000,))
    thread.start()
    thread.join()
    dropped()
    assert gone() is None and driver.user_objects == {}


def test_released_objects_wait_for_the_gil(driver, definition):
    """Up to CPython 3.12, the main thread handles a native thread's pending call when the main thread next takes the
    GIL."""
    thing = Thing()
    gone = weakref.ref(thing)
    graph.keep_alive(definition, thing)
    del thing
    driver.destroy_graph(0x6000, call_on_a_native_thread)
    for _ in range(1000):
        pass
    if sys.version_info >= (3, 13):
        assert gone() is None
    # The call sleep(0) releases the GIL.
    time.sleep(0)
    dropped()
    assert gone() is None and driver.user_objects == {}


def test_objects_that_wait_because_the_queue_is_full_go_at_the_next_use(driver, definition):
    """Only the main thread of Python runs pending calls. In the test, the main thread waits for another thread."""
    thing, results = Thing(), []
    gone = weakref.ref(thing)
    graph.keep_alive(definition, thing)
    del thing
    nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)

    def use():
        filled = any(ctypes.pythonapi.Py_AddPendingCall(nothing, None) for _ in range(1000))
        driver.destroy_graph(0x6000)
        results.extend((filled, gone() is None))
        graph.keep_alive(definition, Thing())
        results.append(gone() is None)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert results == [True, False, True]


def test_a_capture_keeps_objects(driver):
    driver.captures[0x77] = 0x6100
    graph.keep_alive(ForeignStream(), Thing())
    assert [each for each, _ in driver.kept] == [0x6100]
    driver.destroy_graph(0x6100)
    driver.captures.clear()
    with pytest.raises(
        ValueError, match="^the ForeignStream captures no graph: call keep_alive between begin_building"
    ):
        graph.keep_alive(ForeignStream(), Thing())
    with pytest.raises(
        TypeError, match="^graph is a Executable, which is executable and can keep no more objects alive"
    ):
        graph.keep_alive(Executable(), Thing())
