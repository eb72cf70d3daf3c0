"""The instructions ``tcgen05``, which use tensor memory (PTX ISA, "TensorCore 5th Generation")."""

# Each imported module adds its instructions to the table of instructions.
from . import allocation, commits, copies, mma, moves

__all__ = ["allocation", "commits", "copies", "mma", "moves"]
