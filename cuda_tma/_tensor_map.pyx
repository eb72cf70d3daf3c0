"""TensorMapDescriptor: the 128 bytes, what they describe, what keeps that alive, and where they are valid."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

from . import refusals
from ._dlpack cimport DLTensor, ExportedTensor, export, kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
from ._driver cimport (
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUresult, driver, ensure_driver,
    error_name)

from .data_type import DLPACK_NAMES, data_type_of, element_bits, is_packed
from .enums import TensorMapDataType, TensorMapInterleave, TensorMapSwizzle
from .errors import TensorMapError
from .params import TiledParams

cdef enum:  # CUdevice_attribute, CUpointer_attribute and CUmemorytype
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    POINTER_MEMORY_TYPE = 2
    POINTER_IS_MANAGED = 8
    POINTER_DEVICE_ORDINAL = 9
    MEMORYTYPE_HOST = 1

# data_type.py's tables as C arrays. _INFERRED is indexed by DLPack code and log2 of the element's bytes.
cdef enum:
    CODES = 32
    ASK = 255  # no type follows from the dtype: data_type_of() says why
cdef unsigned char _INFERRED[CODES][4]
cdef unsigned char _ELEMENT_BITS[16]
memset(_INFERRED, ASK, sizeof(_INFERRED))
for _code, _bits, _lanes in DLPACK_NAMES:
    if _lanes == 1 and _bits <= 64:
        _INFERRED[_code][_bits.bit_length() - 4] = data_type_of(DLPACK_NAMES[_code, _bits, _lanes])
for _data_type in TensorMapDataType:
    _ELEMENT_BITS[<int>_data_type] = element_bits(_data_type)


cdef class CompiledOptions:
    """TensorMapOptions as C values, still in tensor order."""

    cdef uint32_t box_dim[MAX_RANK]
    cdef uint32_t element_strides[MAX_RANK]
    cdef int box_rank, element_strides_rank
    cdef int data_type  # -1: follows from the dtype
    cdef uint32_t interleave, swizzle, l2_promotion, oob_fill


cdef CompiledOptions compiled(object options):
    """The options' C values, made at first use and kept on the (frozen) options."""
    cdef CompiledOptions values = options._compiled
    if values is None:
        values = CompiledOptions.__new__(CompiledOptions)
        values.box_rank = _fill(values.box_dim, "box_dim", options.box_dim)
        if options.element_strides is None:
            values.element_strides_rank = values.box_rank
            for dim in range(MAX_RANK):
                values.element_strides[dim] = 1
        else:
            values.element_strides_rank = _fill(values.element_strides, "element_strides", options.element_strides)
        values.data_type = -1 if options.data_type is None else options.data_type
        values.interleave = options.interleave
        values.swizzle = options.swizzle
        values.l2_promotion = options.l2_promotion
        values.oob_fill = options.oob_fill
        object.__setattr__(options, "_compiled", values)
    return values


cdef int _fill(uint32_t* target, str name, tuple values) except -1:
    for dim, value in enumerate(values[:MAX_RANK]):
        if not 0 <= value < 2**32:
            raise refusals.option_range(name, dim, value)
        target[dim] = value
    return <int>len(values)


cdef int resolve_data_type(ExportedTensor tensor, int requested) except -1:
    """The data type: the one asked for, if its elements are the tensor's; else the one that follows from the dtype."""
    cdef DLTensor* layout = &tensor.layout
    cdef uint32_t storage_bits = layout.bits * layout.lanes
    cdef uint32_t index
    if requested >= 0:
        if storage_bits != (8 if _ELEMENT_BITS[requested] < 8 else _ELEMENT_BITS[requested]):
            raise refusals.element_size(requested, tensor.dtype_name, storage_bits)
        return requested
    if layout.lanes == 1 and layout.code < CODES and storage_bits in (8, 16, 32, 64):
        index = 0 if storage_bits == 8 else 1 if storage_bits == 16 else 2 if storage_bits == 32 else 3
        if _INFERRED[layout.code][index] != ASK:
            return _INFERRED[layout.code][index]
    return data_type_of(tensor.dtype_name)


