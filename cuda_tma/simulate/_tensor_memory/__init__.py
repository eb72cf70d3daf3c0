"""Tensor memory of compute capability 10.0: its cells, its allocator, and what ``tcgen05`` instructions do with it."""
