"""The model that the sanitizer compares accesses by: clocks, shadows, barriers and asynchronous operations."""
