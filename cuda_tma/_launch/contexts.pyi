"""The contexts in which maps are valid; the functions are internal."""
