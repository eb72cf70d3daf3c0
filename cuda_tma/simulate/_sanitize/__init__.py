"""The sanitizer, which reports synchronization errors of a kernel that runs on the simulator."""

from .checks.racing_reads import Pair
from .report.collector import UndefinedRead
from .sanitizer import Sanitizer

__all__ = ["Pair", "Sanitizer", "UndefinedRead"]
