"""The functions that convert kernel arguments to the driver's form, which are internal."""
