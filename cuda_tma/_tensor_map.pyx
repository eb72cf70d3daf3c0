"""The class TensorMapDescriptor: 128 bytes, the tensor that they describe, its owner, and the context of the map."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

from ._make.arguments cimport TensorArguments, arguments_of
from ._make.encode cimport describe_for, params_from
from ._read.context cimport compute_capability, enter_context, require_access, share_memory
from ._read.dlpack cimport DLTensor, address_of, dtype_key, shape_of
from ._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUresult, driver, ensure_driver, require_success
from ._cuda.free_threading cimport FREE_THREADED  # no-cython-lint: PER_THREAD comes with it
from ._read.export cimport Reading, has_moved, layout_of, read, source_of
from ._read.exporter cimport is_of_known_type
from ._read.shown_bytes cimport fill_buffer

from dataclasses import fields, replace

import numpy as np

from ._cuda.core import bytes_of_map, core_descriptor
from .rules import _refusals
from ._read.dlpack import dtype_name_of
from .codec import decode
from .enums import TensorMapDataType, TensorMapSwizzle
from .rules._explain import refusal
from ._options import TensorMapIm2colWideOptions, options_of
from .params import Params, TiledParams
from .rules import check
from .smem._layout import pixels
from .smem import smem_alignment, smem_bytes, smem_layout, tx_bytes


cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000
    #define hold_collections() PyGC_Disable()
    #define resume_collections(was_collecting) if (was_collecting) PyGC_Enable()
    #else
    #define hold_collections() 0
    #define resume_collections(was_collecting)
    #endif
    """
    bint hold_collections()
    void resume_collections(bint was_collecting)

cdef object _device_type = None  # The package's class Device imports this module; see register_device().

cdef extern from *:
    """
    static PER_THREAD PyObject *being_made;  /* An object of this type is being made; see begin_making(). */
    """
    PyObject* being_made


def register_device(device_type):
    """Register the package's class Device for :attr:`TensorMapDescriptor.device`."""
    global _device_type
    _device_type = device_type


