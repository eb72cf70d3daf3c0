"""The functions that return the address of an array argument, for a GPU or for the simulator."""

from .._read.context cimport locate
from .._read.dlpack cimport DLTensor, address_of, kDLCUDA, shape_of
from .._read.export cimport Reading, layout_of, read

from ..rules import _refusals


cdef uint64_t address_of_array(object array) except? 0:
    """Return the address of the first element. Refuse memory that no kernel can reach."""
    cdef Reading reading
    cdef DLTensor* tensor
    owner = read(array, &reading)  # The owner keeps the memory alive.
    tensor = layout_of(owner, &reading)
    if tensor.device_type != kDLCUDA and tensor.device_type != 0:  # The device type of a Buffer or CUDA array is 0.
        locate(tensor)
    if address_of(tensor) == 0 and 0 not in shape_of(tensor):
        raise _refusals.no_memory()
    return address_of(tensor)


cdef uint64_t reached(object reach, object array) except? 0:
    """Return the address on the simulator.

    Refuse other objects with the message of a launch on a GPU.
    """
    cdef Reading reading
    if hasattr(array, "untyped_storage"):  # The values of some torch tensors differ from the values in memory.
        read(array, &reading)
    try:
        return reach(array)
    except ValueError:
        raise
    except Exception:
        read(array, &reading)
        raise
