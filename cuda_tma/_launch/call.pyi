"""The driver's launch; the functions are internal."""
