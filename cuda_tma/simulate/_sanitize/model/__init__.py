"""The model by which the sanitizer compares accesses: clocks, shadows, barriers and asynchronous operations."""
