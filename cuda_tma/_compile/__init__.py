"""The compilation of kernels with NVRTC, their headers, their copies on disk, and the types of their parameters."""