cdef int tiled_arguments(ExportedTensor tensor, object options, TiledArguments* arguments) except -1:
    """The one way from (tensor, options) to driver order: index 0 innermost, strides in bytes.

    A dimension of extent 1 gets the stride that a contiguous tensor would have there, rounded up to a legal one: any
    stride addresses it correctly, and torch keeps some that the driver refuses.
    """
    cdef CompiledOptions values = compiled(options)
    cdef DLTensor* layout = &tensor.layout
    cdef int rank = layout.ndim
    cdef int index, dim
    cdef int64_t extent, stride
    cdef int64_t elements = 1           # the contiguous stride of the present dimension
    cdef uint64_t element_bytes = layout.bits * layout.lanes // 8
    cdef uint64_t span_bytes = 0        # from the first byte of one index to the next of the dimension outside

    if rank < 1 or rank > MAX_RANK:
        raise refusals.rank(tensor.shape)
    if values.box_rank != rank:
        raise refusals.option_length("box_dim", options.box_dim, tensor.shape)
    if values.element_strides_rank != rank:
        raise refusals.option_length("element_strides", options.element_strides, tensor.shape)
    if values.interleave == 0 and values.element_strides[rank - 1] != 1:
        raise refusals.innermost_element_stride(options.element_strides)

    memset(arguments, 0, sizeof(TiledArguments))
    arguments.data_type = resolve_data_type(tensor, values.data_type)
    arguments.rank = rank
    arguments.global_address = tensor.address()
    arguments.interleave = values.interleave
    arguments.swizzle = values.swizzle
    arguments.l2_promotion = values.l2_promotion
    arguments.oob_fill = values.oob_fill
    for index in range(rank):
        dim = rank - 1 - index
        extent = layout.shape[dim]
        stride = elements if layout.strides == NULL else layout.strides[dim]
        if extent < 1:
            raise refusals.empty(tensor.shape)
        if extent > 1 and index == 0 and stride != 1:
            raise refusals.innermost_stride(tensor.shape, tensor.strides)
        if extent > 1 and stride < 0:
            raise refusals.negative_stride(dim, tensor.strides)
        if index == 0:
            span_bytes = element_bytes
        else:
            span_bytes = (span_bytes + 31) // 32 * 32 if extent == 1 else <uint64_t>stride * element_bytes
            arguments.global_strides[index - 1] = span_bytes
        span_bytes *= extent
        elements *= extent
        arguments.global_dim[index] = extent
        arguments.box_dim[index] = values.box_dim[dim]
        arguments.element_strides[index] = values.element_strides[dim]
    if _ELEMENT_BITS[arguments.data_type] < 8:
        _count_packed_elements(arguments)
    return 0


cdef int _count_packed_elements(TiledArguments* arguments) except -1:
    cdef uint64_t bits = arguments.global_dim[0] * 8
    if bits % _ELEMENT_BITS[arguments.data_type]:
        raise refusals.packed_extent(arguments.data_type, arguments.global_dim[0])
    arguments.global_dim[0] = bits // _ELEMENT_BITS[arguments.data_type]
    return 0


cdef object params_of_arguments(TiledArguments* arguments):
    rank = arguments.rank
    return TiledParams(
        data_type=arguments.data_type,
        global_address=arguments.global_address,
        global_dim=tuple([arguments.global_dim[index] for index in range(rank)]),
        global_strides=tuple([arguments.global_strides[index] for index in range(rank - 1)]),
        box_dim=tuple([arguments.box_dim[index] for index in range(rank)]),
        element_strides=tuple([arguments.element_strides[index] for index in range(rank)]),
        interleave=arguments.interleave,
        swizzle=arguments.swizzle,
        l2_promotion=arguments.l2_promotion,
        oob_fill=arguments.oob_fill,
    )


def tiled_params(ExportedTensor tensor, options):
    """The parameters that a tensor and options make, without asking the driver.

    Parameters
    ----------
    tensor : ExportedTensor
        From ``describe_tensor`` or ``export_tensor``.
    options : TensorMapOptions

    Returns
    -------
    TiledParams

    Raises
    ------
    TensorMapError
        If the tensor cannot be described: see ``refusals``.
    """
    cdef TiledArguments arguments
    tiled_arguments(tensor, options, &arguments)
    return params_of_arguments(&arguments)


