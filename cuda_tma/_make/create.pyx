"""Making one descriptor, by every door."""

from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from .arguments cimport TensorArguments
from .encode cimport describe_for, encode
from .._compilable cimport Compilable
from .._read.context cimport enter_context, require_access
from .._cuda.driver cimport CUcontext
from .._read.export cimport Reading, read, source_of
from .._tensor_map cimport TensorMapDescriptor, new_descriptor
from .._read.vectorcall cimport PyVectorcall_NARGS, take_calls, vectorcallfunc

from .._keywords import NAMES, as_options
from ..options import TensorMapOptions

ctypedef object (*Calls)(PyObject*, PyObject* const*, size_t, PyObject*)


def create_tensor_map(
        tensor, options=None, *, box_dim=None, element_strides=None, data_type=None, interleave=None, swizzle=None,
        l2_promotion=None, oob_fill=None, allocation_class=None):
    """Make a descriptor of a tensor in the current CUDA context.

    Parameters
    ----------
    tensor : tensor or view
        A torch, CuPy, JAX or numba-cuda array, a cuda.core Buffer, or a ``StridedMemoryView`` (ours or cuda.core's),
        on the current device or in pinned or managed memory.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
        Their type picks the mode: tiled, im2col or im2col wide.
    box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class
        Fields of :class:`TensorMapOptions`, instead of `options`.

    Returns
    -------
    TensorMapDescriptor

    Raises
    ------
    TensorMapError
        If the tensor or the options cannot make a map, with every reason and its remedy.
    RuntimeError
        If there is no NVIDIA driver.
    """
    return _create(tensor, options_from(options, (
        box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class)))


def as_tensor_map(
        self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None, swizzle=None,
        l2_promotion=None, oob_fill=None, allocation_class=None):
    """Make a descriptor of this view: :func:`create_tensor_map` with cuda.core's order of arguments."""
    return _create(self, options_from(options, (
        box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class)))


# ---- most calls, of a tensor and options alone, without a look at the other keywords ----

cdef Calls _create_tensor_map = <Calls>take_calls(create_tensor_map, <vectorcallfunc>_create_from_two)
cdef Calls _as_tensor_map = <Calls>take_calls(as_tensor_map, <vectorcallfunc>_view_as_tensor_map)


cdef object _create_from_two(PyObject* function, PyObject* const* arguments, size_t count, PyObject* names):
    """create_tensor_map(tensor, options)"""
    if PyVectorcall_NARGS(count) == 2 and names == NULL and isinstance(<object>arguments[1], Compilable):
        return _create(<object>arguments[0], <object>arguments[1])
    return _create_tensor_map(function, arguments, count, names)


cdef object _view_as_tensor_map(PyObject* function, PyObject* const* arguments, size_t count, PyObject* names):
    """view.as_tensor_map(options=options)"""
    if (
        PyVectorcall_NARGS(count) == 1 and names != NULL and <tuple>names == ("options",)
        and isinstance(<object>arguments[1], Compilable)
    ):
        return _create(<object>arguments[0], <object>arguments[1])
    return _as_tensor_map(function, arguments, count, names)


# ---- which options ----

cdef enum:
    REMEMBERED = 256

cdef dict _remembered = {}  # keywords and their types: the options made of them


cpdef object options_from(object options, tuple keywords):
    """Our options as they are; from everything else, options. `keywords` are the fields of TensorMapOptions, in order.

    The same keywords give the same object again: checking them takes as long as ten descriptors.
    """
    if isinstance(options, Compilable) and _are_none(keywords):
        return options
    if options is not None or not _are_ints(keywords[0]) or not (keywords[1] is None or _are_ints(keywords[1])):
        return _options_of(options, keywords)
    # With types, because what is equal need not be as legal: 2.0 and 2.
    key = (keywords, *[type(keyword) for keyword in keywords[2:]])
    try:
        found = _remembered.get(key)
    except TypeError:  # a value is not hashable, which is said below
        return _options_of(options, keywords)
    if found is None:
        found = _options_of(options, keywords)
        if len(_remembered) >= REMEMBERED:
            _remembered.clear()
        _remembered[key] = found
    return found


cdef bint _are_none(tuple keywords) noexcept:
    for keyword in keywords:
        if keyword is not None:
            return False
    return True


cdef bint _are_ints(object values) noexcept:
    """Whether they are a key: 64.0 is equal to 64 and is refused; a tensor is equal to itself and may change."""
    if type(values) is not tuple:
        return False
    for value in <tuple>values:
        if not PyLong_CheckExact(value):
            return False
    return True


cdef object _options_of(object options, tuple keywords):
    return as_options(options=options, **dict(zip(NAMES[TensorMapOptions], keywords, strict=True)))


# ---- making ----

cdef TensorMapDescriptor _create(object tensor, Compilable options):
    cdef TensorMapDescriptor descriptor
    cdef TensorArguments arguments
    cdef CUcontext context = NULL
    cdef int device_id
    owner = describe_here(tensor, options, &context, &device_id, &arguments)
    descriptor = new_descriptor(context, device_id, &arguments, options, source_of(tensor, owner), owner)
    encode(descriptor.map(), options, &arguments, device_id)
    return descriptor


cdef object describe_here(
        object tensor, Compilable options, CUcontext* context, int* device_id, TensorArguments* out):
    """Describe a tensor for a map of this context, of the current one if it is NULL; return what owns the memory."""
    cdef Reading reading
    owner = read(tensor, &reading)
    describe_for(reading.tensor, options, out)
    if context[0] == NULL:
        enter_context(context, device_id)
    require_access(reading.tensor, device_id[0])
    return owner
