"""Device memory for maps; the functions are internal."""
