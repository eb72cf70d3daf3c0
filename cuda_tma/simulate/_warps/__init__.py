"""A program and the warps that run it: lanes, registers, operands, events for observers, and the scheduler."""
