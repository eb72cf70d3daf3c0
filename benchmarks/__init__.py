"""The benchmarks of the package.

The command ``python -m benchmarks`` runs every suite that this machine supports.

A suite is a module of this package with the functions of the section below.

Functions of a suite
--------------------
- ``unavailable()``: the reason why the suite cannot run here, or an empty string;
- ``machine()``: a description of the machine, in one line;
- ``tables(repeats, runs)``: the measurements, as :class:`benchmarks.comparison.Comparison` or, for kernels,
  :class:`benchmarks.kernels.figures.Figures` objects; `repeats` is the number of measurements of short calls, and
  `runs` the number of processes. A suite may ignore both numbers. A suite with a picture also has
  ``draw(tables, path)``, which writes an SVG.
"""
