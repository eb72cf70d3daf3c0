"""The address of an array that is an argument: nothing here is for Python."""
