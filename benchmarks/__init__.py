"""Benchmarks. ``python -m benchmarks`` runs every suite that can run on this machine.

A suite is a module of this package with these functions:

- ``unavailable()``: why it cannot run here, in words; empty if it can;
- ``machine()``: what it runs on, in a line;
- ``tables(repeats, runs)``: what was measured, as :class:`benchmarks.comparison.Comparison` or, of kernels,
  :class:`benchmarks.kernels.figures.Figures` objects; `repeats` of short calls, `runs` of processes, of which a suite
  heeds what it has;

and, if there is a picture, ``draw(tables, path)`` (an SVG).
"""
