"""The address of an array argument, from functions that are internal."""
