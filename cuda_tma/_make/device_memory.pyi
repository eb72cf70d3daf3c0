"""Device memory for maps: nothing here is for Python."""
