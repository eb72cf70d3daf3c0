"""The command line and the demo, which give access to the package without Python code."""
