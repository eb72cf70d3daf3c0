"""The memory that a launch accesses: state spaces, and arrays of the host and of the GPU."""
