"""TensorMapDescriptor: the 128 bytes, what they describe, what keeps that alive, and where they are valid."""

cimport cython
from cpython.object cimport PyObject
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

from ._arguments cimport SMALL, Compilable, CompiledOptions, TensorArguments, arguments_of, compiled, describe
from ._dlpack cimport (
    DLTensor, address_of, dtype_key, kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged, shape_of, strides_of)
from ._driver cimport (
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS, CUcontext, CUresult,
    driver, ensure_driver, error_name, require_success)
from ._export cimport Reading, has_moved, read, source_of

from . import refusals
from ._dlpack import dtype_name_of
from .codec import decode
from .enums import TensorMapDataType, TensorMapSwizzle
from .errors import TensorMapError
from .explain import refusal
from .options import TensorMapIm2colWideOptions, options_from, options_of
from .params import TiledParams
from .rules import check
from .swizzle import pixels, smem_alignment, smem_bytes, smem_layout, tx_bytes

cdef extern from *:
    """
    /* Let `first` have the calls of a function, and return what had them. PEP 590. */
    static vectorcallfunc take_calls(PyObject *function, vectorcallfunc first) {
        vectorcallfunc before = ((PyCFunctionObject *)function)->vectorcall;
        ((PyCFunctionObject *)function)->vectorcall = first;
        return before;
    }
    """
    ctypedef object (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*)
    vectorcallfunc take_calls(object function, vectorcallfunc first)
    Py_ssize_t PyVectorcall_NARGS(size_t)

cdef enum:  # values of CUdevice_attribute, CUpointer_attribute and CUmemorytype
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    POINTER_MEMORY_TYPE = 2
    POINTER_IS_MANAGED = 8
    POINTER_DEVICE_ORDINAL = 9
    MEMORYTYPE_HOST = 1


cdef int require_access(DLTensor* tensor, int device_id) except -1:
    """Refuse memory that a device cannot read. Pinned and managed memory is every device's."""
    cdef uint64_t address = address_of(tensor)
    if address == 0:
        raise refusals.no_memory()
    if tensor.device_type == kDLCUDA and tensor.device_id == device_id:
        return 0
    if tensor.device_type == kDLCPU or tensor.device_type == 0:
        # Memory stays where it is: what is found is kept, so that a view that is used again need not ask again.
        tensor.device_type = memory_type(address, <int*>&tensor.device_id)
    if tensor.device_type == kDLCUDA:
        if tensor.device_id != device_id and not _is_managed(address):
            raise refusals.other_device(tensor.device_id, device_id)
    elif tensor.device_type != kDLCUDAHost and tensor.device_type != kDLCUDAManaged:
        raise refusals.device_type(tensor.device_type)
    return 0


cdef int memory_type(uint64_t address, int* device_id) except -1:
    """Ask the driver whose memory it is, where the exporter did not say or called pinned memory the CPU's.

    Returns a DLDeviceType, and for kDLCUDA the device.
    """
    cdef unsigned int kind = 0
    cdef CUresult result = driver.cuPointerGetAttribute(&kind, POINTER_MEMORY_TYPE, address)
    if result == CUDA_ERROR_INVALID_VALUE:
        raise refusals.host_memory(address)
    require_success(result, "cuPointerGetAttribute")
    if _is_managed(address):
        return kDLCUDAManaged
    if kind == MEMORYTYPE_HOST:
        return kDLCUDAHost
    require_success(driver.cuPointerGetAttribute(device_id, POINTER_DEVICE_ORDINAL, address), "cuPointerGetAttribute")
    return kDLCUDA


cdef bint _is_managed(uint64_t address) noexcept:
    """Whether it is managed memory, which an exporter may call one device's."""
    cdef unsigned int is_managed = 0
    return driver.cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address) == CUDA_SUCCESS and is_managed


cdef int fill_buffer(Py_buffer* buffer, object owner, void* data, Py_ssize_t size_bytes, int flags) except -1:
    """A read-only view of bytes that `owner` holds (PEP 3118)."""
    if flags & PyBUF_WRITABLE:
        raise BufferError(f"a {type(owner).__name__} is read-only; it has a method that replaces addresses")
    buffer.buf = data
    buffer.obj = owner
    buffer.len = size_bytes
    buffer.readonly = 1
    buffer.itemsize = 1
    buffer.format = <char*>b"B" if flags & PyBUF_FORMAT else NULL
    buffer.ndim = 1
    buffer.shape = &buffer.len if flags & PyBUF_ND else <Py_ssize_t*>NULL
    buffer.strides = &buffer.itemsize if flags & PyBUF_STRIDES == PyBUF_STRIDES else <Py_ssize_t*>NULL
    buffer.suboffsets = NULL
    buffer.internal = NULL
    return 0


