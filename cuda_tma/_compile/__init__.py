"""Compilation with NVRTC: headers, kernels on disk, errors in the user's terms, and types of a kernel's parameters."""
