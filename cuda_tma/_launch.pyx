"""launch() and prepare(): the stream, the configuration, and the driver's launch call.

What a launch needs to know of a kernel, a stream and a configuration is looked up once and kept: by weak reference for
the first two, by the values of the fields for the third, since a LaunchConfig can be changed.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uintptr_t

from ._driver cimport (
    CUDA_SUCCESS, CUcontext, CUresult, CUstream, LaunchAttribute, LaunchConfigC, driver, ensure_driver,
    error_name)
from ._kernel_arg cimport Signature, pack, signature_of
from ._tensor_map cimport TensorMapDescriptor
from ._weak_cache cimport WeakCache

from cuda.core import LaunchConfig, Stream
from cuda.core._utils.cuda_utils import CUDAError

from .errors import TensorMapError

cdef extern from "Python.h":
    ctypedef object (*getter)(PyObject*, void*)
    ctypedef struct PyGetSetDef:
        getter get
        void* closure
    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef* d_getset

cdef enum:  # CUlaunchAttributeID
    ATTRIBUTE_COOPERATIVE = 2
    ATTRIBUTE_CLUSTER_DIMENSION = 4
    ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6

cdef enum:
    MAX_ATTRIBUTES = 3
    STACK_BLOCK_BYTES = 1024  # parameter blocks and counts up to these need no allocation
    STACK_COUNT = 32


cdef class Attribute:
    """A property of one of cuda.core's extension types, read through its own getter without a look-up by name.

    Where the type has no such property (an older cuda.core), the value is `default`.
    """

    cdef object owner, name, default
    cdef PyGetSetDef* definition

    def __cinit__(self, owner, name, default=None):
        self.owner, self.name, self.default = owner, name, default
        descriptor = vars(owner).get(name)
        if type(descriptor).__name__ == "getset_descriptor":
            self.definition = (<PyGetSetDescrObject*>descriptor).d_getset

    cdef object of(self, object instance):
        if self.definition != NULL and type(instance) is self.owner:
            return self.definition.get(<PyObject*>instance, self.definition.closure)
        return getattr(instance, self.name, self.default)


cdef Attribute GRID = Attribute(LaunchConfig, "grid")
cdef Attribute BLOCK = Attribute(LaunchConfig, "block")
cdef Attribute CLUSTER = Attribute(LaunchConfig, "cluster")
cdef Attribute SHMEM_SIZE = Attribute(LaunchConfig, "shmem_size")
cdef Attribute IS_COOPERATIVE = Attribute(LaunchConfig, "is_cooperative", False)
# cuda.core 1.2 and later have these two.
cdef Attribute PROGRAMMATIC = Attribute(LaunchConfig, "programmatic_stream_serialization", False)
cdef Attribute IS_CLOSED = Attribute(Stream, "is_closed")


# ---- streams ----

cdef class KnownStream:
    """A cuda.core Stream's handle and context, neither of which changes while it is open."""

    cdef CUstream handle
    cdef CUcontext context  # NULL: the default streams', which is whichever context is current


cdef WeakCache _streams = WeakCache()  # Stream: KnownStream


cdef KnownStream known_stream(object stream):
    cdef KnownStream known = _streams.get(stream)
    if known is None:
        known = KnownStream.__new__(KnownStream)
        known.handle = <CUstream><uintptr_t>int(stream.handle)
        if <uintptr_t>known.handle > 2:  # 0, 1 and 2 are the default streams
            driver.cuStreamGetCtx(known.handle, &known.context)
        _streams.put(stream, known)
    return known


cdef CUstream stream_handle(object stream, CUcontext* context) except? NULL:
    """The handle of a Stream, a GraphBuilder, or anything with ``__cuda_stream__``; and its context, if it is known."""
    cdef KnownStream known
    context[0] = NULL
    if type(stream) is Stream or isinstance(stream, Stream):
        if _is_closed(stream):
            raise ValueError("the stream is closed; launch on an open one (Device().create_stream()). cuda.core before "
                             "1.2 shows the null stream so, too: there pass cuda.core.LEGACY_DEFAULT_STREAM")
        known = known_stream(stream)
        context[0] = known.context
        return known.handle
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise ValueError(f"the stream's __cuda_stream__ is of version {version}; version 0 is known")
        return <CUstream><uintptr_t>int(handle)
    if hasattr(stream, "stream"):  # a GraphBuilder captures on a stream of its own
        return stream_handle(stream.stream, context)
    raise TypeError(f"stream is a {type(stream).__name__}; launch takes a cuda.core.Stream, a GraphBuilder or an "
                    "object with __cuda_stream__")


cdef bint _is_closed(object stream) except -1:
    """Whether a Stream was closed. cuda.core before 1.2 lacks is_closed; a closed stream's handle is then None or 0."""
    closed = IS_CLOSED.of(stream)
    if closed is not None:
        return closed
    handle = stream.handle
    return handle is None or int(handle) == 0


