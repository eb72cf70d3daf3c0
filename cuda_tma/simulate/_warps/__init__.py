"""A program and the warps that run it, with lanes, registers, operands, events for observers, and the scheduler."""
