"""``tcgen05``: tensor memory, and the products of matrices that lie there. PTX ISA, "TensorCore 5th Generation"."""

from . import allocation, commits, copies, moves, products  # each enters its rows into the table

__all__ = ["allocation", "commits", "copies", "moves", "products"]
