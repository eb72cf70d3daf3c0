"""A launch of any runtime as a value that can be recorded, written to a file, and run again."""

from .capture import MemoryTooLarge, captured
from .file import LaunchesError, Recording, is_recording, read_recording, write_recording
from .recorded import Hardware, MemorySegment, RecordedLaunch
from .replay import compared_replay, replayed

__all__ = ["Hardware", "LaunchesError", "MemorySegment", "MemoryTooLarge", "RecordedLaunch", "Recording", "captured"]
__all__ += ["compared_replay", "is_recording", "read_recording", "replayed", "write_recording"]
