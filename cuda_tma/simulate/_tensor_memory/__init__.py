"""The tensor memory of compute capability 10.0: its cells, its allocator, and the effects of ``tcgen05``."""
