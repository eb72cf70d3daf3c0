"""The conversion of a tensor and options to 128 bytes: arguments in driver order, encoders, descriptors, arrays."""
