"""Tests of the command's driver library in eight threads of a program, and in a child process of a program."""

from __future__ import annotations


def test_eight_threads_allocate_copy_and_launch(run):
    ran = run("""
import threading
begin()
module, function = loaded()
context, errors, start = pointer(), [], threading.Barrier(8)
require(cuda.cuCtxGetCurrent(ctypes.byref(context)))

def work(number):
    try:
        require(cuda.cuCtxSetCurrent(context))
        start.wait()
        for turn in range(5):
            values = np.arange(32, dtype=np.uint32) + 100 * number
            address, stream = array(values), pointer(out(pointer, "cuStreamCreate", 0))
            launch(function, 32, address)
            require(cuda.cuStreamSynchronize(stream))
            assert (read(address, np.zeros_like(values)) == 5 * values).all(), number
            require(cuda.cuStreamDestroy_v2(stream))
            require(cuda.cuMemFree_v2(address))
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not errors, errors
""")
    assert (ran.status, ran.kinds, ran.err) == (0, [], "")
    assert sum(launched.get("count", 1) for launched in ran.launches) >= 1


def test_each_thread_has_its_own_current_context(run):
    ran = run("""
import threading
begin()
found = []
def work():
    context = pointer()
    require(cuda.cuCtxGetCurrent(ctypes.byref(context)))
    found.append(context.value)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert found == [None], found
""")
    # The command ends with status 3, because the program launches no kernel.
    assert "Traceback" not in ran.err and ran.status == 3
