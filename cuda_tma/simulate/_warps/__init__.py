"""A program and the warps that run it: lanes, registers, operands, what an observer may see, and the order of turns."""