@cython.final
@cython.freelist(16)
cdef class TensorMapDescriptor:
    """A tensor map, which is 128 bytes that describe a tensor and its tiles to the TMA engine.

    :func:`cuda_tma.create_tensor_map`, ``Device.create_tensor_map`` and ``StridedMemoryView.as_tensor_map`` make it.
    :func:`cuda_tma.launch` passes it by value to a kernel whose parameter is ``const __grid_constant__ CUtensorMap``.

    A descriptor owns the object that keeps the tensor's memory alive, which is the DLPack export, or the storage of a
    torch tensor. Deleting the tensor, or ``x.data = ...``, then does not free the memory. Only an in-place resize of a
    storage (``x.untyped_storage().resize_(n)``) frees the memory in spite of every owner; see :meth:`is_stale`.

    Two descriptors are equal if their bytes are equal. The hash covers all bytes except the address, which can change.
    A descriptor keeps its place in a set or a dict. Descriptors of one geometry share a hash.
    """

    def __cinit__(self):
        require_maker(TensorMapDescriptor, "cuda_tma.create_tensor_map(tensor, options), Device().create_tensor_map or "
                                           "StridedMemoryView.as_tensor_map")

    def __reduce__(self):
        raise TypeError("a TensorMapDescriptor cannot be copied or pickled: it belongs to a process and a context. "
                        "Make another: TensorMapDescriptor.from_bytes(bytes(descriptor), descriptor.tensor)")

    @property
    def params(self):
        """The map's parameters, which are decoded from the 128 bytes, in driver order.

        The type is :class:`TiledParams`, :class:`Im2colParams`, or (from the options) :class:`Im2colWideParams`.
        """
        params = decode(bytes(self))
        if not isinstance(self._options, TensorMapIm2colWideOptions):
            return params
        # Values in the bytes have precedence, because an old driver's map may lack the options' allocation class.
        said = {field.name: getattr(params, field.name) for field in fields(Params)}
        return replace(params_from(self._options, &self._arguments), **said)

    @property
    def tensor(self):
        """The tensor that the map describes and keeps alive; None after ``replace_address`` with an integer."""
        return self.held()[0]

    cdef tuple held(self):
        """Return the tensor and the owner of its memory, both read in one critical section."""
        with cython.critical_section(self):
            return self._tensor, self._owner

    @property
    def device(self):
        """The :class:`cuda_tma.Device` on which the map is valid."""
        return _device_type(self._device_id)

    @property
    def context(self):
        """The CUcontext in which the map was made and may be launched, as an int."""
        return <uintptr_t>self._context

    @property
    def address(self):
        """The host address of the 128 bytes, which is a multiple of 128."""
        return <uintptr_t>self.map()

    @property
    def tx_bytes(self):
        """The bytes that one load delivers, including out-of-bounds fill, which a kernel passes to ``expect_tx``."""
        return tx_bytes(self.params)

    @property
    def smem_bytes(self):
        """The bytes of shared memory that one load needs, which exceed :attr:`tx_bytes` if a swizzle pads rows."""
        return smem_bytes(self.params)

    @property
    def smem_alignment(self):
        """The alignment in bytes of a load's destination in shared memory."""
        return smem_alignment(self.params)

    def smem_layout(self):
        """Return the place of each element of the box in shared memory, as a CuTe layout (needs ``tensor-layouts``).

        See :func:`cuda_tma.smem.smem_layout`.
        """
        return smem_layout(self.params)

    def _repr_html_(self):
        """Return an HTML table of every parameter, with a picture of the banks of shared memory, for notebooks."""
        from ._show.html import descriptor_html  # The import is local, because the module may import matplotlib.

        return descriptor_html(self.params, repr(self))

    @staticmethod
    def from_bytes(raw, tensor=None):
        """Adopt for the current context a tensor map that another library made (CUTLASS, Triton, CuTe DSL).

        Parameters
        ----------
        raw : bytes-like, cuda.bindings.driver.CUtensorMap or cuda.core.TensorMapDescriptor
            128 bytes, which are copied. A descriptor of cuda.core provides only its bytes, and its map may belong only
            to the current context. Pass its tensor as `tensor` to keep the tensor alive.
        tensor : tensor, optional
            The tensor to keep alive. The map must begin at the first element of the tensor.

        Returns
        -------
        TensorMapDescriptor
            A descriptor with exactly these bytes.

        Raises
        ------
        TensorMapError
            If the bytes are not a tensor map, or a map that the driver refuses, or the map of another tensor.

        Examples
        --------
        ::

            result, made = cuda.bindings.driver.cuTensorMapEncodeTiled(...)
            descriptor = TensorMapDescriptor.from_bytes(made, tensor)
        """
        cdef TensorMapDescriptor descriptor = new_descriptor()
        data = bytes_of_map(raw)
        params = decode(data)
        enter_context(&descriptor._context, &descriptor._device_id)
        violations = check(params, compute_capability=compute_capability(descriptor._device_id))
        if violations:
            raise refusal(params, violations)
        if tensor is not None:
            descriptor._tensor, descriptor._owner = _own_tensor(tensor, params.global_address, descriptor._device_id)
        arguments_of(params, &descriptor._arguments)
        descriptor._options = options_of(params)
        memcpy(descriptor.map(), <const char*>data, MAP_BYTES)
        return descriptor

    def to_cuda_core(self):
        """Return a ``cuda.core.TensorMapDescriptor`` of the same 128 bytes, for ``cuda.core.launch``, graphs and nodes.

        The result keeps the map's present memory alive, and does not follow later changes of this descriptor. Its
        ``repr`` and its errors describe a tensor of 16 bytes, because cuda.core made the result from such a tensor.

        Raises
        ------
        TensorMapError
            If the current context, to which cuda.core assigns the map, is not the context of this descriptor.

        Examples
        --------
        ::

            cuda.core.launch(stream, config, kernel, descriptor.to_cuda_core(), out, np.int32(7))
        """
        require_context(self._context)
        return core_descriptor(bytes(self), self._arguments.global_address, self.held())

    def is_stale(self):
        """Return whether the tensor's elements now have another address than the address in the map.

        The function reads the present address of the tensor. The result is True after ``x.data = ...``, when the map
        points to the old memory and keeps it alive. It is also True after an in-place resize of the storage, which
        frees the memory in spite of every owner. The result is False if the map has no tensor.
        """
        tensor, owner = self.held()
        return tensor is not None and has_moved(tensor, owner, self._arguments.global_address)

    def replace_address(self, tensor):
        """Set the address of the map to that of another tensor of the same device, dtype, shape and strides, in place.

        Parameters
        ----------
        tensor : tensor or int
            An int (also NumPy's) is a device address. The function checks its alignment, and keeps no memory alive.

        Raises
        ------
        TensorMapError
            If the tensor differs in more than its address. The descriptor is then unchanged.
        """
        cdef Reading reading
        require_context(self._context)
        if isinstance(tensor, int) or not is_of_known_type(tensor) and isinstance(tensor, np.integer):
            self._put_address(_address(tensor, self._arguments.alignment_bytes), None, None)
            return
        owner = read(tensor, &reading)
        self._require_same_tensor(layout_of(owner, &reading))
        self._put_address(address_of(layout_of(owner, &reading)), source_of(tensor, owner), owner)

    cdef int _require_same_tensor(self, DLTensor* tensor) except -1:
        cdef TensorArguments other
        require_access(tensor, self._device_id)
        if self._arguments.dtype not in (0, dtype_key(tensor)):
            raise _refusals.replacement("dtype", dtype_name_of(dtype_key(tensor)), self._dtype_name())
        if <uint32_t>tensor.ndim != self._arguments.rank:
            raise _refusals.replacement("shape", shape_of(tensor), self._shape())
        describe_for(tensor, self._options, &other)
        if memcmp(other.global_dim, self._arguments.global_dim, sizeof(other.global_dim)):
            raise _refusals.replacement("shape", shape_of(tensor), self._shape())
        if not _same_strides(&other, &self._arguments):
            old = tuple([self._arguments.global_strides[index] for index in range(other.rank - 1)])
            new = tuple([other.global_strides[index] for index in range(other.rank - 1)])
            raise _refusals.replacement("strides (bytes, outermost first)", new[::-1], old[::-1])
        return 0

    cdef int _put_address(self, uint64_t address, object tensor, object owner) except -1:
        if address % self._arguments.alignment_bytes:
            raise _refusals.replacement_address(address, self._arguments.alignment_bytes)
        with cython.critical_section(self):
            replace_address(self.map(), address)
            self._arguments.global_address = address
            self._tensor, self._owner = tensor, owner
        return 0

    def _dtype_name(self):
        """Return the dtype of the tensor, or for an adopted map the type of its elements in the map."""
        if self._arguments.dtype:
            return dtype_name_of(self._arguments.dtype)
        return TensorMapDataType(self._arguments.data_type).short_name.lower()

    def _shape(self):
        return tuple([self._arguments.global_dim[index] for index in range(self._arguments.rank)])[::-1]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(buffer, self, self.map(), MAP_BYTES, flags)

    def __bytes__(self):
        with cython.critical_section(self):
            return (<const char*>self.map())[:MAP_BYTES]

    def __eq__(self, other):
        if not isinstance(other, TensorMapDescriptor):
            return NotImplemented
        return memcmp(self.map(), (<TensorMapDescriptor>other).map(), MAP_BYTES) == 0

    def __hash__(self):
        cdef const char* rest = <const char*>(address_field(self.map()) + 1)
        return hash(rest[:MAP_BYTES - sizeof(uint64_t)])

    def __repr__(self):
        params = self.params
        mode = type(params).__name__.removesuffix("Params").lower()
        data_type = TensorMapDataType(params.data_type).short_name
        dtype = self._dtype_name()
        moved_as = "" if data_type.lower() == dtype else f" as {data_type}"
        if isinstance(params, TiledParams):
            box = f"box {params.box_dim[::-1]}"
        else:
            box = f"column {pixels(params)} pixels of {params.channels_per_pixel} channels"
        return (f"TensorMapDescriptor({mode}, rank {params.rank}, {dtype}{moved_as} {params.global_dim[::-1]}, {box}, "
                f"swizzle {TensorMapSwizzle(params.swizzle).short_name}, device {self._device_id})")


