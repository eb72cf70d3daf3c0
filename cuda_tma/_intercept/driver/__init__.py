"""The server of the driver library, which passes the requests of the library to the session of this process.

The folder ``libcuda/`` contains the driver library, which is in C and stores handles and memory. For modules, launches
and tensor maps, the library calls a function that :func:`attach` registers. The command puts the library in front of a
GPU's own driver by ``LD_LIBRARY_PATH``.
"""

from .library import attach
from .machine_code import keep

__all__ = ["attach", "keep"]