# ---- configuration ----

cdef class Configuration:
    """A LaunchConfig's fields as they were read, and what the driver makes of them."""

    cdef object grid, block, cluster, shmem_size, is_cooperative, programmatic
    cdef LaunchConfigC native
    cdef LaunchAttribute attributes[MAX_ATTRIBUTES]


cdef Configuration configuration_of(object config, Signature signature):
    """The configuration for the driver; that of the kernel's last launch, if no field differs.

    Tuples are compared by identity, which is enough: a field that was set anew is another tuple, or an equal one.
    """
    cdef Configuration last = signature.configuration
    if type(config) is not LaunchConfig and not isinstance(config, LaunchConfig):
        config = LaunchConfig(**config)
    grid, block, cluster = GRID.of(config), BLOCK.of(config), CLUSTER.of(config)
    shmem_size = SHMEM_SIZE.of(config)
    is_cooperative, programmatic = IS_COOPERATIVE.of(config), PROGRAMMATIC.of(config)
    if (
        last is None or grid is not last.grid or block is not last.block or cluster is not last.cluster
        or is_cooperative is not last.is_cooperative or programmatic is not last.programmatic
        or (shmem_size is not last.shmem_size and shmem_size != last.shmem_size)
    ):
        last = Configuration.__new__(Configuration)
        last.grid, last.block, last.cluster, last.shmem_size = grid, block, cluster, shmem_size
        last.is_cooperative, last.programmatic = is_cooperative, programmatic
        _fill(last)
        signature.configuration = last
    return last


cdef int _fill(Configuration config) except -1:
    cdef LaunchConfigC* native = &config.native
    cluster = config.cluster or (1, 1, 1)
    for axis in range(3):
        native.grid_dim[axis] = config.grid[axis] * cluster[axis]  # LaunchConfig.grid counts clusters
        native.block_dim[axis] = config.block[axis]
    native.shared_mem_bytes = config.shmem_size
    native.attributes = config.attributes
    if config.cluster:
        _add_attribute(config, ATTRIBUTE_CLUSTER_DIMENSION, cluster)
    if config.is_cooperative:
        _add_attribute(config, ATTRIBUTE_COOPERATIVE, (1,))
    if config.programmatic:
        _add_attribute(config, ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, (1,))
    return 0


cdef int _add_attribute(Configuration config, uint32_t id, tuple values) except -1:
    cdef LaunchAttribute* attribute = &config.attributes[config.native.attribute_count]
    attribute.id = id
    for index, value in enumerate(values):
        attribute.value[index] = value
    config.native.attribute_count += 1
    return 0


# ---- launching ----

cdef int _start(
        Configuration configuration, CUstream stream, Signature signature, void** pointers, object config) except -1:
    cdef LaunchConfigC mine = configuration.native  # a copy: another thread may launch with the same configuration
    cdef CUresult result
    mine.stream = stream
    with nogil:  # a full queue blocks, and what empties it may need the GIL
        result = driver.cuLaunchKernelEx(&mine, signature.function, pointers, NULL)
    if result != CUDA_SUCCESS:
        raise CUDAError(f"{error_name(result)}: the driver refused to launch {signature.name or 'the kernel'} "
                        f"with {config!r}")
    return 0


def launch(stream, config, kernel, *args):
    """Launch a kernel, as ``cuda.core.launch`` does, with its arguments checked against its parameters.

    Parameters
    ----------
    stream : Stream, GraphBuilder, or object with ``__cuda_stream__``
    config : LaunchConfig or mapping of its fields
    kernel : cuda.core.Kernel
    *args
        One for each parameter of the kernel. Beside all that cuda.core takes:

        - a ``TensorMapDescriptor`` (ours or cuda.core's) for a ``const __grid_constant__ CUtensorMap`` parameter;
        - an array (torch, CuPy, JAX, numba-cuda, a view) for a pointer;
        - a Python int for an integer of 1, 2, 4 or 8 bytes or a pointer, a float for a float or double,
          a bool for a bool: the parameter's own size is taken;
        - a structured numpy scalar or a ``ctypes.Structure`` for a struct of the same size.

    Raises
    ------
    TypeError
        If the number of arguments, or an argument's size or kind, is not the parameter's. Sizes are known for every
        kernel; kinds (an int where a float is wanted) only where the lowered name carries the types, which
        ``extern "C"`` names do not.
    OverflowError
        If an int does not fit its parameter.
    TensorMapError
        If a descriptor was made in another context than the stream's.
    ValueError
        If the stream is closed.
    CUDAError
        If the driver refuses the launch.
    """
    cdef CUcontext context
    cdef CUstream handle
    cdef Signature signature
    cdef Configuration configuration
    cdef unsigned char stack_block[STACK_BLOCK_BYTES]
    cdef void* stack_pointers[STACK_COUNT]
    cdef PreparedLaunch prepared
    ensure_driver()
    handle = stream_handle(stream, &context)
    signature = signature_of(kernel)
    configuration = configuration_of(config, signature)
    if signature.block_bytes <= STACK_BLOCK_BYTES and signature.count <= STACK_COUNT:
        _pack_all(signature, args, stack_block, stack_pointers)
        _require_contexts(args, handle, context)
        _start(configuration, handle, signature, stack_pointers, config)
    else:
        prepared = PreparedLaunch(kernel, config, *args)
        _require_contexts(args, handle, context)
        _start(configuration, handle, signature, prepared.pointers, config)


