"""Tests of a program's wrong uses of memory. Each wrong use is an error at its line, and a right use has no finding."""

from __future__ import annotations

import pytest

BEGIN = "begin()\nsize = ctypes.c_size_t\nvalues = np.arange(32, dtype=np.uint32)\naddress = array(values)\n"
WRONG = {
    "double free": (
        "require(cuda.cuMemFree_v2(address))\ncuda.cuMemFree_v2(address)  # wrong\n",
        "fault",
        "double free of 0x200000000000, byte 0 of memory, 128 bytes, which the program has freed",
    ),
    "invalid free": (
        "cuda.cuMemFree_v2(u64(address.value + 16))  # wrong\n",
        "fault",
        "invalid free of 0x200000000010, byte 16 of memory, 128 bytes, 112 bytes before its end: no allocation",
    ),
    "a free of the wrong kind": ("cuda.cuMemFreeHost(pointer(address.value))  # wrong\n", "fault", "invalid free"),
    "a copy beyond the end": (
        "cuda.cuMemcpyDtoH_v2(pointer(values.ctypes.data), u64(address.value + 64), size(128))  # wrong\n",
        "out-of-bounds",
        "reaches 128 bytes at 0x200000000040, byte 64 of memory, 128 bytes, 64 bytes before its end",
    ),
    "a fill behind the end": (
        "cuda.cuMemsetD32_v2(u64(address.value + 256), 1, size(4))  # wrong\n",
        "out-of-bounds",
        "reaches 16 bytes at 0x200000000100, 128 bytes after the end of memory, 128 bytes",
    ),
    "use after free": (
        "require(cuda.cuMemFree_v2(address))\n"
        "cuda.cuMemcpyDtoH_v2(pointer(values.ctypes.data), address, size(128))  # wrong\n",
        "out-of-bounds",
        "use after free: a copy or fill by the program reaches 128 bytes at 0x200000000000",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_has_its_line(run, tmp_path, name):
    body, kind, words = WRONG[name]
    ran = run(BEGIN + body)
    (launch,) = ran.launches
    (found,) = launch["findings"]
    assert (ran.status, launch["kernel"], launch["grid"]) == (1, "the program", None)
    assert (found["kind"], found["severity"]) == (kind, "error") and words in found["message"]
    assert "Remedy: " in found["message"]
    lines = (tmp_path / "script.py").read_text().splitlines()
    assert lines[found["source"]["line"] - 1].endswith("# wrong")
    assert "# wrong" in ran.out


def test_right_uses_are_no_errors(run):
    ran = run(
        BEGIN
        + """
_, function = loaded()
launch(function, 32, address)
require(cuda.cuMemcpyDtoH_v2(pointer(values.ctypes.data), u64(address.value + 64), size(64)))
require(cuda.cuMemsetD32_v2(u64(address.value + 64), 1, size(16)))
require(cuda.cuMemcpyDtoH_v2(pointer(values.ctypes.data), u64(address.value + 128), size(0)))
require(cuda.cuMemFree_v2(u64(0)))
require(cuda.cuMemFree_v2(address))
"""
    )
    assert (ran.status, ran.kinds, len(ran.launches)) == (0, [], 1)


DESTROYED = """
require(cuda.cuInit(0))
context = pointer(out(pointer, "cuCtxCreate_v2", 0, 0))
_, function = loaded()
address = u64(out(u64, "cuMemAlloc_v2", ctypes.c_size_t(128)))
"""


def test_a_launch_in_a_destroyed_context(run, tmp_path):
    ran = run(f"{DESTROYED}require(cuda.cuCtxDestroy_v2(context))\nlaunch(function, 32, address, 709)  # wrong\n")
    (found,) = ran.findings
    assert (ran.status, found["kind"], found["severity"]) == (1, "fault", "error")
    assert found["message"].startswith("a launch in a context that the program has destroyed")


def test_a_launch_before_its_context_is_destroyed(run):
    ran = run(f"{DESTROYED}launch(function, 32, address)\nrequire(cuda.cuCtxDestroy_v2(context))\n")
    assert (ran.status, ran.kinds) == (0, [])
