"""The launches of other runtimes on the simulator: a session, and a small adapter for each runtime.

An import of a runtime loads its adapter, but only in a process that has a session.
"""
