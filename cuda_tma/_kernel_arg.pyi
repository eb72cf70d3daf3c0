"""Kernel arguments as the driver expects them; the functions are internal."""
