"""Tests of virtual memory, in which kernels and copies can access only mapped bytes, also across adjacent mappings."""

from __future__ import annotations

BEGIN = """
begin()
size = ctypes.c_size_t
GRANULE = 2 << 20
properties = struct.pack("<4i16x", 1, 0, 1, 0)
access = struct.pack("<3I", 1, 0, 3)
require(out(i32, "cuDeviceGetAttribute", 102, 0), 1)  # programs ask whether virtual memory is there
require(out(size, "cuMemGetAllocationGranularity", properties, 0), GRANULE)

def made(count=1):
    return u64(out(u64, "cuMemCreate", size(count * GRANULE), properties, u64(0)))

def reserved(count):
    return out(u64, "cuMemAddressReserve", size(count * GRANULE), size(0), u64(0), u64(0))

def mapped(at, handle, count=1):
    require(cuda.cuMemMap(u64(at), size(count * GRANULE), size(0), handle, u64(0)))
    require(cuda.cuMemSetAccess(u64(at), size(count * GRANULE), access, size(1)))
"""


def test_a_kernel_reads_and_writes_mapped_memory(run):
    ran = run(
        f"""{BEGIN}
start, handle = reserved(2), made(2)
mapped(start, handle, 2)
values = np.arange(32, dtype=np.uint32)
middle = u64(start + GRANULE - 64)
require(cuda.cuMemcpyHtoD_v2(middle, pointer(values.ctypes.data), size(128)))
_, function = loaded()
launch(function, 32, middle)
require(list(read(middle, values)), list(range(0, 160, 5)))
require(cuda.cuMemUnmap(u64(start), size(2 * GRANULE)))
require(cuda.cuMemRelease(handle))
require(cuda.cuMemAddressFree(u64(start), size(2 * GRANULE)))
"""
    )
    assert (ran.status, ran.kinds) == (0, []), ran.err


def test_neighbors_are_one_range(run):
    ran = run(
        f"""{BEGIN}
start = reserved(3)
for at in (2, 0, 1):
    mapped(start + at * GRANULE, made())
values = np.arange(3 * GRANULE // 4, dtype=np.uint32)
require(cuda.cuMemcpyHtoD_v2(u64(start), pointer(values.ctypes.data), size(values.nbytes)))
require(bool((read(u64(start), np.zeros_like(values)) == values).all()), True)
require(cuda.cuMemUnmap(u64(start + GRANULE), size(GRANULE)))
require(cuda.cuMemcpyHtoD_v2(u64(start), pointer(values.ctypes.data), size(GRANULE)))
require(cuda.cuMemcpyHtoD_v2(u64(start + 2 * GRANULE), pointer(values.ctypes.data), size(GRANULE)))
cuda.cuMemcpyHtoD_v2(u64(start), pointer(values.ctypes.data), size(values.nbytes))  # wrong
"""
    )
    (found,) = ran.findings
    assert (ran.status, found["kind"]) == (1, "out-of-bounds"), ran.err


def test_physical_memory_is_mapped_twice_and_moved(run):
    ran = run(
        f"""{BEGIN}
start, handle = reserved(2), made()
mapped(start, handle)
mapped(start + GRANULE, handle)
require(cuda.cuMemsetD32_v2(u64(start), 7, size(4)))
require(list(read(u64(start + GRANULE), np.zeros(4, np.uint32))), [7] * 4)
require(cuda.cuMemUnmap(u64(start), size(2 * GRANULE)))
other = reserved(1)
mapped(other, handle)
require(list(read(u64(other), np.zeros(4, np.uint32))), [7] * 4)
retained = u64(out(u64, "cuMemRetainAllocationHandle", u64(other + 100)))
require(retained.value, handle.value)
"""
    )
    assert not ran.findings, ran.err


def test_what_is_refused(run):
    ran = run(
        f"""{BEGIN}
start, handle = reserved(1), made()
require(cuda.cuMemMap(u64(start + 4096), size(GRANULE), size(0), handle, u64(0)), 1)
require(cuda.cuMemMap(u64(start), size(2 * GRANULE), size(0), handle, u64(0)), 1)
require(cuda.cuMemSetAccess(u64(start), size(GRANULE), access, size(1)), 1)
require(cuda.cuMemUnmap(u64(start), size(GRANULE)), 1)
mapped(start, handle)
require(cuda.cuMemMap(u64(start), size(GRANULE), size(0), handle, u64(0)), 1)
require(cuda.cuMemAddressFree(u64(start), size(GRANULE)), 1)
require(cuda.cuMemCreate(ctypes.byref(handle), size(1 << 45), properties, u64(0)), 2)
for entry in ("cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemCreate", "cuMemAddressReserve", "cuMemAddressFree"):
    require(getattr(cuda, entry)(None, size(0), None, None, None), 1)
"""
    )
    assert not ran.findings, ran.err
