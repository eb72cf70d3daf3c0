"""The command line, and the demo: the package's functions without writing Python."""
