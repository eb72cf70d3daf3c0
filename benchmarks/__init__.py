"""Benchmarks. ``python -m benchmarks`` runs every suite that this machine supports.

A suite is a module of this package with these functions:

- ``unavailable()``: the reason why it cannot run here, or an empty text;
- ``machine()``: a description of the machine, in one line;
- ``tables(repeats, runs)``: the measurements, as :class:`benchmarks.comparison.Comparison` or, for kernels,
  :class:`benchmarks.kernels.figures.Figures` objects; `repeats` of short calls and `runs` of processes, of which a
  suite uses those that apply;

and, if there is a picture, ``draw(tables, path)`` (an SVG).
"""
