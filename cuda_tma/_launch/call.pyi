"""The driver's launch: nothing here is for Python."""
