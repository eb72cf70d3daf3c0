"""A launch of any runtime as a value, which can be recorded, written to a file, and run again."""

from .capture import MemoryTooLarge, captured
from .file import LaunchesError, Recording, is_recording, read_recording, write_recording
from .recorded import MemorySegment, RecordedLaunch
from .replay import replayed

__all__ = ["LaunchesError", "MemorySegment", "MemoryTooLarge", "RecordedLaunch", "Recording", "captured"]
__all__ += ["is_recording", "read_recording", "replayed", "write_recording"]