cdef object _driver_refusal(CUresult result, object params, str dtype_name, int device_id):
    """What to say when the driver refused. Off the hot path: the rules are asked only now."""
    if result == CUDA_ERROR_INVALID_CONTEXT:
        return refusals.no_context()
    if result == CUDA_ERROR_NOT_SUPPORTED:
        return refusals.no_im2col_wide()
    if result != CUDA_ERROR_INVALID_VALUE:
        return TensorMapError(f"the driver's encoder failed with {error_name(result)}, whatever the arguments")
    return refusal(params, check(params, compute_capability=_compute_capability(device_id)), dtype_name=dtype_name)


cdef tuple _compute_capability(int device_id):
    cdef int major = 0, minor = 0
    require_success(driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id), "cuDeviceGetAttribute")
    require_success(driver.cuDeviceGetAttribute(&minor, COMPUTE_CAPABILITY_MINOR, device_id), "cuDeviceGetAttribute")
    return major, minor


@cython.final
@cython.freelist(16)
cdef class TensorMapDescriptor:
    """A tensor map: 128 bytes that tell the TMA engine where a tensor lies and which tiles to move.

    Made by :func:`cuda_tma.create_tensor_map`, ``Device.create_tensor_map`` or ``StridedMemoryView.as_tensor_map``,
    and passed by value to a kernel whose parameter is ``const __grid_constant__ CUtensorMap`` by
    :func:`cuda_tma.launch`.

    It owns what keeps the tensor's memory alive: the DLPack export, or for torch the storage, so that neither
    deleting the tensor nor ``x.data = ...`` frees the memory under it. One thing no owner survives is a storage that
    is resized in place (``x.untyped_storage().resize_(n)``): ask :meth:`is_stale`.
    """

    def __init__(self):
        raise TypeError("make a TensorMapDescriptor with cuda_tma.create_tensor_map(tensor, options), "
                        "Device().create_tensor_map or StridedMemoryView.as_tensor_map")

    cdef void* map(self) noexcept:
        return <void*>((<uintptr_t>self._storage + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))

    @property
    def params(self):
        """What the map says, in driver order, read off the 128 bytes: a :class:`TiledParams`, :class:`Im2colParams` or
        :class:`Im2colWideParams`. (That an im2col map is a wide one, its bytes do not say: its options do.)
        """
        params = decode(bytes(self))
        return self._options.widen(params) if isinstance(self._options, TensorMapIm2colWideOptions) else params

    @property
    def tensor(self):
        """The tensor that is described and kept alive; None after ``replace_address`` with an integer."""
        return self._tensor

    @property
    def device(self):
        """The :class:`cuda_tma.Device` on which it is valid."""
        from .device import Device

        return Device(self._device_id)

    @property
    def context(self):
        """The CUcontext in which it was made and may be launched, as an int."""
        return <uintptr_t>self._context

    @property
    def address(self):
        """Host address of the 128 bytes, a multiple of 128."""
        return <uintptr_t>self.map()

    @property
    def tx_bytes(self):
        """Bytes that one load delivers, out-of-bounds fill included: what the kernel tells ``expect_tx``."""
        return tx_bytes(self.params)

    @property
    def smem_bytes(self):
        """Bytes of shared memory that one load needs: more than :attr:`tx_bytes` where a swizzle pads rows."""
        return smem_bytes(self.params)

    @property
    def smem_alignment(self):
        """Alignment in bytes that the destination in shared memory needs."""
        return smem_alignment(self.params)

    def smem_layout(self):
        """Where each element of the box lies in shared memory, as a CuTe layout (needs ``tensor-layouts``).

        See :func:`cuda_tma.swizzle.smem_layout`.
        """
        return smem_layout(self.params)

    def _repr_html_(self):
        """For notebooks: every parameter in words, and shared memory as banks."""
        from .html import descriptor_html  # here, since it may draw

        return descriptor_html(self.params, repr(self))

    @staticmethod
    def from_bytes(raw, tensor=None):
        """Adopt a tensor map made elsewhere (CUTLASS, Triton, CuTe DSL), for the current context.

        Parameters
        ----------
        raw : bytes-like
            128 bytes.
        tensor : tensor, optional
            What to keep alive. The map must begin at its first element.

        Returns
        -------
        TensorMapDescriptor
            With these very bytes.

        Raises
        ------
        TensorMapError
            If they are no tensor map, or one that the driver would refuse to make, or one of another tensor.
        """
        cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
        cdef Reading reading
        cdef bytes data = bytes(raw)
        params = decode(data)
        enter_context(&descriptor._context, &descriptor._device_id)
        violations = check(params, compute_capability=_compute_capability(descriptor._device_id))
        if violations:
            raise refusal(params, violations)
        if tensor is not None:
            owner = read(tensor, &reading)
            require_access(reading.tensor, descriptor._device_id)
            if address_of(reading.tensor) != params.global_address:
                raise refusals.adopted_address(params.global_address, address_of(reading.tensor))
            descriptor._tensor, descriptor._owner = source_of(tensor, owner), owner
        memcpy(descriptor.map(), <const char*>data, MAP_BYTES)
        arguments_of(params, &descriptor._arguments)
        descriptor._options = options_of(params)
        return descriptor

    def is_stale(self):
        """Whether the tensor's elements are now elsewhere than the map says.

        Asks the tensor for its present address. True after ``x.data = ...`` (the map still shows the old memory, which
        it keeps alive) and after an in-place resize of the storage (which frees the memory in spite of every owner).
        False where there is no tensor to ask.
        """
        return self._tensor is not None and has_moved(self._tensor, self._owner, self._arguments.global_address)

    def replace_address(self, tensor):
        """Point the map at another tensor of the same device, dtype, shape and strides, in place.

        Parameters
        ----------
        tensor : tensor or int
            An int is a device address. Of that only the alignment is checked, and nothing is kept alive.

        Raises
        ------
        TensorMapError
            If anything but the address differs. The descriptor is then as it was.
        """
        cdef Reading reading
        if isinstance(tensor, int):
            self._put_address(_address(tensor, self._arguments.alignment_bytes))
            self._tensor = self._owner = None
            return
        owner = read(tensor, &reading)
        self._require_same_tensor(reading.tensor)
        self._put_address(address_of(reading.tensor))
        self._tensor, self._owner = source_of(tensor, owner), owner

    cdef int _require_same_tensor(self, DLTensor* tensor) except -1:
        cdef TensorArguments other
        require_access(tensor, self._device_id)
        if self._dtype != 0 and dtype_key(tensor) != self._dtype:
            raise refusals.replacement("dtype", dtype_name_of(dtype_key(tensor)), dtype_name_of(self._dtype))
        if <uint32_t>tensor.ndim != self._arguments.rank:
            raise refusals.replacement("shape", shape_of(tensor), self._shape())
        describe(tensor, self._options, compiled(self._options), &other)
        if other.data_type != self._arguments.data_type:
            raise refusals.replacement(
                "dtype", dtype_name_of(dtype_key(tensor)), TensorMapDataType(self._arguments.data_type).short_name)
        if memcmp(other.global_dim, self._arguments.global_dim, sizeof(other.global_dim)):
            raise refusals.replacement("shape", shape_of(tensor), self._shape())
        if memcmp(other.global_strides, self._arguments.global_strides, sizeof(other.global_strides)):
            old = tuple([self._arguments.global_strides[index] for index in range(other.rank - 1)])
            new = tuple([other.global_strides[index] for index in range(other.rank - 1)])
            raise refusals.replacement("strides (bytes, outermost first)", new[::-1], old[::-1])
        return 0

    cdef int _put_address(self, uint64_t address) except -1:
        cdef CUresult result
        cdef unsigned char before[MAP_BYTES]
        if address % self._arguments.alignment_bytes:
            raise refusals.replacement_address(address, self._arguments.alignment_bytes)
        ensure_driver()
        memcpy(before, self.map(), MAP_BYTES)
        result = driver.cuTensorMapReplaceAddress(self.map(), <void*><uintptr_t>address)
        if result != CUDA_SUCCESS:
            memcpy(self.map(), before, MAP_BYTES)
            require_success(result, "cuTensorMapReplaceAddress")
        self._arguments.global_address = address
        return 0

    def _shape(self):
        return tuple([self._arguments.global_dim[index] for index in range(self._arguments.rank)])[::-1]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(buffer, self, self.map(), MAP_BYTES, flags)

    def __bytes__(self):
        return (<const char*>self.map())[:MAP_BYTES]

    def __eq__(self, other):
        if not isinstance(other, TensorMapDescriptor):
            return NotImplemented
        return memcmp(self.map(), (<TensorMapDescriptor>other).map(), MAP_BYTES) == 0

    def __repr__(self):
        params = self.params
        mode = type(params).__name__.removesuffix("Params").lower()
        data_type = TensorMapDataType(params.data_type).short_name
        dtype = dtype_name_of(self._dtype) if self._dtype else data_type.lower()
        moved_as = "" if data_type.lower() == dtype else f" as {data_type}"
        if isinstance(params, TiledParams):
            box = f"box {params.box_dim[::-1]}"
        else:
            box = f"column {pixels(params)} pixels of {params.channels_per_pixel} channels"
        return (f"TensorMapDescriptor({mode}, rank {params.rank}, {dtype}{moved_as} {params.global_dim[::-1]}, {box}, "
                f"swizzle {TensorMapSwizzle(params.swizzle).short_name}, device {self._device_id})")


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
    return _create(tensor, _chosen(
        options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class))


