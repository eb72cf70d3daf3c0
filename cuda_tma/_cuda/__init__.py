"""What the package takes of CUDA itself: the driver's entry points."""
