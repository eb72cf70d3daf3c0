"""Launches: the parameters of a kernel, its configuration, the block of its arguments, and the driver's call."""
