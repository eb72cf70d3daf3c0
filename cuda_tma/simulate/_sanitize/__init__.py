"""What is wrong in a kernel's synchronisation, found while it runs on the simulator."""

from .ledger import UndefinedRead
from .racing_reads import Pair
from .sanitizer import Sanitizer

__all__ = ["Pair", "Sanitizer", "UndefinedRead"]
