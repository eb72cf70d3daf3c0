"""The address of an array argument; the functions are internal."""
