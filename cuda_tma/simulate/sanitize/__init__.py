"""What is wrong in a kernel's synchronisation, found while it runs on the simulator."""

from .racing_reads import Pair
from .sanitizer import Sanitizer

__all__ = ["Pair", "Sanitizer"]
