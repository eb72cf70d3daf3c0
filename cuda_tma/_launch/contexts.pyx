"""The refusal of maps that belong to another context than the launch.

Maps of another context are rare, so this code is not on the hot path.
"""

from cpython.object cimport PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uintptr_t

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, driver
from .._read.context cimport device_of, share_memory
from .._read.stream cimport KnownStream
from .._tensor_map cimport TensorMapDescriptor
from .signature cimport Signature

from ..rules import _launches, _refusals


cdef int require_contexts(tuple args, KnownStream stream) except -1:
    """Refuse a descriptor of another context than the stream's.

    The context of a default stream is the current context.
    """
    cdef CUcontext context = _context_of(stream)
    cdef Py_ssize_t index
    if context == NULL:
        return 0  # The launch reports the fault of the stream.
    for index in range(PyTuple_GET_SIZE(args)):
        value = <object>PyTuple_GET_ITEM(args, index)
        if Py_TYPE(value) == <PyTypeObject*>TensorMapDescriptor and not _is_valid_on(
                stream, context, (<TensorMapDescriptor>value)._context):
            raise _foreign(index, <TensorMapDescriptor>value, context)
    return 0


cdef int require_contexts_in(tuple args, CUcontext context) except -1:
    """Refuse maps of another context than the given one, as require_contexts() does.

    The node of a graph has its own context, which may differ from the stream's.
    """
    cdef CUcontext own
    for index, value in enumerate(args):
        if Py_TYPE(value) == <PyTypeObject*>TensorMapDescriptor:
            own = (<TensorMapDescriptor>value)._context
            if own != context and not share_memory(own, context):
                raise _foreign(index, <TensorMapDescriptor>value, context)
    return 0


cdef int require_context_of_tensors(tuple args, Signature signature, CUcontext made, KnownStream stream) except -1:
    """Refuse tensors whose maps were made in another context than the context of the stream."""
    cdef CUcontext context = _context_of(stream)
    cdef Py_ssize_t index
    if context == NULL or _is_valid_on(stream, context, made):
        return 0
    for index in range(signature.count):
        if signature.parameters[index].typed != NULL and not isinstance(args[index], TensorMapDescriptor):
            break
    raise _launches.foreign_tensor(
        index, (device_of(made), <uintptr_t>made), (device_of(context), <uintptr_t>context))


cdef CUcontext _context_of(KnownStream stream) noexcept:
    """Return the context of a stream, or the current context for a default stream.

    Return NULL if the driver does not return a context.
    """
    cdef CUcontext context = stream.context
    if context == NULL and driver.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS:
        return NULL
    return context


cdef bint _is_valid_on(KnownStream stream, CUcontext context, CUcontext own) noexcept:
    """Return whether a map of one context is valid in the stream's. Keep a context that shares its memory."""
    if own == context or own == stream.sharing:
        return True
    if not share_memory(own, context):
        return False
    if stream.context != NULL:  # A default stream belongs to the current context, which may change.
        stream.sharing = own
    return True


cdef object _foreign(Py_ssize_t index, TensorMapDescriptor descriptor, CUcontext context):
    return _refusals.foreign_map(
        index, (descriptor._device_id, <uintptr_t>descriptor._context), (device_of(context), <uintptr_t>context))
