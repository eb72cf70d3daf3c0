"""Device memory for maps, from functions that are internal."""
