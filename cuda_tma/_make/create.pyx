"""The creation of one descriptor, for every entry point."""

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
    PyObject** PySequence_Fast_ITEMS(PyObject*)  # borrowed: a reference would be taken and released at each access


include "doors.pxi"  # create_tensor_map, as_tensor_map, OnDevice, _options


cdef Property _ordinal  # of our Device, whose slot it is: a look-up by name takes a tenth of the time of a map


def register_ordinal(device_type):
    """Register our Device, which imports this module."""
    global _ordinal
    _ordinal = own_property(device_type, "_ordinal")


# ---- the choice of options ----

cdef tuple _last_keywords = (object(),) * KEYWORDS  # of the last call; no call passes these
cdef Compilable _last_options = None  # the options that were made of them


cpdef Compilable options_by_keywords(object options, tuple keywords):
    """Return options from the fields of TensorMapOptions, in order; the same object for the same keywords."""
    global _last_keywords, _last_options
    if options is not None or not _are_a_key(keywords):
        return _new_options(options, *keywords)
    try:
        made = _kept_options(None, *keywords)
    except TypeError:  # a value is not hashable, or is wrong, which _new_options reports
        return _new_options(None, *keywords)
    if not FREE_THREADED:
        _last_keywords, _last_options = keywords, made
    return made


cdef bint _are_a_key(tuple keywords) except -1:
    """Return whether the keywords, or equal ones, always have the same meaning."""
    return (_are_ints(keywords[0]) and (keywords[1] is None or _are_ints(keywords[1]))
            and _stay_as_they_are(keywords[2:]))


cdef bint _are_ints(object values) noexcept:
    """Return whether all are ints. 64.0 is equal to 64 but refused; a tensor is equal to itself but may change."""
    if type(values) is not tuple:
        return False
    for value in <tuple>values:
        if not PyLong_CheckExact(value):
            return False
    return True


cdef bint _stay_as_they_are(tuple values) except -1:
    """Return whether values are constant. An object may change its number, or compare equal to every string."""
    for value in values:
        if value is None or type(value) is int or type(value) is str or isinstance(value, Enum):
            continue
        if isinstance(value, str) or hasattr(type(value), "__index__"):
            return False
    return True


def _new_options(options, *keywords):
    return options_from(options=options, **dict(zip(NAMES[TensorMapOptions], keywords, strict=True)))


_kept_options = lru_cache(256, typed=True)(_new_options)  # typed: equal values may differ in legality: 2.0 and 2


# ---- making ----

cdef TensorMapDescriptor _create(object tensor, Compilable options, int own_device_id):
    """Return a map of the current context, whose device must be `own_device_id`, unless that is ANY_DEVICE.

    All parts are written in place.
    """
    cdef TensorMapDescriptor descriptor = new_descriptor()
    cdef Reading reading
    if own_device_id != ANY_DEVICE:
        enter_context(&descriptor._context, &descriptor._device_id)
        if descriptor._device_id != own_device_id:
            raise _refusals.not_current(own_device_id, descriptor._device_id)
    owner = read(tensor, &reading)  # an owned reference: an attribute's would be taken and released at each access
    descriptor._options = options
    descriptor._owner = owner
    descriptor._tensor = source_of(tensor, owner)
    describe_here(
        layout_of(owner, &reading), options, &descriptor._context, &descriptor._device_id, &descriptor._arguments)
    encode(descriptor.map(), options, &descriptor._arguments, descriptor._device_id)
    return descriptor


cdef int describe_here(
        DLTensor* tensor, Compilable options, CUcontext* context, int* device_id, TensorArguments* out) except -1:
    """Describe a tensor that was read for a map of this context, or of the current one if it is NULL."""
    describe_for(tensor, options, out)
    if context[0] == NULL:
        enter_context(context, device_id)
    return require_access(tensor, device_id[0])
