"""Launches of other runtimes, run on the simulator: a session, and one small adapter for each runtime.

An adapter is loaded when its runtime is imported, and only in a process that has a session.
"""
