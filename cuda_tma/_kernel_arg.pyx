"""launch(): packing kernel arguments, checked against the kernel's own parameters, and launching.

cuda.core 1.2 packs what it is given and checks nothing: too many arguments, a pointer in place of a descriptor, or a
Python float for a ``float`` parameter (which arrives as 0.0) all launch without an error (measured on an H200).
"""

import ctypes
import weakref

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from ._dlpack cimport ExportedTensor, export, kDLCPU
from ._driver cimport (
    CUDA_SUCCESS, CUcontext, CUfunction, CUresult, CUstream, LaunchAttribute, LaunchConfigC, driver, ensure_driver,
    error_name)
from ._tensor_map cimport MAP_BYTES, TensorMapDescriptor

import numpy as np
from cuda.core import Buffer, Kernel, LaunchConfig, Stream
from cuda.core._kernel_arg_handler import ParamHolder
from cuda.core._utils.cuda_utils import CUDAError

from . import refusals
from .errors import TensorMapError
from .mangled import parameter_kinds

try:
    from cuda.core import TensorMapDescriptor as _CoreDescriptor
except ImportError:
    class _CoreDescriptor:
        """A cuda.core without descriptors of its own: nothing is an instance."""

cdef enum:  # CUlaunchAttributeID
    ATTRIBUTE_COOPERATIVE = 2
    ATTRIBUTE_CLUSTER_DIMENSION = 4
    ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
    MAX_ATTRIBUTES = 3

_CData = ctypes.c_int.__mro__[-2]  # the base of every ctypes value; ctypes gives it no public name
_CTYPES_KINDS = {"f": "float", "d": "float", "?": "bool", "P": "pointer", "z": "pointer", "Z": "pointer"}
_INT_RANGES = {size: (-(2 ** (8 * size - 1)), 2 ** (8 * size)) for size in (1, 2, 4, 8)}  # signed or unsigned
_NUMPY_KINDS = {"i": "integer", "u": "integer", "f": "float", "b": "bool"}


cdef class Signature:
    """A kernel's parameters: where each lies in the parameter block, its size, and its kind where its name tells."""

    cdef CUfunction function
    cdef readonly str name
    cdef readonly tuple kinds  # one for each parameter: "integer", "float", "bool", "pointer" or None
    cdef Py_ssize_t count
    cdef size_t block_bytes
    cdef size_t* offsets
    cdef size_t* sizes

    def __dealloc__(self):
        PyMem_Free(self.offsets)
        PyMem_Free(self.sizes)


cdef object _signatures = weakref.WeakKeyDictionary()  # Kernel: Signature


cdef Signature signature_of(object kernel):
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel is a {type(kernel).__name__}; launch takes a cuda.core.Kernel (ObjectCode.get_kernel)")
    cdef Signature signature = _signatures.get(kernel)
    if signature is None:
        signature = _read_signature(kernel)
        _signatures[kernel] = signature
    return signature


cdef Signature _read_signature(object kernel):
    cdef Signature signature = Signature.__new__(Signature)
    cdef const char* name = NULL
    cdef size_t offset, size
    cdef Py_ssize_t index
    signature.function = <CUfunction><uintptr_t>int(kernel.handle)
    if driver.cuKernelGetParamInfo == NULL:
        raise RuntimeError("launch checks arguments against the kernel's parameters, which needs driver 550 "
                           "(CUDA 12.4) or later")
    while driver.cuKernelGetParamInfo(signature.function, signature.count, &offset, &size) == CUDA_SUCCESS:
        signature.count += 1
    signature.offsets = <size_t*>PyMem_Malloc((signature.count + 1) * sizeof(size_t))
    signature.sizes = <size_t*>PyMem_Malloc((signature.count + 1) * sizeof(size_t))
    if signature.offsets == NULL or signature.sizes == NULL:
        raise MemoryError
    for index in range(signature.count):
        driver.cuKernelGetParamInfo(signature.function, index, &signature.offsets[index], &signature.sizes[index])
        signature.block_bytes = signature.offsets[index] + signature.sizes[index]
    if driver.cuKernelGetName != NULL and driver.cuKernelGetName(&name, signature.function) == CUDA_SUCCESS:
        signature.name = name.decode()
        kinds = parameter_kinds(signature.name)
        if kinds is not None and len(kinds) == signature.count:
            signature.kinds = kinds
    if signature.kinds is None:
        signature.kinds = (None,) * signature.count
    return signature


