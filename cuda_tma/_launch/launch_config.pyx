"""The driver's structure for a LaunchConfig, which a kernel keeps until a field of the LaunchConfig changes."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy

from .._cuda.driver cimport LaunchAttribute, LaunchConfigC
from .._cuda.free_threading cimport FREE_THREADED
from .signature cimport Signature
from .._read.property cimport named_property, own_property, read_property

from collections.abc import Mapping

from cuda.core import LaunchConfig

from ..rules import _configurations, _launches

cdef enum:  # ATTRIBUTE_COOPERATIVE and the constants after it are values of CUlaunchAttributeID.
    ATTRIBUTE_COOPERATIVE = 2
    ATTRIBUTE_CLUSTER_DIMENSION = 4
    ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6

cdef tuple FIELD_NAMES = ("grid", "block", "cluster", "shmem_size", "is_cooperative",
                          "programmatic_stream_serialization")  # cuda.core has the last field since version 1.2.

cdef PyTypeObject* LAUNCH_CONFIG = <PyTypeObject*>LaunchConfig
cdef tuple OWN_FIELDS = tuple([own_property(LaunchConfig, name) for name in FIELD_NAMES])
# A subclass of LaunchConfig may override fields.
cdef tuple NAMED_FIELDS = tuple([named_property(name) for name in FIELD_NAMES])


@cython.final
cdef class Configuration:
    pass


cdef Configuration configuration_of(object config, Signature signature):
    """Return the configuration for the driver, or the kernel's last configuration if no field differs."""
    cdef PyObject* shown = _shown_of(signature, config)
    if shown != NULL:
        return <Configuration>shown
    return _by_fields(signature, config)


cdef Configuration _by_fields(Signature signature, object config):
    cdef Configuration last
    cdef tuple fields = OWN_FIELDS
    with cython.critical_section(signature):
        last = <Configuration>signature.configuration
    if Py_TYPE(config) != LAUNCH_CONFIG:
        fields = NAMED_FIELDS
        if not isinstance(config, LaunchConfig):
            if not isinstance(config, Mapping):
                raise _configurations.no_configuration(config)
            config = LaunchConfig(**_configurations.fields_of(config))
    if last is None or _differs(last, config, fields):
        last = _read(config, fields, signature)
        with cython.critical_section(signature):
            signature.configuration = last
    elif fields is OWN_FIELDS:
        _show(last, config)
    return last


# ---- whether a LaunchConfig is unchanged ----

cdef inline const unsigned char* memory_of(object config) noexcept:
    """Return the memory of an instance after the reference count and the type, with which all objects begin."""
    return <const unsigned char*><PyObject*>config + sizeof(PyObject)


cdef inline PyObject* _shown_of(Signature signature, object config) noexcept:
    """Return the last launch's configuration if the LaunchConfig's memory is unchanged.

    The result is borrowed (recent_of()).
    """
    cdef PyObject* last = <PyObject*>signature.configuration
    if FREE_THREADED or last == <PyObject*>None or Py_TYPE(config) != LAUNCH_CONFIG:
        return NULL
    if (<Configuration>last).is_shown and not memcmp((<Configuration>last).shown, memory_of(config), SHOWN_BYTES):
        return last
    return NULL


cdef int _show(Configuration configuration, object config) except -1:
    """Store the memory of the LaunchConfig with these fields.

    While the memory is unchanged, the fields are unchanged: `configuration` holds their tuples, so no other object can
    have their addresses. Reading six fields takes a quarter of a launch's instructions. The driver has displaced their
    code and data from the caches. Reading takes 60 ns if a substitute for the driver displaces 128 KB.
    """
    if SHOWN_BYTES == 0:
        return 0
    configuration.is_shown = not _differs(configuration, config, OWN_FIELDS)
    memcpy(configuration.shown, memory_of(config), SHOWN_BYTES)
    return 0


