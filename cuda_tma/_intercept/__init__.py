"""Launches of other runtimes on the simulator, with a session, and a small adapter for each runtime.

An import of a runtime loads the adapter of the runtime, but only in a process that has a session.
"""