cdef TensorMapDescriptor new_descriptor():
    """Return an empty descriptor, which the caller fills before any other code can use the object."""
    cdef bint was_collecting = begin_making(TensorMapDescriptor)
    try:
        return TensorMapDescriptor.__new__(TensorMapDescriptor)
    finally:
        end_making(was_collecting)


cdef bint begin_making(type kind) noexcept:
    """Allow the construction of one object of a type that Python cannot construct. Pass the result to end_making().

    Before Python 3.12, an allocation may start a garbage collection, whose finalizers could then construct such an
    object. Collections are therefore suspended.
    """
    global being_made
    being_made = <PyObject*>kind
    return hold_collections()


cdef int end_making(bint was_collecting) noexcept:
    global being_made
    being_made = NULL
    resume_collections(was_collecting)
    return 0


cdef int require_maker(type kind, str makers) except -1:
    """Refuse to construct an object, except after a call of begin_making()."""
    if being_made != <PyObject*>kind:
        raise TypeError(f"make a {kind.__name__} with {makers}")
    return 0


cdef int require_context(CUcontext own) except -1:
    """Refuse to change a map in a context that does not share memory with the map's own context."""
    cdef CUcontext current
    cdef int device_id
    ensure_driver()
    if driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS and current == own:
        return 0
    enter_context(&current, &device_id)  # enter_context() raises an error if there is no current context.
    if not share_memory(current, own):
        raise _refusals.other_context(<uintptr_t>own, <uintptr_t>current)
    return 0


