"""The command line, and the demo: what the package does, without writing Python."""
