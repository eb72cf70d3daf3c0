"""Packing kernel arguments: nothing here is for Python."""