cdef int replace_address(void* map, uint64_t address) except -1:
    """Replace the address in the map by a call of the driver. On an error, the map is unchanged."""
    cdef unsigned char before[MAP_BYTES]
    memcpy(before, map, MAP_BYTES)
    cdef CUresult result = driver.cuTensorMapReplaceAddress(map, <void*><uintptr_t>address)
    if result != CUDA_SUCCESS:
        memcpy(map, before, MAP_BYTES)
        require_success(result, "cuTensorMapReplaceAddress")
    return 0


cdef tuple _own_tensor(object tensor, uint64_t address, int device_id):
    """Return a tensor that begins at this address, and the owner of the tensor's memory."""
    cdef Reading reading
    owner = read(tensor, &reading)
    cdef DLTensor* layout = layout_of(owner, &reading)
    require_access(layout, device_id)
    if address_of(layout) != address:
        raise _refusals.adopted_address(address, address_of(layout))
    return source_of(tensor, owner), owner


cdef bint _same_strides(TensorArguments* a, TensorArguments* b) noexcept:
    """Compare the strides of two tensors of one shape. A dimension of extent 1 in an adopted map may have any stride.
    """
    cdef uint32_t index
    for index in range(1, a.rank):
        if a.global_dim[index] > 1 and a.global_strides[index - 1] != b.global_strides[index - 1]:
            return False
    return True


cdef uint64_t _address(object address, uint64_t alignment_bytes) except 0:
    """Return an int as an address of the device."""
    cdef uint64_t value = 0
    try:
        value = address
    except OverflowError:
        pass
    if value == 0:
        raise _refusals.replacement_address(address, alignment_bytes)
    return value
