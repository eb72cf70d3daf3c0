"""The parts of CUDA that the package uses, which are the driver's entry points and cuda.core."""