cdef int require_access(ExportedTensor tensor, int device_id) except -1:
    """Refuse memory that a device cannot read. Pinned and managed memory is every device's."""
    cdef int device_type = tensor.layout.device_type
    if device_type == kDLCUDA:
        if tensor.layout.device_id != device_id:
            raise refusals.other_device(tensor.layout.device_id, device_id)
    elif device_type == kDLCPU or device_type == 0:
        _require_driver_access(tensor.address(), device_id)
    elif device_type != kDLCUDAHost and device_type != kDLCUDAManaged:
        raise refusals.device_type(device_type)
    return 0


cdef int _require_driver_access(uint64_t address, int device_id) except -1:
    """Ask the driver whose memory it is, where the exporter did not say or called pinned memory the CPU's."""
    cdef unsigned int memory_type = 0, is_managed = 0
    cdef int ordinal = -1
    if driver.cuPointerGetAttribute(&memory_type, POINTER_MEMORY_TYPE, address) != CUDA_SUCCESS:
        raise refusals.host_memory(address)
    driver.cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address)
    if is_managed or memory_type == MEMORYTYPE_HOST:
        return 0
    driver.cuPointerGetAttribute(&ordinal, POINTER_DEVICE_ORDINAL, address)
    if ordinal != device_id:
        raise refusals.other_device(ordinal, device_id)
    return 0


cdef CUresult encode(void* target, TiledArguments* a) noexcept:
    return driver.cuTensorMapEncodeTiled(
        target, a.data_type, a.rank, <void*><uintptr_t>a.global_address, a.global_dim, a.global_strides, a.box_dim,
        a.element_strides, a.interleave, a.swizzle, a.l2_promotion, a.oob_fill)


cdef object driver_refusal(CUresult result, object params, str dtype_name, int device_id):
    """What to say when the driver refused. Off the hot path: the rules are asked only now."""
    if result == CUDA_ERROR_INVALID_CONTEXT:
        return refusals.no_context()
    if result != CUDA_ERROR_INVALID_VALUE:
        return TensorMapError(f"cuTensorMapEncodeTiled failed with {error_name(result)}, whatever the arguments")
    from .explain import refusal
    from .rules import check

    cdef int major = 0, minor = 0
    driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id)
    driver.cuDeviceGetAttribute(&minor, COMPUTE_CAPABILITY_MINOR, device_id)
    violations = check(params, compute_capability=(major, minor))
    return refusal(params, violations, dtype_name=dtype_name)


