"""The function prepare(), which packs a kernel, its configuration and its arguments for many launches."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject, Py_SIZE
from libc.string cimport memcpy

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUresult, ensure_driver
from .._cuda.free_threading cimport FREE_THREADED
from .._kernel_arg cimport pack, pack_all, takes_tensor
from .._read.index cimport checked_index
from .._read.stream cimport KnownStream, is_open, known_stream
from .._tensor_map cimport TensorMapDescriptor
from .call cimport call_driver, function_on, refused
from .contexts cimport require_contexts
from .launch_config cimport configuration_of
from .shared_memory cimport allow_shared_memory
from .signature cimport Parameter, Signature, signature_of, where
from .typed_map cimport TypedMap, describe_tensor

from .._errors import TensorMapError
from ..rules import _launches


cdef inline unsigned char* _bytes_of(object block) noexcept:
    return <unsigned char*>PyBytes_AS_STRING(block)


@cython.final
cdef class Arguments:
    pass


@cython.final
cdef class Bound:
    pass


cdef Arguments _pack_arguments(Signature signature, tuple values):
    cdef Arguments new = Arguments.__new__(Arguments)
    cdef CUcontext made
    new.values = new.maps = values
    if len(values) == signature.count and signature.typed_maps:
        new.maps = tuple([
            map_of(&signature.parameters[index], value, None) for index, value in enumerate(values)])
    new.block = PyBytes_FromStringAndSize(NULL, signature.block_bytes)
    pack_all(signature, new.maps, NULL, _bytes_of(new.block), &made)
    return new


cdef object map_of(Parameter* parameter, object value, object before):
    """Return the descriptor of a tensor for a typed map. Return any other argument unchanged."""
    if (parameter.typed == NULL or type(value) is TensorMapDescriptor or not takes_tensor(parameter, value)):
        return value
    try:
        return describe_tensor(
            <TypedMap>parameter.typed, value, before if type(before) is TensorMapDescriptor else None)
    except TensorMapError as error:
        raise _launches.tensor(where(parameter), (<TypedMap>parameter.typed).map_type, error) from error


cdef bytes _pack_argument(Parameter* parameter, object value):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack(parameter, value, _bytes_of(packed))
    return packed


cdef Arguments _with_argument(Arguments before, Parameter* parameter, object value, object map, bytes packed):
    cdef Arguments new = Arguments.__new__(Arguments)
    new.values = _replaced(before.values, parameter.index, value)
    new.maps = new.values if before.maps is before.values and map is value else _replaced(
        before.maps, parameter.index, map)
    # No other code has a reference to the new bytes object.
    new.block = PyBytes_FromStringAndSize(NULL, Py_SIZE(before.block))
    memcpy(_bytes_of(new.block), _bytes_of(before.block), Py_SIZE(before.block))
    memcpy(_bytes_of(new.block) + parameter.offset, _bytes_of(packed), parameter.size)
    return new


cdef tuple _replaced(tuple values, Py_ssize_t index, object value):
    return values[:index] + (value,) + values[index + 1:]


cdef class PreparedLaunch:
    """PreparedLaunch(kernel, config, *args)\n--

    A kernel with its packed configuration and arguments, which a call with a stream launches.

    :func:`prepare` makes the object, which keeps its arguments alive. ``prepared[i] = value`` checks one argument as
    :func:`launch` does, and packs it again; a new descriptor is a copy of 128 bytes. After a change of a descriptor's
    address, pack the descriptor again with ``prepared[i] = descriptor``. For a typed map, ``prepared[i] = tensor`` sets
    the address of the map to that of another tensor. If more than the address differs, it encodes the map again.
    Earlier launches keep their arguments. Several threads may call the object and set its arguments at the same time.
    Each launch uses a consistent set of arguments.

    Examples
    --------
    ::

        step = cuda_tma.prepare(kernel, config, descriptor, out, 0)
        for i in range(n):
            step[2] = i
            step(stream)

    The next kernel has two typed maps of tensors, one of which changes::

        step = cuda_tma.prepare(kernel, config, weights, tokens)
        for tokens in batches:
            step[1] = tokens
            step(stream)
    """

    def __cinit__(self, kernel, config, *args):
        ensure_driver()
        self.kernel, self.config = kernel, config
        self.signature = signature_of(kernel)
        self.configuration = configuration_of(config, self.signature)
        self.arguments = _pack_arguments(self.signature, args)

    def __init__(self, kernel, config, *args):
        pass  # The method __cinit__ initializes the object once, although a subclass may call __init__.

    def __reduce__(self):
        raise TypeError(
            "a prepared launch cannot be copied or pickled: it holds a kernel, memory and a context of this process. "
            "Make another: prepare(kernel, config, *arguments)"
        )

    def __len__(self):
        return self.signature.count

    cdef Arguments _arguments(self):
        with cython.critical_section(self):
            return self.arguments

    def __getitem__(self, index):
        return self._arguments().values[index]

    @property
    def parameter_block(self):
        """The arguments in one block of bytes for the driver, each argument at the offset of its parameter.

        The driver determines the offsets (``parameters_of(kernel)[i].offset_bytes``). The first offset need not be 0,
        because a map is aligned in the kernel's constant memory. Other libraries can launch the block with
        ``CU_LAUNCH_PARAM_BUFFER_POINTER`` (CUDA driver API, cuLaunchKernel). The block keeps no memory alive.
        """
        # The bytes are a copy, because the driver reads the original.
        return bytes(memoryview(self._arguments().block))

    def __setitem__(self, index, value):
        cdef Parameter* parameter = &self.signature.parameters[
            checked_index(index, self.signature.count, "arguments")]
        cdef object map = map_of(parameter, value, self._arguments().maps[parameter.index])
        # Python code, and other threads, may run during _pack_argument().
        cdef bytes packed = _pack_argument(parameter, map)
        cdef Arguments before = None, new = None
        cdef Bound _ended = None
        cdef bint is_done = False
        while not is_done:
            before = self._arguments()
            new = _with_argument(before, parameter, value, map, packed)
            with cython.critical_section(self):
                if self.arguments is before:
                    # The object is destroyed after the lock, because its destruction may run Python code.
                    _ended = self.bound
                    self.bound = None
                    self.arguments = new
                    is_done = True

    def __call__(self, stream):
        """Launch the kernel on `stream` with the packed arguments."""
        cdef Bound bound = _last_of(self)
        cdef CUresult result
        if bound is None or not is_open(<PyObject*>bound.stream, stream):
            bound = _bind(self, stream)
        result = call_driver(&bound.native, bound.function, _bytes_of(bound.block), Py_SIZE(bound.block))
        if result != CUDA_SUCCESS:
            raise refused(result, self.signature, self.config)


cdef inline Bound _last_of(PreparedLaunch launch):
    if not FREE_THREADED:  # The function copy_map() explains this condition.
        return launch.bound
    with cython.critical_section(launch):
        return launch.bound


cdef Bound _bind(PreparedLaunch launch, object stream):
    """Bind the arguments to a stream of the descriptors' context. Keep them for the next launch."""
    cdef Bound bound = Bound.__new__(Bound)
    cdef Arguments arguments = launch._arguments()
    cdef KnownStream known = known_stream(stream)
    bound.stream, bound.block = known, arguments.block
    if launch.configuration.native.shared_mem_bytes != 0:
        allow_shared_memory(launch.configuration, launch.signature, known)
    bound.function = function_on(known, launch.signature)
    bound.native = launch.configuration.native
    bound.native.stream = known.handle
    require_contexts(arguments.maps, known)
    # A stream of unknown context is not kept, because its next launch may be in another context.
    with cython.critical_section(launch):
        if known.context != NULL and launch.arguments is arguments:
            launch.bound = bound
    return bound


def packed_in(PreparedLaunch launch):
    """Return the kernel of a prepared launch, its configuration, and the bytes of each of its arguments."""
    cdef bytes block = launch.arguments.block
    cdef Parameter* parameters = launch.signature.parameters
    return launch.kernel, launch.config, tuple([
        block[parameters[index].offset:parameters[index].offset + parameters[index].size]
        for index in range(launch.signature.count)])


def prepare(kernel, config, *args):
    """Pack a kernel, its configuration and its arguments for many launches.

    Parameters
    ----------
    kernel, config, *args
        The arguments of :func:`launch`. Later changes of `config` have no effect.

    Returns
    -------
    PreparedLaunch

    Raises
    ------
    TypeError, OverflowError
        If :func:`launch` would raise the error.
    """
    return PreparedLaunch(kernel, config, *args)
