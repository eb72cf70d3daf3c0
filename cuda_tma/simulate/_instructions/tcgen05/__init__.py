"""The instructions ``tcgen05``, which use tensor memory (PTX ISA, "TensorCore 5th Generation")."""

from . import allocation, commits, copies, moves, products  # Each of these modules adds its instructions to the table.

__all__ = ["allocation", "commits", "copies", "moves", "products"]
