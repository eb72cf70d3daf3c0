"""Launches of kernels: the parameters, the configuration, the block of arguments, and the call of the driver."""
