"""Benchmarks. ``python -m benchmarks`` runs every suite that can run on this machine.

A suite is a module of this package with two functions:

- ``unavailable()``: why it cannot run here, in words; empty if it can;
- ``tables(repeats)``: the measured :class:`benchmarks.timing.Table` objects.
"""