cdef class Arguments:
    """Packed arguments: the block of values, the driver's array of pointers into it, and what must live until launch."""

    cdef unsigned char* block
    cdef void** pointers
    cdef list kept

    def __cinit__(self, Signature signature):
        self.block = <unsigned char*>PyMem_Malloc(signature.block_bytes + 1)
        self.pointers = <void**>PyMem_Malloc((signature.count + 1) * sizeof(void*))
        self.kept = []
        if self.block == NULL or self.pointers == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.block)
        PyMem_Free(self.pointers)


cdef object _mismatch(Signature signature, Py_ssize_t index, str given, str remedy=""):
    size = signature.sizes[index]
    kind = signature.kinds[index]
    wanted = f"a {kind} of {size} bytes" if kind else f"{size} bytes"
    if size == MAP_BYTES and not remedy:
        remedy = "; a parameter of 128 bytes takes a TensorMapDescriptor"
    return TypeError(f"argument {index} of kernel {signature.name or '?'}: the parameter takes {wanted}, "
                     f"and {given} was given{remedy}")


cdef int pack(Arguments arguments, Signature signature, Py_ssize_t index, object value) except -1:
    cdef unsigned char* slot = arguments.block + signature.offsets[index]
    cdef type value_type = type(value)
    arguments.pointers[index] = slot
    if value_type is TensorMapDescriptor:
        _require_map_parameter(signature, index, value)
        arguments.pointers[index] = (<TensorMapDescriptor>value).map()
    elif value_type is int:
        _pack_int(signature, index, value, slot)
    elif value_type is bool:
        _pack_bool(signature, index, value, slot)
    elif value_type is float:
        _pack_float(signature, index, value, slot)
    elif isinstance(value, Buffer):
        _pack_pointer(signature, index, value, int(value.handle), slot)
    elif isinstance(value, np.generic):
        _pack_bytes(signature, index, value, _NUMPY_KINDS.get(value.dtype.kind), slot)
    elif isinstance(value, _CData):
        _pack_bytes(signature, index, value, _ctypes_kind(value), slot)
    elif isinstance(value, int):
        _pack_int(signature, index, int(value), slot)
    elif isinstance(value, float):
        _pack_float(signature, index, value, slot)
    elif isinstance(value, complex):
        _pack_complex(signature, index, value, slot)
    elif isinstance(value, _CoreDescriptor):
        _require_map_parameter(signature, index, value)
        holder = ParamHolder((value,))  # cuda.core's own way to the 128 bytes
        arguments.kept.append(holder)
        arguments.pointers[index] = (<void**><uintptr_t>holder.ptr)[0]
    else:
        _pack_array(signature, index, value, slot)
    return 0


cdef int _require_map_parameter(Signature signature, Py_ssize_t index, object value) except -1:
    if signature.sizes[index] != MAP_BYTES:
        raise _mismatch(signature, index, f"a {type(value).__name__} (128 bytes)",
                        "; declare the parameter as const __grid_constant__ CUtensorMap, by value")
    return 0


