"""From a tensor and options to 128 bytes: arguments in driver order, the driver's encoders, descriptors, arrays."""