def shown_bytes(config_type):
    """Return how many bytes of a LaunchConfig are compared.

    The result is 0 if its memory does not show each change of a field.

    The memory of an extension type whose fields are C members (cuda.core 1.2) shows each change. If this cannot be
    tested, the function returns 0. Without a GIL, the memory could be read during a write.
    """
    cdef PyTypeObject* kind = <PyTypeObject*>config_type
    cdef Py_ssize_t size = kind.tp_basicsize - <Py_ssize_t>sizeof(PyObject)
    cdef unsigned char before[MOST_SHOWN_BYTES]
    if FREE_THREADED or kind.tp_itemsize or not 0 < size <= MOST_SHOWN_BYTES:
        return 0
    try:
        config = config_type(grid=1, block=1)
        for name, value in zip(FIELD_NAMES, ((2, 1, 1), (2, 1, 1), (2, 1, 1), 1, True, True), strict=True):
            if hasattr(config, name):
                memcpy(before, memory_of(config), size)
                setattr(config, name, value)
                if not memcmp(before, memory_of(config), size):
                    return 0
    except Exception:  # Another version of cuda.core may raise other errors.
        return 0
    return size


cdef Py_ssize_t SHOWN_BYTES = shown_bytes(LaunchConfig)


cdef bint _differs(Configuration last, object config, tuple fields) except -1:
    """Return whether a field of the configuration has changed.

    Tuples and bools are compared by identity. This is enough, because a new value is another tuple, or an equal one.
    Each reading of the size returns a new int.
    """
    cdef int index
    for index in range(FIELD_COUNT):
        value = read_property(PyTuple_GET_ITEM(fields, index), config)
        if value is not <object>PyTuple_GET_ITEM(last.fields, index) and (
            index != SHMEM_SIZE or value != last.fields[SHMEM_SIZE]
        ):
            return True
    return False


cdef Configuration _read(object config, tuple fields, Signature signature):
    cdef Configuration new = Configuration.__new__(Configuration)
    cdef LaunchConfigC* native = &new.native
    read = [read_property(PyTuple_GET_ITEM(fields, index), config) for index in range(FIELD_COUNT)]
    # The list of a subclass may change and stay the same object. A list is therefore stored as a tuple, which always
    # differs in _differs().
    new.fields = tuple([tuple(value) if isinstance(value, list) else value for value in read])
    cluster = _configurations.three_extents("cluster", new.fields[CLUSTER]) if new.fields[CLUSTER] else None
    grid = _configurations.three_extents("grid", new.fields[GRID])
    block = _configurations.three_extents("block", new.fields[BLOCK])
    ctas, _ = _configurations.shape(signature.name, signature.directives, grid, block, cluster)
    for axis in range(3):
        native.grid_dim[axis] = ctas[axis] if cluster else grid[axis]  # The field LaunchConfig.grid counts clusters.
        native.block_dim[axis] = block[axis]
    native.shared_mem_bytes = _shared_bytes(new.fields[SHMEM_SIZE], signature)
    native.attributes = new.attributes
    if new.fields[CLUSTER]:
        _add_attribute(new, ATTRIBUTE_CLUSTER_DIMENSION, cluster)
    if new.fields[IS_COOPERATIVE]:
        _add_attribute(new, ATTRIBUTE_COOPERATIVE, (1,))
    if new.fields[PROGRAMMATIC]:
        _add_attribute(new, ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, (1,))
    if fields is OWN_FIELDS:
        _show(new, config)
    return new


cdef uint32_t _shared_bytes(object given, Signature signature) except? 0:
    """Return the shared memory that the compilation found for the kernel, or a larger requested size."""
    given = _configurations.shared_bytes(given or 0)
    if not given:
        return signature.dynamic_shared_bytes
    if given < signature.dynamic_shared_bytes:
        raise _launches.shared_memory_needed(signature.name, given, signature.dynamic_shared_bytes)
    return given


cdef int _add_attribute(Configuration config, uint32_t id, tuple values) except -1:
    cdef LaunchAttribute* attribute = &config.attributes[config.native.attribute_count]
    attribute.id = id
    for index, value in enumerate(values):
        attribute.value[index] = value
    config.native.attribute_count += 1
    return 0