cdef int _pack_all(Signature signature, tuple args, unsigned char* block, void** pointers) except -1:
    cdef Py_ssize_t index
    if len(args) != signature.count:
        raise TypeError(f"kernel {signature.name or '?'} takes {signature.count} arguments, and {len(args)} were given")
    for index in range(signature.count):
        pointers[index] = block + signature.parameters[index].offset
        pack(signature, index, args[index], <unsigned char*>pointers[index])
    return 0


cdef int _require_contexts(tuple args, CUstream stream, CUcontext context) except -1:
    """Refuse a descriptor of another context than the stream's (the current one, for a default stream)."""
    cdef TensorMapDescriptor descriptor
    cdef Py_ssize_t index
    for index in range(len(args)):
        if type(args[index]) is not TensorMapDescriptor:
            continue
        if context == NULL and driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS:
            return 0  # the launch will say what is wrong with the stream
        descriptor = <TensorMapDescriptor>args[index]
        if context != descriptor._context and not _is_green(stream):
            raise TensorMapError(
                f"argument {index}: the descriptor was made on device {descriptor._device_id} in context "
                f"{<uintptr_t>descriptor._context:#x}, and the launch is on device {_device_of(context)} in context "
                f"{<uintptr_t>context:#x}; a tensor map is valid in its own context. Make one with that one current")
    return 0


cdef bint _is_green(CUstream stream) noexcept:
    """Whether the stream is a green context's: one of the primary context's, that has another handle."""
    cdef void* green = NULL
    return driver.cuStreamGetGreenCtx != NULL and (
        driver.cuStreamGetGreenCtx(stream, &green) == CUDA_SUCCESS and green != NULL)


cdef int _device_of(CUcontext context) noexcept:
    cdef int device_id = -1
    if driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
        driver.cuCtxGetDevice(&device_id)
        driver.cuCtxPopCurrent(&context)
    return device_id


cdef class PreparedLaunch:
    """A kernel with its configuration and arguments in place: calling it with a stream only launches.

    Made by :func:`prepare`, and keeps its arguments alive. ``prepared[i] = value`` packs one argument anew, checked as
    by :func:`launch`; a new descriptor is a copy of 128 bytes. A descriptor whose address was replaced is packed anew
    by ``prepared[i] = descriptor``.

    Examples
    --------
    ::

        step = cuda_tma.prepare(kernel, config, descriptor, out, 0)
        for i in range(n):
            step[2] = i
            step(stream)
    """

    cdef Signature signature
    cdef Configuration configuration
    cdef object kernel, config
    cdef tuple arguments
    cdef unsigned char* block
    cdef void** pointers

    def __init__(self, kernel, config, *args):
        ensure_driver()
        self.kernel, self.config = kernel, config
        self.signature = signature_of(kernel)
        self.configuration = configuration_of(config, self.signature)
        self.block = <unsigned char*>PyMem_Malloc(self.signature.block_bytes + 1)
        self.pointers = <void**>PyMem_Malloc((self.signature.count + 1) * sizeof(void*))
        if self.block == NULL or self.pointers == NULL:
            raise MemoryError
        _pack_all(self.signature, args, self.block, self.pointers)
        self.arguments = args

    def __dealloc__(self):
        PyMem_Free(self.block)
        PyMem_Free(self.pointers)

    def __len__(self):
        return self.signature.count

    def __getitem__(self, index):
        return self.arguments[index]

    def __setitem__(self, index, value):
        cdef Py_ssize_t at = range(self.signature.count)[index]  # a negative index counts from the end
        pack(self.signature, at, value, self.block + self.signature.parameters[at].offset)
        self.arguments = (*self.arguments[:at], value, *self.arguments[at + 1:])

    def __call__(self, stream):
        """Launch on `stream`, with the arguments as they were packed."""
        cdef CUcontext context
        cdef CUstream handle = stream_handle(stream, &context)
        _require_contexts(self.arguments, handle, context)
        _start(self.configuration, handle, self.signature, self.pointers, self.config)


def prepare(kernel, config, *args):
    """Fix a kernel, its configuration and its arguments for many launches.

    Parameters
    ----------
    kernel, config, *args
        As for :func:`launch`. Later changes of `config` do not count.

    Returns
    -------
    PreparedLaunch

    Raises
    ------
    TypeError, OverflowError
        As :func:`launch`.
    """
    return PreparedLaunch(kernel, config, *args)
