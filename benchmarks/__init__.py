"""Benchmarks. ``python -m benchmarks`` runs every suite that can run on this machine.

A suite is a module of this package with these functions:

- ``unavailable()``: why it cannot run here, in words; empty if it can;
- ``tables(repeats, runs)``: what was measured, as :class:`benchmarks.timing.Table`,
  :class:`benchmarks.comparison.Comparison` or :class:`benchmarks.kernels.figures.Figures` objects; `repeats` of short
  calls, `runs` of processes, of which a suite heeds what it has;

and, if it has more to say, ``machine()`` (what it ran on, in a line) and ``draw(tables, path)`` (an SVG).
"""
