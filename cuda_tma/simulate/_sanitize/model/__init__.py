"""The model of the sanitizer: clocks, shadow cells, barriers and asynchronous operations."""
