"""Tests of the text of errors and barriers on hardware, in child processes, because a fault ends its context."""

import subprocess
import sys

from cuda_tma.barrier import Barrier

FAULT = """
import cuda_tma
from cuda import core

device = cuda_tma.Device(0)
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void wild(int* p) { *p = 1; }'
kernel = core.Program(source, "c++", core.ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("wild")
config = core.LaunchConfig(grid=1, block=1)
buffer = device.allocate(1 << 16, stream=stream)
descriptor = cuda_tma.create_tensor_map(buffer, box_dim=(64,))
stream.sync()
cuda_tma.launch(stream, config, kernel, 0x7F0000000000)
try:
    stream.sync()
except Exception as error:
    print(error)
for call in (
    lambda: cuda_tma.create_tensor_map(buffer, box_dim=(64,)),
    lambda: cuda_tma.launch(stream, config, kernel, 0x7F0000000000),
):
    try:
        call()
        print("accepted")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
print("done", flush=True)
import os
os._exit(0)
"""
WORD = """
import numpy as np
import cuda_tma
from cuda import core
from cuda.bindings import driver

source = '''
#include <cuda_tma/barrier.cuh>
extern "C" __global__ void kernel(unsigned long long* out) {
    __shared__ cuda_tma::Barrier barrier;
    barrier.init(5);
    barrier.arrive(2);
    barrier.arrive_expect_tx(4096);
    barrier.invalidate();
    *out = *reinterpret_cast<volatile unsigned long long*>(&barrier);
}
'''
device = cuda_tma.Device(0)
device.set_current()
stream = device.create_stream()
kernel = cuda_tma.compile(source, "kernel", cache=False)
buffer = device.allocate(8, stream=stream)
cuda_tma.launch(stream, core.LaunchConfig(grid=1, block=1), kernel, buffer)
stream.sync()
word = np.zeros(1, np.uint64)
assert driver.cuMemcpyDtoH(word.ctypes.data, int(buffer.handle), 8) == (0,)
print(repr(cuda_tma.barrier.decode_barrier(word[0])))
"""

WITHOUT_CLUSTERS = """
import sys
import numpy as np
import cuda_tma
from cuda import core
from cuda.bindings import driver
from tests.simulate._sanitize.test_clusters import SOURCE

device = cuda_tma.Device(0)
device.set_current()
stream = device.create_stream()
out, found = device.allocate(256, stream=stream), np.zeros(64, np.int32)
config = core.LaunchConfig(grid=2, block=32, **({"cluster": 1} if sys.argv[2] == "1" else {}))
try:
    cuda_tma.launch(stream, config, cuda_tma.compile(SOURCE, sys.argv[1], cache=False), out)
    stream.sync()
    assert driver.cuMemcpyDtoH(found.ctypes.data, int(out.handle), found.nbytes) == (0,)
    print(found[0], (found == found[0]).all())
except Exception as error:
    print(str(error).split(":")[0])
sys.stdout.flush()
import os
os._exit(0)
"""


def lines(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_after_a_fault_all_errors_name_it():
    found = lines(FAULT)
    assert found[-1] == "done" and len(found) == 4, found
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found[0]
    for line in found[1:3]:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in line and ": it is sticky: a kernel of this context ended in it" in line


def test_the_word_of_a_barrier():
    assert lines(WORD) == [repr(Barrier(phase=0, pending_count=2, expected_count=5, tx_count=4096))]


def test_instructions_that_need_clusters(publish):
    """The published lines distinguish st.async, red.async and remote arrivals.

    In clusters of one CTA, each of these three instructions runs."""
    found = {}
    for name, value in (("stores", 105), ("reduces", 105), ("arrives", 100)):
        assert lines(WITHOUT_CLUSTERS, name, "1") == [f"{value} True"], name
        (found[name],) = lines(WITHOUT_CLUSTERS, name, "0")
        assert found[name] in (f"{value - 100} True", "CUDA_ERROR_ILLEGAL_INSTRUCTION"), name
    publish("in a launch without clusters: " + ", ".join(f"{name}: {line}" for name, line in found.items()))
