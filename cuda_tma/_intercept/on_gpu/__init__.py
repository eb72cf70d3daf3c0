"""Launches that run on a GPU: a library before the driver captures them, and a process judges them meanwhile."""