cdef class TensorMapDescriptor:
    """A tensor map: 128 bytes that tell the TMA engine where a tensor lies and which tiles to move.

    Made by :func:`cuda_tma.create_tensor_map`, ``Device.create_tensor_map`` or ``StridedMemoryView.as_tensor_map``,
    and passed by value to a kernel whose parameter is ``const __grid_constant__ CUtensorMap`` by
    :func:`cuda_tma.launch`.

    It owns what keeps the tensor's memory alive: the DLPack export, and for torch the storage too, so that neither
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
        """What the map says, in driver order: a :class:`TiledParams`."""
        return params_of_arguments(&self._arguments)

    @property
    def tensor(self):
        """The tensor that is described and kept alive; None after ``replace_address`` with an integer."""
        return None if self._exported is None else self._exported.source

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
        from .swizzle import tx_bytes

        return tx_bytes(self.params)

    @property
    def smem_bytes(self):
        """Bytes of shared memory that one load needs; with a swizzle more than :attr:`tx_bytes` where rows are padded."""
        from .swizzle import smem_bytes

        return smem_bytes(self.params)

    @property
    def smem_alignment(self):
        """Alignment in bytes that the destination in shared memory needs."""
        from .swizzle import smem_alignment

        return smem_alignment(self.params)

    def is_stale(self):
        """Whether the tensor's elements are now elsewhere than the map says.

        Asks the tensor for its present address. True after ``x.data = ...`` (the map still shows the old memory, which
        it keeps alive) and after an in-place resize of the storage (which frees the memory in spite of every owner).
        False where there is no tensor to ask.
        """
        if self._exported is None:
            return False
        cdef ExportedTensor now
        try:
            now = export(self._exported.source)
        except Exception:
            return True
        return now.address() != self._arguments.global_address

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
        if isinstance(tensor, int):
            self._put_address(tensor)
            self._exported = None
            return
        cdef ExportedTensor exported = export(tensor)
        self._require_same_tensor(exported)
        self._put_address(exported.address())
        self._exported = exported

    cdef int _require_same_tensor(self, ExportedTensor tensor) except -1:
        cdef TiledArguments other
        require_access(tensor, self._device_id)
        if (<uint32_t*>&tensor.layout.code)[0] != self._dtype:
            raise refusals.replacement("dtype", tensor.dtype_name, _dtype_name(self._dtype))
        if tensor.layout.ndim != self._arguments.rank:
            raise refusals.replacement("shape", tensor.shape, self._shape())
        tiled_arguments(tensor, self._options, &other)
        if memcmp(other.global_dim, self._arguments.global_dim, sizeof(other.global_dim)):
            raise refusals.replacement("shape", tensor.shape, self._shape())
        if memcmp(other.global_strides, self._arguments.global_strides, sizeof(other.global_strides)):
            old = tuple([self._arguments.global_strides[index] for index in range(other.rank - 1)])
            new = tuple([other.global_strides[index] for index in range(other.rank - 1)])
            raise refusals.replacement("strides (bytes, outermost first)", new[::-1], old[::-1])
        return 0

    cdef int _put_address(self, address) except -1:
        cdef TensorMapDescriptor scratch
        cdef CUresult result
        cdef uint64_t alignment = 32 if (self._arguments.interleave == 2 or self._arguments.data_type >= 14) else 16
        if not 0 <= address < 2**64 or address % alignment:
            raise refusals.replacement_alignment(address, alignment)
        ensure_driver()
        scratch = TensorMapDescriptor.__new__(TensorMapDescriptor)  # so that a refusal leaves this one as it was
        memcpy(scratch.map(), self.map(), MAP_BYTES)
        result = driver.cuTensorMapReplaceAddress(scratch.map(), <void*><uintptr_t>address)
        if result != CUDA_SUCCESS:
            raise TensorMapError(f"cuTensorMapReplaceAddress refused address {address:#x}: {error_name(result)}")
        memcpy(self.map(), scratch.map(), MAP_BYTES)
        self._arguments.global_address = address
        return 0

    def _shape(self):
        return tuple([self._arguments.global_dim[index] for index in range(self._arguments.rank)])[::-1]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.map(), MAP_BYTES, True, flags)

    def __bytes__(self):
        return (<const char*>self.map())[:MAP_BYTES]

    def __eq__(self, other):
        if not isinstance(other, TensorMapDescriptor):
            return NotImplemented
        return memcmp(self.map(), (<TensorMapDescriptor>other).map(), MAP_BYTES) == 0

    def __repr__(self):
        params = self.params
        data_type = TensorMapDataType(params.data_type).short_name
        dtype = _dtype_name(self._dtype)
        moved_as = "" if data_type.lower() == dtype else f" as {data_type}"
        return (f"TensorMapDescriptor(tiled, rank {params.rank}, {dtype}{moved_as} {params.global_dim[::-1]}, "
                f"box {params.box_dim[::-1]}, swizzle {TensorMapSwizzle(params.swizzle).short_name}, "
                f"device {self._device_id})")


def _dtype_name(uint32_t dtype):
    return DLPACK_NAMES[dtype & 0xFF, dtype >> 8 & 0xFF, dtype >> 16]


def create(ExportedTensor tensor, options):
    """Make a descriptor in the current context.

    Parameters
    ----------
    tensor : ExportedTensor
    options : TensorMapOptions

    Returns
    -------
    TensorMapDescriptor

    Raises
    ------
    TensorMapError
        If the tensor or the options cannot make a map, with every broken rule and its remedy.
    RuntimeError
        If there is no NVIDIA driver.
    """
    cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
    cdef CUresult result
    tiled_arguments(tensor, options, &descriptor._arguments)
    ensure_driver()
    result = driver.cuCtxGetCurrent(&descriptor._context)
    if result != CUDA_SUCCESS or descriptor._context == NULL:
        raise refusals.no_context()
    driver.cuCtxGetDevice(&descriptor._device_id)
    require_access(tensor, descriptor._device_id)
    result = encode(descriptor.map(), &descriptor._arguments)
    if result != CUDA_SUCCESS:
        raise driver_refusal(result, descriptor.params, tensor.dtype_name, descriptor._device_id)
    descriptor._dtype = (<uint32_t*>&tensor.layout.code)[0]
    descriptor._exported = tensor
    descriptor._options = options
    return descriptor
