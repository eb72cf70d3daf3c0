"""launch() and prepare(): arguments, context and driver call.

What a launch needs to know of a kernel, a stream and a configuration is looked up once and kept: see _kernel_arg,
_stream and _launch_config. What is left for every launch is to pack, to compare and to call.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject, Py_SIZE, Py_TYPE
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from .._read.context cimport device_of, share_memory
from .._cuda.driver cimport (
    CUDA_SUCCESS, CUcontext, CUfunction, CUresult, LaunchConfigC, driver, ensure_driver, error_name)
from .._read.index cimport checked_index
from .._kernel_arg cimport Signature, pack, pack_all, signature_of
from .launch_config cimport Configuration, configuration_of
from .._read.stream cimport KnownStream, is_open, known_stream
from .._tensor_map cimport TensorMapDescriptor
from .._read.vectorcall cimport (
    METH_FASTCALL, METH_KEYWORDS, PyCFunction_NewEx, PyMethodDef, PyObject_Vectorcall, PySequence_Fast_ITEMS,
    PyVectorcall_NARGS, accept_vectorcall, vectorcallfunc)

import inspect

from .._cuda.core import CUDAError
from ..rules import refusals

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
    PreparedLaunch(kernel, config, *args)(stream)


cdef object _launch_by_name = launch  # for arguments by name, and for large ones


cdef object _launch(PyObject* module, PyObject* const* given, Py_ssize_t given_count, PyObject* names):
    cdef KnownStream stream
    cdef Signature signature
    cdef Configuration configuration
    cdef LaunchConfigC native
    cdef CUresult result
    cdef unsigned char block[STACK_BLOCK_BYTES]
    if names != NULL or given_count < 3:
        return PyObject_Vectorcall(_launch_by_name, given, given_count, names)
    ensure_driver()
    stream = known_stream(<object>given[0])
    signature = signature_of(<object>given[2])
    if signature.block_bytes > STACK_BLOCK_BYTES:
        return PyObject_Vectorcall(_launch_by_name, given, given_count, names)
    configuration = configuration_of(<object>given[1], signature)
    if pack_all(signature, &given[3], given_count - 3, stream.context, block):
        _require_contexts(&given[3], given_count - 3, stream)
    native = configuration.native  # a copy: another thread may launch with the same one on another stream
    native.stream = stream.handle
    result = call_driver(&native, function_on(stream, signature), block, signature.block_bytes)
    if result != CUDA_SUCCESS:
        raise _refused(result, signature, <object>given[1])


cdef PyMethodDef LAUNCH_DEFINITION
# As inspect wants the signature of a function of C.
cdef bytes LAUNCH_DOC = f"launch{inspect.signature(launch)}\n--\n\n{launch.__doc__}".encode()
LAUNCH_DEFINITION.ml_name = "launch"
LAUNCH_DEFINITION.ml_meth = <void*>_launch
LAUNCH_DEFINITION.ml_flags = METH_FASTCALL | METH_KEYWORDS
LAUNCH_DEFINITION.ml_doc = LAUNCH_DOC
launch = PyCFunction_NewEx(&LAUNCH_DEFINITION, NULL, __name__)


cdef int _require_contexts(PyObject* const* args, Py_ssize_t count, KnownStream stream) except -1:
    """Refuse a descriptor of another context than the stream's (the current one, for a default stream)."""
    cdef CUcontext own, context = stream.context
    cdef Py_ssize_t index
    if context == NULL and driver.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS:
        return 0  # the launch will say what is wrong with the stream
    for index in range(count):
        if Py_TYPE(<object>args[index]) != <PyTypeObject*>TensorMapDescriptor:
            continue
        own = (<TensorMapDescriptor>args[index])._context
        if own != context and own != stream.kin:
            if not share_memory(own, context):
                raise _stranger(index, <TensorMapDescriptor>args[index], context)
            if stream.context != NULL:  # a default stream is of whichever context is current
                stream.kin = own
    return 0


cdef object _stranger(Py_ssize_t index, TensorMapDescriptor descriptor, CUcontext context):
    return refusals.foreign_map(
        index, (descriptor._device_id, <uintptr_t>descriptor._context), (device_of(context), <uintptr_t>context))


# ---- prepared launches ----

@cython.final
cdef class _Prepared:
    """A kernel, its configuration and its arguments in their block. Nothing of it changes: the driver may read it."""

    cdef object kernel, config
    cdef tuple arguments
    cdef Signature signature
    cdef Configuration configuration
    cdef bytes block


@cython.final
cdef class _Bound:
    """What was prepared, for one stream: its context is the descriptors', and the function is the kernel in it."""

    cdef KnownStream stream
    cdef CUfunction function
    cdef bytes block
    cdef LaunchConfigC native
    cdef _Prepared prepared


cdef _Prepared _new_prepared(object kernel, object config, tuple arguments):
    cdef _Prepared new = _Prepared.__new__(_Prepared)
    new.kernel, new.config, new.arguments = kernel, config, arguments
    new.signature = signature_of(kernel)
    new.configuration = configuration_of(config, new.signature)
    new.block = PyBytes_FromStringAndSize(NULL, new.signature.block_bytes)
    pack_all(new.signature, PySequence_Fast_ITEMS(arguments), len(arguments), NULL, _bytes_of(new.block))
    return new


cdef bytes _packed_argument(Signature signature, Py_ssize_t index, object value):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, signature.parameters[index].size)
    pack(signature, index, value, _bytes_of(packed))
    return packed


