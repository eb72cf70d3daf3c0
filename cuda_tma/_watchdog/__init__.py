"""Deadlines of a kernel's waits on a GPU, and the memory that reports the missed ones."""
