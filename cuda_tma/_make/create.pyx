"""The creation of one descriptor, which every entry point uses."""

from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from libc.string cimport memcmp  # no-cython-lint: doors.pxi

from .arguments cimport TensorArguments
from .encode cimport describe_for, encode
from .._compilable cimport Compilable
from .._read.context cimport enter_context, require_access
from .._cuda.driver cimport CUcontext
from .._cuda.free_threading cimport FREE_THREADED
from .._read.dlpack cimport DLTensor
from .._read.export cimport Reading, layout_of, read, source_of
from .._read.property cimport Property, own_property, read_property  # no-cython-lint: doors.pxi
from .._tensor_map cimport TensorMapDescriptor, new_descriptor

from enum import Enum
from functools import lru_cache

from .._keywords import NAMES, options_from
from .._options import TensorMapOptions
from ..rules import _refusals

cdef enum:
    ANY_DEVICE = -1

cdef extern from "Python.h":
    # The pointer is borrowed, because a reference would be taken and released at each access.
    PyObject** PySequence_Fast_ITEMS(PyObject*)


include "doors.pxi"  # The file doors.pxi defines create_tensor_map, as_tensor_map, OnDevice and _options.


# The slot belongs to the package's Device. A look-up by name would take a tenth of the time of a map.
cdef Property _ordinal


def register_ordinal(device_type):
    """Register the package's class Device, which imports this module."""
    global _ordinal
    _ordinal = own_property(device_type, "_ordinal")


# ---- the choice of options ----

# _last_keywords contains the keywords of the last call. No call passes the initial objects.
cdef tuple _last_keywords = (object(),) * KEYWORDS
cdef Compilable _last_options = None  # _last_options was made from the keywords of the last call.


cpdef Compilable options_by_keywords(object options, tuple keywords):
    """Return options from the fields of TensorMapOptions, in order.

    The same keywords give the same object.
    """
    global _last_keywords, _last_options
    if options is not None or not _are_a_key(keywords):
        return _new_options(options, *keywords)
    try:
        made = _kept_options(None, *keywords)
    except TypeError:  # A value is wrong or cannot be hashed, and _new_options reports such a value.
        return _new_options(None, *keywords)
    if not FREE_THREADED:
        _last_keywords, _last_options = keywords, made
    return made


cdef bint _are_a_key(tuple keywords) except -1:
    """Return whether the keywords always have the same meaning, so that equal keywords give equal options."""
    return (_are_ints(keywords[0]) and (keywords[1] is None or _are_ints(keywords[1]))
            and _stay_as_they_are(keywords[2:]))


cdef bint _are_ints(object values) noexcept:
    """Return whether all values are ints.

    The float 64.0 equals 64 but is refused. A tensor equals itself but may change.
    """
    if type(values) is not tuple:
        return False
    for value in <tuple>values:
        if not PyLong_CheckExact(value):
            return False
    return True


cdef bint _stay_as_they_are(tuple values) except -1:
    """Return whether all values are constant.

    An object that is not constant may change its number, or compare equal to every string.
    """
    for value in values:
        if value is None or type(value) is int or type(value) is str or isinstance(value, Enum):
            continue
        if isinstance(value, str) or hasattr(type(value), "__index__"):
            return False
    return True


def _new_options(options, *keywords):
    return options_from(options=options, **dict(zip(NAMES[TensorMapOptions], keywords, strict=True)))


# The cache distinguishes types, because equal values may differ in legality, such as 2.0 and 2.
_kept_options = lru_cache(256, typed=True)(_new_options)


# ---- making ----

cdef TensorMapDescriptor _create(object tensor, Compilable options, int own_device_id):
    """Return a map of the current context.

    The device of the context must be `own_device_id`, unless that is ANY_DEVICE.

    The function writes all parts of the map in place.
    """
    cdef TensorMapDescriptor descriptor = new_descriptor()
    cdef Reading reading
    if own_device_id != ANY_DEVICE:
        enter_context(&descriptor._context, &descriptor._device_id)
        if descriptor._device_id != own_device_id:
            raise _refusals.not_current(own_device_id, descriptor._device_id)
    # The variable owns the reference. For an attribute, a reference would be taken and released at each access.
    owner = read(tensor, &reading)
    descriptor._options = options
    descriptor._owner = owner
    descriptor._tensor = source_of(tensor, owner)
    describe_here(
        layout_of(owner, &reading), options, &descriptor._context, &descriptor._device_id, &descriptor._arguments)
    encode(descriptor.map(), options, &descriptor._arguments, descriptor._device_id)
    return descriptor


cdef int describe_here(
        DLTensor* tensor, Compilable options, CUcontext* context, int* device_id, TensorArguments* out) except -1:
    """Describe a tensor that was read, for a map of `context`, or of the current context if `context` is NULL."""
    describe_for(tensor, options, out)
    if context[0] == NULL:
        enter_context(context, device_id)
    return require_access(tensor, device_id[0])
