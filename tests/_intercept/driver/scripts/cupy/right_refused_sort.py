"""A program that sorts by CuPy, whose kernels for sorting exist only as machine code.

The error of the sort names the function, and other kernels run."""

import cupy

values = cupy.arange(8)[::-1] * 2
for function in (cupy.sort, cupy.argsort):
    try:
        function(values)
    except RuntimeError as error:
        assert f"cupy.{function.__name__} needs a GPU" in str(error), error
        assert f"use numpy.{function.__name__}" in str(error), error
    else:
        raise AssertionError(function)
assert values.get().tolist() == [14, 12, 10, 8, 6, 4, 2, 0]
