"""Kernels, run from their PTX, without a GPU."""
