"""Stream handles, for the other extension modules."""

from ._stream cimport stream_handle
