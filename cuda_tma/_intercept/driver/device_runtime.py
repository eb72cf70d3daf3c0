"""The PTX of the CUDA device runtime's functions for grid-wide barriers.

The library ``libcudadevrt.a`` contains the functions as machine code. numba-cuda calls them for
``cuda.cg.this_grid().sync()``.
"""

from __future__ import annotations

from .linking import joined

__all__ = ["with_device_runtime"]

# The driver allocates 8 bytes for a cooperative launch. The second 4 bytes contain the barrier of the grid, which
# counts arrivals below its highest bit (cooperative_groups/details/helpers.h).
_GRID_BARRIER = """
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %low, %high;
    .reg .b64 %all;
    mov.u32 %low, %envreg2;
    mov.u32 %high, %envreg1;
    mov.b64 %all, {%low, %high};
    st.param.b64 [handle], %all;
    ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p;
    .reg .b32 %x, %y, %z, %count, %old, %now;
    .reg .b64 %at;
    ld.param.u64 %at, [handle];
    setp.ne.u64 %p, %at, 0;
    @%p bra cooperative;
    trap;
cooperative:
    barrier.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %p, %x, 0;
    @%p bra together;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %count, %x, %y;
    mul.lo.u32 %count, %count, %z;
    sub.u32 %count, 0x80000001, %count;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %p, %x, 0;
    selp.b32 %count, 1, %count, %p;
    atom.add.release.gpu.u32 %old, [%at+4], %count;
wait:
    ld.acquire.gpu.u32 %now, [%at+4];
    xor.b32 %now, %now, %old;
    setp.ge.s32 %p, %now, 0;
    @%p bra wait;
together:
    barrier.sync 0;
    mov.u32 %x, 0;
    st.param.b32 [result], %x;
    ret;
}
"""


def with_device_runtime(ptx: str) -> str:
    """Return a PTX text together with the functions of the device runtime that the text declares and does not
    define."""
    names = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")
    is_needed = any(name in ptx for name in names) and ".extern" in ptx
    return joined([ptx, _GRID_BARRIER]) if is_needed else ptx
