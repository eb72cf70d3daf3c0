"""launch() and prepare(): arguments, context and driver call.

What a launch needs to know of a kernel, a stream and a configuration is looked up once and kept: see signature,
_read.stream and launch_config. What is left for every launch is to pack, to compare and to call.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyTypeObject, Py_SIZE, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from .._read.context cimport device_of, share_memory
from .._cuda.driver cimport (
    CUDA_SUCCESS, CUcontext, CUfunction, CUresult, LaunchConfigC, driver, ensure_driver, error_name)
from .._read.index cimport checked_index
from .._kernel_arg cimport pack, pack_all, takes_tensor
from .._read.stream cimport KnownStream, is_open, known_stream
from .._tensor_map cimport MAP_ALIGNMENT, TensorMapDescriptor
from .launch_config cimport Configuration, configuration_of
from .shared_memory cimport allow_shared_memory
from .signature cimport Parameter, Signature, signature_of, where
from .typed_map cimport TypedMap, describe_tensor

from .._cuda.core import CUDAError
from ..errors import TensorMapError
from ..rules import launches, refusals

cdef enum:
    STACK_BLOCK_BYTES = 1024  # parameter blocks up to this need no allocation

cdef enum:  # what tells the driver that the arguments are in their block: CU_LAUNCH_PARAM_...
    END = 0
    BUFFER_POINTER = 1
    BUFFER_SIZE = 2


cdef inline CUresult call_driver(
        const LaunchConfigC* native, CUfunction function, void* block, size_t block_bytes) noexcept:
    # One block instead of a pointer to each argument: the driver takes some 20 ns less for four maps (H200 host).
    cdef void** extra = [<void*>BUFFER_POINTER, block, <void*>BUFFER_SIZE, &block_bytes, <void*>END]
    cdef CUresult result
    # Letting the GIL go costs 66 to 70 ns (H200 host, Python 3.12), and keeping it can hang: a launch blocks while the
    # queue is full, and the queue may wait for a host function in Python (observed: driver 580, launches behind a
    # cuLaunchHostFunc).
    with nogil:
        result = driver.cuLaunchKernelEx(native, function, NULL, extra)
    return result


cdef CUfunction function_on(KnownStream stream, Signature signature) noexcept:
    """What to launch: the kernel as it is in the first context that it is launched in, and elsewhere the kernel itself.

    The driver launches the former some 40 ns sooner, since it looks the latter up every time. But a look-up by
    cuKernelGetFunction costs about a microsecond (H200, driver 580), so there is one, and no more.
    """
    if stream.context_id == 0:
        return signature.function
    if signature.context_id == 0:
        _enter(stream, signature)
    return signature.function_in_context if signature.context_id == stream.context_id else signature.function


cdef int _enter(KnownStream stream, Signature signature) noexcept:
    """Find the kernel in a stream's context: without the GIL, as in call_driver.

    It may have to load the kernel, and loading waits for the device (a kernel with local memory, driver 580: behind a
    running host function in Python it hung).
    """
    cdef CUcontext popped, context = stream.context
    cdef CUfunction kernel = signature.function, function = kernel
    with nogil:
        if driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
            driver.cuKernelGetFunction(&function, kernel)
            driver.cuCtxPopCurrent(&popped)
    signature.function_in_context, signature.context_id = function, stream.context_id
    return 0


cdef object _refused(CUresult result, Signature signature, object config):
    return CUDAError(f"{error_name(result)}: the driver refused to launch {signature.name or 'the kernel'} "
                     f"with {config!r}")


def launch(stream, config, kernel, *args):
    """Launch a kernel, as ``cuda.core.launch`` does, with its arguments checked against its parameters.

    Parameters
    ----------
    stream : Stream, GraphBuilder, or object with ``__cuda_stream__``
    config : LaunchConfig or mapping of its fields
    kernel : cuda.core.Kernel
    *args
        One for each parameter of the kernel. Beside all that cuda.core takes:

        - a ``TensorMapDescriptor`` (ours or cuda.core's), or cuda.bindings' ``CUtensorMap``, of which no more is known
          than its 128 bytes, for a ``const __grid_constant__ CUtensorMap`` parameter;
        - for a typed map (``TiledMap<Tile<...>>``), a descriptor of that tile, or the tensor itself: whatever
          :func:`create_tensor_map` takes. Its map is made from the type, in the current context, for this launch;
          ``Im2colMap`` takes descriptors alone;
        - an array (torch, CuPy, JAX, numba-cuda, a view) for a pointer;
        - a Python int for an integer of 1, 2, 4 or 8 bytes or a pointer, a float for a float or double,
          a bool for a bool: the parameter's own size is taken;
        - a structured numpy scalar or a ``ctypes.Structure`` for a struct of the same size.

    Notes
    -----
    Dynamic shared memory: where `config` leaves ``shmem_size`` out, a kernel of :func:`cuda_tma.compile` gets what it
    was found to take. The kernel's limit is raised where it is too low.

    Raises
    ------
    TypeError
        If the number of arguments, or an argument's size or kind, is not the parameter's. Sizes are known for every
        kernel; kinds (an int where a float is wanted) and typed maps of kernels by :func:`cuda_tma.compile`, and where
        the lowered name carries the types, which ``extern "C"`` names do not.
    OverflowError
        If an int does not fit its parameter.
    TensorMapError
        If a descriptor is not of the typed map that the parameter is, or was made in another context than the
        stream's; or if no map can be made of a tensor.
    ValueError
        If the stream is closed, or there is less shared memory than is asked for.
    CUDAError
        If the driver refuses the launch.
    """
    cdef KnownStream known
    cdef Signature signature
    cdef Configuration configuration
    cdef LaunchConfigC native
    cdef CUresult result
    cdef CUcontext made
    cdef unsigned char stack[STACK_BLOCK_BYTES + MAP_ALIGNMENT]
    cdef unsigned char* block = _aligned(stack)
    ensure_driver()
    known = known_stream(stream)
    signature = signature_of(kernel)
    configuration = configuration_of(config, signature)
    if signature.block_bytes > STACK_BLOCK_BYTES:
        owner = PyBytes_FromStringAndSize(NULL, signature.block_bytes + MAP_ALIGNMENT)
        block = _aligned(_bytes_of(owner))
    if pack_all(signature, args, known.context, block, &made):
        if made != NULL and made != known.context:
            _require_context_of_tensors(args, signature, made, known)
        _require_contexts(args, known)
    native = configuration.native  # a copy: another thread may launch with the same one on another stream
    native.stream = known.handle
    if native.shared_mem_bytes != 0 and (configuration.allowed_in != known.context_id or known.context_id == 0):
        _allow(configuration, signature, known)
    result = call_driver(&native, function_on(known, signature), block, signature.block_bytes)
    if result != CUDA_SUCCESS:
        raise _refused(result, signature, config)


cdef inline unsigned char* _aligned(unsigned char* memory) noexcept:
    """Where a block may begin: the driver writes maps at multiples of 64 alone (cuTensorMapEncodeTiled, tensorMap)."""
    return <unsigned char*>((<uintptr_t>memory + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))


cdef inline unsigned char* _bytes_of(object block) noexcept:
    return <unsigned char*>PyBytes_AS_STRING(block)


cdef int _allow(Configuration configuration, Signature signature, KnownStream stream) except -1:
    allow_shared_memory(signature, configuration.native.shared_mem_bytes, stream.context)
    configuration.allowed_in = stream.context_id
    return 0


cdef int _require_contexts(tuple args, KnownStream stream) except -1:
    """Refuse a descriptor of another context than the stream's (the current one, for a default stream)."""
    cdef CUcontext context = _context_of(stream)
    cdef Py_ssize_t index
    if context == NULL:
        return 0  # the launch will say what is wrong with the stream
    for index in range(PyTuple_GET_SIZE(args)):
        value = <object>PyTuple_GET_ITEM(args, index)
        if Py_TYPE(value) == <PyTypeObject*>TensorMapDescriptor and not _is_valid_on(
                stream, context, (<TensorMapDescriptor>value)._context):
            raise _foreign(index, <TensorMapDescriptor>value, context)
    return 0


cdef int _require_context_of_tensors(
        tuple args, Signature signature, CUcontext made, KnownStream stream) except -1:
    """Refuse tensors whose maps were made in another context than the stream's."""
    cdef CUcontext context = _context_of(stream)
    cdef Py_ssize_t index
    if context == NULL or _is_valid_on(stream, context, made):
        return 0
    for index in range(signature.count):
        if signature.parameters[index].typed != NULL and not isinstance(args[index], TensorMapDescriptor):
            break
    raise launches.foreign_tensor(
        index, (device_of(made), <uintptr_t>made), (device_of(context), <uintptr_t>context))


cdef CUcontext _context_of(KnownStream stream) noexcept:
    """A stream's context, of a default stream the current one; NULL where the driver does not know it."""
    cdef CUcontext context = stream.context
    if context == NULL and driver.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS:
        return NULL
    return context


cdef bint _is_valid_on(KnownStream stream, CUcontext context, CUcontext own) noexcept:
    """Whether a map of one context is valid in the stream's; which other shares its memory is kept."""
    if own == context or own == stream.sharing:
        return True
    if not share_memory(own, context):
        return False
    if stream.context != NULL:  # a default stream is of whichever context is current
        stream.sharing = own
    return True


cdef object _foreign(Py_ssize_t index, TensorMapDescriptor descriptor, CUcontext context):
    return refusals.foreign_map(
        index, (descriptor._device_id, <uintptr_t>descriptor._context), (device_of(context), <uintptr_t>context))


# ---- prepared launches ----

@cython.final
cdef class _Arguments:
    """Arguments, and their block. Nothing of it changes: the driver may read it."""

    cdef tuple values
    cdef tuple maps  # the same, but for each tensor that a map was made of, the descriptor
    cdef bytes block


@cython.final
cdef class _Bound:
    """A block, for one stream: its context is the descriptors', and the function is the kernel in it."""

    cdef KnownStream stream
    cdef CUfunction function
    cdef LaunchConfigC native
    cdef bytes block


cdef _Arguments _pack_arguments(Signature signature, tuple values):
    cdef _Arguments new = _Arguments.__new__(_Arguments)
    cdef CUcontext made
    new.values = new.maps = values
    if len(values) == signature.count and signature.typed_maps:
        new.maps = tuple([
            _map_of(&signature.parameters[index], value, None) for index, value in enumerate(values)])
    new.block = PyBytes_FromStringAndSize(NULL, signature.block_bytes)
    pack_all(signature, new.maps, NULL, _bytes_of(new.block), &made)
    return new


cdef object _map_of(Parameter* parameter, object value, object before):
    """The descriptor of a tensor that is given for a typed map; anything else as it is."""
    if (parameter.typed == NULL or type(value) is TensorMapDescriptor or not takes_tensor(parameter, value)):
        return value
    try:
        return describe_tensor(
            <TypedMap>parameter.typed, value, before if type(before) is TensorMapDescriptor else None)
    except TensorMapError as error:
        raise launches.tensor(where(parameter), (<TypedMap>parameter.typed).map_type, error) from error


cdef bytes _pack_argument(Parameter* parameter, object value):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack(parameter, value, _bytes_of(packed))
    return packed


cdef _Arguments _with_argument(_Arguments before, Parameter* parameter, object value, object map, bytes packed):
    cdef _Arguments new = _Arguments.__new__(_Arguments)
    new.values = _replaced(before.values, parameter.index, value)
    new.maps = new.values if before.maps is before.values and map is value else _replaced(
        before.maps, parameter.index, map)
    new.block = PyBytes_FromStringAndSize(NULL, Py_SIZE(before.block))  # never one that Python shares
    memcpy(_bytes_of(new.block), _bytes_of(before.block), Py_SIZE(before.block))
    memcpy(_bytes_of(new.block) + parameter.offset, _bytes_of(packed), parameter.size)
    return new


cdef tuple _replaced(tuple values, Py_ssize_t index, object value):
    return values[:index] + (value,) + values[index + 1:]


cdef class PreparedLaunch:
    """PreparedLaunch(kernel, config, *args)\n--

    A kernel with its configuration and arguments in place: calling it with a stream only launches.

    Made by :func:`prepare`, and keeps its arguments alive. ``prepared[i] = value`` packs one argument anew, checked as
    by :func:`launch`; a new descriptor is a copy of 128 bytes. A descriptor whose address was replaced is packed anew
    by ``prepared[i] = descriptor``; for a typed map, ``prepared[i] = tensor`` points the map at another tensor, and
    makes it anew where more than the address differs. Launches that were made keep what they had. Threads may call it
    and set its arguments at once: each launch is of arguments that were set together or one after the other.

    Examples
    --------
    ::

        step = cuda_tma.prepare(kernel, config, descriptor, out, 0)
        for i in range(n):
            step[2] = i
            step(stream)
    """

    cdef object kernel, config
    cdef Signature signature
    cdef Configuration configuration
    cdef _Arguments arguments
    cdef _Bound bound  # these arguments, for the stream of the last launch; or None

    def __cinit__(self, kernel, config, *args):
        ensure_driver()
        self.kernel, self.config = kernel, config
        self.signature = signature_of(kernel)
        self.configuration = configuration_of(config, self.signature)
        self.arguments = _pack_arguments(self.signature, args)

    def __init__(self, kernel, config, *args):
        pass  # all is done, once: a subclass may call it

    def __len__(self):
        return self.signature.count

    def __getitem__(self, index):
        return self.arguments.values[index]

    def __setitem__(self, index, value):
        cdef Parameter* parameter = &self.signature.parameters[
            checked_index(index, self.signature.count, "arguments")]
        cdef object map = _map_of(parameter, value, self.arguments.maps[parameter.index])
        cdef bytes packed = _pack_argument(parameter, map)  # this may run Python, and so may other threads
        cdef _Arguments before = None, new = None
        while before is not self.arguments:
            before = self.arguments
            new = _with_argument(before, parameter, value, map, packed)
        # In this order: what was prepared before may end with the last line, which may run Python.
        self.bound = None
        self.arguments = new

    def __call__(self, stream):
        """Launch on `stream`, with the arguments as they were packed."""
        cdef _Bound bound = self.bound
        cdef CUresult result
        if bound is None or not is_open(bound.stream, stream):
            bound = _bind(self, stream)
        result = call_driver(&bound.native, bound.function, _bytes_of(bound.block), Py_SIZE(bound.block))
        if result != CUDA_SUCCESS:
            raise _refused(result, self.signature, self.config)


cdef _Bound _bind(PreparedLaunch launch, object stream):
    """The arguments, for a stream, if the descriptors are its context's; kept for the next launch."""
    cdef _Bound bound = _Bound.__new__(_Bound)
    cdef _Arguments arguments = launch.arguments
    cdef KnownStream known = known_stream(stream)
    bound.stream, bound.block = known, arguments.block
    if launch.configuration.native.shared_mem_bytes != 0:
        _allow(launch.configuration, launch.signature, known)
    bound.function = function_on(known, launch.signature)
    bound.native = launch.configuration.native
    bound.native.stream = known.handle
    _require_contexts(arguments.maps, known)
    # A stream whose context is not known is not kept: the next launch on it may be in another.
    if known.context != NULL and launch.arguments is arguments:
        launch.bound = bound
    return bound


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