cdef vectorcallfunc _create_tensor_map = take_calls(create_tensor_map, _create_from_two)


cdef object _create_from_two(PyObject* function, PyObject* const* arguments, size_t count, PyObject* names):
    """create_tensor_map(tensor, options), as most calls are, without a look at the eight keywords."""
    if PyVectorcall_NARGS(count) == 2 and names == NULL and isinstance(<object>arguments[1], Compilable):
        return _create(<object>arguments[0], <object>arguments[1])
    return _create_tensor_map(function, arguments, count, names)


def as_tensor_map(
        self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None, swizzle=None,
        l2_promotion=None, oob_fill=None, allocation_class=None):
    """Make a descriptor of this view: :func:`create_tensor_map` with cuda.core's order of arguments."""
    return _create(self, _chosen(
        options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class))


cdef inline object _chosen(
        object options, object box_dim, object element_strides, object data_type, object interleave, object swizzle,
        object l2_promotion, object oob_fill, object allocation_class):
    """Our options as they are; from everything else, options."""
    if isinstance(options, Compilable) and (
        box_dim is element_strides is data_type is interleave is swizzle is l2_promotion is oob_fill
        is allocation_class is None
    ):
        return options
    return options_from(
        options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class)


cdef TensorMapDescriptor _create(object tensor, Compilable options):
    cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
    cdef Reading reading
    cdef CompiledOptions values = compiled(options)
    owner = read(tensor, &reading)
    describe(reading.tensor, options, values, &descriptor._arguments)
    enter_context(&descriptor._context, &descriptor._device_id)
    require_access(reading.tensor, descriptor._device_id)
    encode(descriptor.map(), reading.tensor, values, &descriptor._arguments, descriptor._device_id)
    descriptor._dtype = dtype_key(reading.tensor)
    descriptor._tensor, descriptor._owner = source_of(tensor, owner), owner
    descriptor._options = options
    return descriptor


