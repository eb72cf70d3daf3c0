"""The memory that a launch reaches: state spaces, arrays of the host and of the GPU, and accesses of many lanes."""
