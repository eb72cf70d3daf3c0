"""A launch of any runtime as a value: recorded, written to a file, and run again."""

from .recorded import MemorySegment, RecordedLaunch

__all__ = ["MemorySegment", "RecordedLaunch"]
