"""The parts of CUDA that the package uses: the driver's entry points, and parts of cuda.core."""