cdef int _pack_int(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    """An int takes the parameter's own size; its value must fit it, signed or unsigned."""
    cdef size_t size = signature.sizes[index]
    cdef object kind = signature.kinds[index]
    cdef uint64_t bits
    if size not in _INT_RANGES or kind == "float" or kind == "bool":
        raise _mismatch(signature, index, f"the int {value}",
                        f"; pass {value}.0" if kind == "float" else f"; pass bool({value})" if kind == "bool" else "")
    lowest, beyond = _INT_RANGES[size]
    if not lowest <= value < beyond:
        raise OverflowError(f"argument {index} of kernel {signature.name or '?'}: {value} does not fit the parameter's "
                            f"{size} bytes, which hold {lowest} to {beyond - 1}")
    bits = value & 0xFFFFFFFFFFFFFFFF
    memcpy(slot, &bits, size)  # little-endian, as CUDA's hosts are
    return 0


cdef int _pack_bool(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    if signature.sizes[index] != 1 or signature.kinds[index] in ("float", "pointer"):
        raise _mismatch(signature, index, f"the bool {value} (1 byte)", f"; pass int({value})")
    slot[0] = value
    return 0


cdef int _pack_float(Signature signature, Py_ssize_t index, double value, unsigned char* slot) except -1:
    cdef float single = <float>value
    cdef size_t size = signature.sizes[index]
    kind = signature.kinds[index]
    if size not in (4, 8) or (kind is not None and kind != "float"):
        raise _mismatch(signature, index, f"the float {value}",
                        "; pass numpy.float16(value) for a half" if size == 2 else "")
    if size == 4:
        memcpy(slot, &single, 4)
    else:
        memcpy(slot, &value, 8)
    return 0


cdef int _pack_complex(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    cdef size_t size = signature.sizes[index]
    if size not in (8, 16) or signature.kinds[index] is not None:
        raise _mismatch(signature, index, f"the complex {value}")
    return _pack_bytes(signature, index, np.complex64(value) if size == 8 else np.complex128(value), None, slot)


cdef int _pack_bytes(Signature signature, Py_ssize_t index, object value, object kind, unsigned char* slot) except -1:
    """A numpy scalar (structured ones too) or a ctypes value: its bytes, which must be as many as the parameter's."""
    cdef Py_buffer buffer
    wanted = signature.kinds[index]
    PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    try:
        if buffer.len != <Py_ssize_t>signature.sizes[index] or not _kinds_agree(kind, wanted):
            raise _mismatch(signature, index, f"{value!r} ({type(value).__name__}, {buffer.len} bytes)")
        memcpy(slot, buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


def _kinds_agree(given, wanted):
    """Integers, bools and pointers of the right size stand for each other; a float stands for a float alone."""
    return given is None or wanted is None or (given == "float") == (wanted == "float")


def _ctypes_kind(value):
    code = getattr(value, "_type_", None)
    if not isinstance(code, str):
        return None if not isinstance(value, ctypes._Pointer) else "pointer"
    return _CTYPES_KINDS.get(code, "integer")


cdef int _pack_pointer(
        Signature signature, Py_ssize_t index, object value, uint64_t address, unsigned char* slot) except -1:
    if signature.sizes[index] != 8 or signature.kinds[index] not in (None, "pointer", "integer"):
        raise _mismatch(signature, index, f"the address of a {type(value).__name__} (8 bytes)")
    memcpy(slot, &address, 8)
    return 0


cdef int _pack_array(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    """An array: the address of its first element. A driver handle that is an int in disguise: that int."""
    cdef ExportedTensor exported
    if type(value).__module__.startswith("cuda.bindings") and hasattr(value, "__int__"):
        return _pack_pointer(signature, index, value, int(value), slot)
    try:
        exported = export(value)
    except TensorMapError as error:
        raise _mismatch(signature, index, f"a {type(value).__name__}", f" ({error})") from None
    if exported.layout.device_type == kDLCPU:
        _require_device_readable(signature, index, exported)
    return _pack_pointer(signature, index, value, exported.address(), slot)


cdef int _require_device_readable(Signature signature, Py_ssize_t index, ExportedTensor exported) except -1:
    """The driver knows pinned memory, which some exporters call the CPU's."""
    cdef unsigned int memory_type = 0
    if driver.cuPointerGetAttribute(&memory_type, 2, exported.address()) != CUDA_SUCCESS:
        raise TypeError(f"argument {index} of kernel {signature.name or '?'}: "
                        f"{refusals.host_memory(exported.address())}")
    return 0


cdef CUstream stream_handle(object stream) except? NULL:
    """The handle of a Stream, a GraphBuilder, or anything with ``__cuda_stream__``."""
    if isinstance(stream, Stream):
        if _is_closed(stream):
            raise ValueError("the stream is closed; launch on an open one (Device().create_stream())")
        return <CUstream><uintptr_t>int(stream.handle)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise ValueError(f"the stream's __cuda_stream__ is of version {version}; version 0 is known")
        return <CUstream><uintptr_t>int(handle)
    if hasattr(stream, "stream"):  # a GraphBuilder captures on a stream of its own
        return stream_handle(stream.stream)
    raise TypeError(f"stream is a {type(stream).__name__}; launch takes a cuda.core.Stream, a GraphBuilder or an object "
                    "with __cuda_stream__")


cdef bint _is_closed(object stream) except -1:
    """Whether a Stream was closed. cuda.core before 1.2 has no is_closed; a closed stream's handle is then None or 0."""
    closed = getattr(stream, "is_closed", None)
    if closed is not None:
        return closed
    handle = stream.handle
    return handle is None or int(handle) == 0


cdef int _read_config(object config, LaunchConfigC* native, LaunchAttribute* attributes) except -1:
    cdef uint32_t count = 0
    memset(native, 0, sizeof(LaunchConfigC))
    memset(attributes, 0, MAX_ATTRIBUTES * sizeof(LaunchAttribute))
    cluster = config.cluster or (1, 1, 1)
    for axis in range(3):
        native.grid_dim[axis] = config.grid[axis] * cluster[axis]  # LaunchConfig.grid counts clusters
        native.block_dim[axis] = config.block[axis]
    native.shared_mem_bytes = config.shmem_size
    if config.cluster:
        attributes[count].id = ATTRIBUTE_CLUSTER_DIMENSION
        for axis in range(3):
            attributes[count].value[axis] = cluster[axis]
        count += 1
    if config.is_cooperative:
        attributes[count].id = ATTRIBUTE_COOPERATIVE
        attributes[count].value[0] = 1
        count += 1
    if getattr(config, "programmatic_stream_serialization", False):  # cuda.core 1.2 and later
        attributes[count].id = ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attributes[count].value[0] = 1
        count += 1
    native.attributes = attributes
    native.attribute_count = count
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
    cdef LaunchConfigC native
    cdef LaunchAttribute attributes[MAX_ATTRIBUTES]
    cdef CUresult result
    ensure_driver()
    cdef CUstream handle = stream_handle(stream)
    cdef Signature signature = signature_of(kernel)
    if len(args) != signature.count:
        raise TypeError(f"kernel {signature.name or '?'} takes {signature.count} arguments, and {len(args)} were given")
    _read_config(config if isinstance(config, LaunchConfig) else LaunchConfig(**config), &native, attributes)
    native.stream = handle
    cdef Arguments arguments = Arguments(signature)
    for index in range(signature.count):
        value = args[index]
        pack(arguments, signature, index, value)
        if type(value) is TensorMapDescriptor:
            _require_context(<TensorMapDescriptor>value, index, handle)
    with nogil:  # a full queue blocks, and what empties it may need the GIL
        result = driver.cuLaunchKernelEx(&native, signature.function, arguments.pointers, NULL)
    if result != CUDA_SUCCESS:
        raise CUDAError(f"{error_name(result)}: the driver refused to launch {signature.name or 'the kernel'} "
                        f"with {config!r}")


cdef int _require_context(TensorMapDescriptor descriptor, Py_ssize_t index, CUstream stream) except -1:
    cdef CUcontext context = NULL
    cdef int device_id = -1
    if driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS and context != descriptor._context:
        driver.cuCtxGetDevice(&device_id)
        raise TensorMapError(
            f"argument {index}: the descriptor was made on device {descriptor._device_id} in context "
            f"{<uintptr_t>descriptor._context:#x}, and the launch is in context {<uintptr_t>context:#x} (current device "
            f"{device_id}); a tensor map is valid in its own context. Make one with device {device_id} current")
    return 0
