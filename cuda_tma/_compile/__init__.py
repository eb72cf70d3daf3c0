"""Compilation: NVRTC, its headers, kernels on disk, errors in the user's words, types of a kernel's parameters."""
