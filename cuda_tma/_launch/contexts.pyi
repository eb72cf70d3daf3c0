"""Where maps are valid: nothing here is for Python."""
