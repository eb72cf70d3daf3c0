"""The driver's launch call, from functions that are internal."""