cdef int encode(
        void* target, DLTensor* tensor, CompiledOptions values, TensorArguments* arguments, int device_id) except -1:
    """Have the driver write the 128 bytes, or explain why it does not."""
    cdef CUresult result = values.encode(target, arguments)
    if result != CUDA_SUCCESS:
        raise _driver_refusal(result, values.params(arguments), dtype_name_of(dtype_key(tensor)), device_id)
    if driver.cuTensorMapSetAllocationClass != NULL:
        result = driver.cuTensorMapSetAllocationClass(
            target, SMALL if values.allocation_class < 0 else values.allocation_class, NULL)
        require_success(result, "cuTensorMapSetAllocationClass")
    elif values.allocation_class >= 0:
        raise refusals.allocation_class(values.allocation_class)
    return 0


cdef uint64_t _address(object address, uint64_t alignment_bytes) except 0:
    """An int as a device address."""
    cdef uint64_t value = 0
    try:
        value = address
    except OverflowError:
        pass
    if value == 0:
        raise refusals.replacement_address(address, alignment_bytes)
    return value


cdef CUcontext _last_context = NULL
cdef int _last_device = 0


cdef int enter_context(CUcontext* context, int* device_id) except -1:
    """The context and device in which a map is made.

    The device of the last context is remembered: asking costs as much as a fifth of the driver's encode. Should a
    context be destroyed and its handle be given to one of another device, then no worse follows than that memory is
    judged by the old device.
    """
    global _last_context, _last_device
    ensure_driver()
    if driver.cuCtxGetCurrent(context) != CUDA_SUCCESS or context[0] == NULL:
        raise refusals.no_context()
    if context[0] != _last_context:
        require_success(driver.cuCtxGetDevice(&_last_device), "cuCtxGetDevice")
        _last_context = context[0]
    device_id[0] = _last_device
    return 0
