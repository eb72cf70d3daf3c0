"""The limit on shared memory: nothing here is for Python."""
