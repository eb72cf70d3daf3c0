"""What is wrong in a kernel's synchronisation, found while it runs on the simulator."""

from .sanitizer import Sanitizer

__all__ = ["Sanitizer"]
