"""The instructions ``tcgen05``, which use tensor memory (PTX ISA, "TensorCore 5th Generation")."""

# The import of each module adds the instructions of the module to the table of instructions.
from . import allocation, commits, copies, mma, moves

__all__ = ["allocation", "commits", "copies", "mma", "moves"]
