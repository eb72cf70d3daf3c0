"""Tests of memory leaks. The sanitizer reports advice at the allocation's line for memory that a program has not
freed."""

from __future__ import annotations

import pytest

BEGIN = "begin()\nsize = ctypes.c_size_t\n"
LEAKS = {
    "device": ("cuMemAlloc_v2", "64", "64 bytes of device memory is not freed when the program ends"),
    "managed": ("cuMemAllocManaged", "64, 1", "64 bytes of managed memory is not freed"),
    "pool": ("cuMemAllocAsync", "64, None", "64 bytes of memory of a pool is not freed"),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak(run, kind):
    entry, arguments, message = LEAKS[kind]
    first, *others = arguments.split(", ")
    given = ", ".join([f"size({first})", *others])
    ran = run(f'{BEGIN}kept = out(u64, "{entry}", {given})  # the line\n')
    (found,) = ran.leaks
    assert (ran.status, found["kind"], found["severity"]) == (3, "leak", "advice")
    assert found["message"].startswith(message)
    assert found["source"]["file"].endswith("script.py")


def test_leaks_of_a_loop_are_one_finding(run):
    ran = run(f"{BEGIN}for _ in range(1000):\n    out(u64, 'cuMemAlloc_v2', size(16))\n")
    (found,) = ran.leaks
    assert found["message"].startswith("1,000 allocations, 16,000 bytes of device memory, are not freed")
    assert found["count"] == 1000


@pytest.mark.parametrize(
    "text",
    [
        "require(cuda.cuMemFree_v2(array(np.zeros(4))))",
        # The memcheck tool of NVIDIA does not report leaks of host memory.
        "out(u64, 'cuMemHostAlloc', size(64), 0)",
        "module, function = loaded()",
        "import atexit\naddress = array(np.zeros(4))\natexit.register(lambda: require(cuda.cuMemFree_v2(address)))",
    ],
)
def test_no_leak(run, text):
    ran = run(f"{BEGIN}{text}\n")
    assert not ran.leaks and not ran.findings