cdef _Prepared _with_argument(_Prepared before, Py_ssize_t index, object value, bytes packed):
    cdef _Prepared new = _Prepared.__new__(_Prepared)
    new.kernel, new.config = before.kernel, before.config
    new.signature, new.configuration = before.signature, before.configuration
    new.arguments = (*before.arguments[:index], value, *before.arguments[index + 1:])
    new.block = PyBytes_FromStringAndSize(NULL, Py_SIZE(before.block))  # never one that Python shares
    memcpy(_bytes_of(new.block), _bytes_of(before.block), Py_SIZE(before.block))
    memcpy(_bytes_of(new.block) + new.signature.parameters[index].offset, _bytes_of(packed), Py_SIZE(packed))
    return new


cdef inline unsigned char* _bytes_of(bytes block) noexcept:
    return <unsigned char*>PyBytes_AS_STRING(block)


cdef _Prepared NOTHING = _Prepared.__new__(_Prepared)
NOTHING.signature = Signature.__new__(Signature)  # of no parameters
NOTHING.arguments = ()
cdef _Bound NOT_BOUND = _Bound.__new__(_Bound)
NOT_BOUND.stream = KnownStream.__new__(KnownStream)  # no object is its owner


cdef class PreparedLaunch:
    """PreparedLaunch(kernel, config, *args)\n--

    A kernel with its configuration and arguments in place: calling it with a stream only launches.

    Made by :func:`prepare`, and keeps its arguments alive. ``prepared[i] = value`` packs one argument anew, checked as
    by :func:`launch`; a new descriptor is a copy of 128 bytes. A descriptor whose address was replaced is packed anew
    by ``prepared[i] = descriptor``. Threads may call it and set its arguments at once: each launch is of arguments that
    were set together or one after the other.

    Examples
    --------
    ::

        step = cuda_tma.prepare(kernel, config, descriptor, out, 0)
        for i in range(n):
            step[2] = i
            step(stream)
    """

    cdef vectorcallfunc vectorcall
    cdef _Bound bound  # of what is prepared, or of nothing
    cdef _Prepared prepared

    def __cinit__(self):
        self.bound, self.prepared = NOT_BOUND, NOTHING

    def __init__(self, kernel, config, *args):
        ensure_driver()
        _put(self, _new_prepared(kernel, config, args))
        self.vectorcall = <vectorcallfunc>_launch_prepared

    def __len__(self):
        return self.prepared.signature.count

    def __getitem__(self, index):
        return self.prepared.arguments[index]

    def __setitem__(self, index, value):
        cdef Signature signature = self.prepared.signature
        cdef Py_ssize_t at = checked_index(index, signature.count, "arguments")
        cdef bytes packed = _packed_argument(signature, at, value)  # this may run Python, and so may other threads
        cdef _Prepared before = None
        cdef _Prepared new = NOTHING
        while before is not self.prepared:
            before = self.prepared
            if before.signature is not signature:
                raise RuntimeError(f"argument {at}: while it was packed, this launch was prepared anew; set it again")
            new = _with_argument(before, at, value, packed)
        _put(self, new)

    def __call__(self, stream):
        """Launch on `stream`, with the arguments as they were packed."""
        if self.prepared is NOTHING:
            raise TypeError("PreparedLaunch.__init__ was not called")
        _start_prepared(self, stream)


cdef int _put(PreparedLaunch launch, _Prepared prepared) except -1:
    # In this order: what was prepared before may end with the last line, which may run Python.
    launch.bound = NOT_BOUND
    launch.prepared = prepared
    return 0


cdef int _start_prepared(PreparedLaunch launch, object stream) except -1:
    cdef _Bound bound = launch.bound
    cdef CUresult result
    if not is_open(bound.stream, stream):
        bound = _bind(launch, stream)
    result = call_driver(&bound.native, bound.function, _bytes_of(bound.block), Py_SIZE(bound.block))
    if result != CUDA_SUCCESS:
        raise _refused(result, bound.prepared.signature, bound.prepared.config)
    return 0


cdef _Bound _bind(PreparedLaunch launch, object stream):
    """What is prepared, for a stream, if the descriptors are its context's; kept for the next launch."""
    cdef _Bound bound = _Bound.__new__(_Bound)
    cdef _Prepared prepared = launch.prepared
    cdef KnownStream known = known_stream(stream)
    bound.prepared, bound.block, bound.stream = prepared, prepared.block, known
    bound.function = function_on(known, prepared.signature)
    bound.native = prepared.configuration.native
    bound.native.stream = known.handle
    _require_contexts(PySequence_Fast_ITEMS(prepared.arguments), len(prepared.arguments), known)
    # A stream whose context is not known is not kept: the next launch on it may be in another.
    if known.context != NULL and launch.prepared is prepared:
        launch.bound = bound
    return bound


cdef object _launch_prepared(PyObject* launch, PyObject* const* given, size_t given_count, PyObject* names):
    if names != NULL or PyVectorcall_NARGS(given_count) != 1:
        return PyObject_Vectorcall((<object>launch).__call__, given, given_count, names)
    _start_prepared(<PreparedLaunch>launch, <object>given[0])


cdef PreparedLaunch _probe = PreparedLaunch.__new__(PreparedLaunch)
accept_vectorcall(<PyObject*>PreparedLaunch, <char*>&_probe.vectorcall - <char*><PyObject*>_probe)


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
