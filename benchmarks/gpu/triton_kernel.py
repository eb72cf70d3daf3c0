"""Triton's empty kernels; it wants them in a file. Imported only where Triton is measured."""

import triton


@triton.jit
def with_descriptor(descriptor, out):
    pass


@triton.jit
def with_pointer(out):
    pass


@triton.jit
def with_descriptors(a, b, c, count):
    pass
