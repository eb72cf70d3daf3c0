"""The contexts in which maps are valid, from functions that are internal."""
