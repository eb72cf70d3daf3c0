"""The class TensorMapArray: many tensor maps in one aligned block, for kernels that index them (grouped GEMM, MoE)."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

from .arguments cimport TensorArguments
from .._read.context cimport enter_context
from .create cimport describe_here
from .device_memory cimport allocate
from .uploads cimport remember_upload
from .encode cimport encode
from .._compilable cimport Compilable
from .._cuda.driver cimport CUcontext, CUresult, CUstream, driver, require_success
from .._read.dlpack cimport DLTensor
from .._read.export cimport Reading, layout_of, read, source_of
from .._read.index cimport checked_index
from .._read.shown_bytes cimport fill_buffer
from .._read.stream cimport known_stream
from .._tensor_map cimport (
    MAP_ALIGNMENT, MAP_BYTES, TensorMapDescriptor, address_field, begin_making, end_making, new_descriptor,
    replace_address, require_context, require_maker)

import operator
from collections.abc import Iterable

import numpy as np
from cuda.core import Buffer

from ..rules import _refusals
from .._errors import TensorMapError
from .._keywords import options_from


@cython.final
cdef class TensorMapArray:
    """Tensor maps of 128 bytes each, in one contiguous block of host memory that is aligned to 128 bytes.

    :func:`cuda_tma.create_tensor_maps` makes an array. ``array[i]`` is a :class:`TensorMapDescriptor` with a copy of
    map i. ``array.upload(stream)`` copies all maps to device memory, for a kernel with a ``const TensorMap*``
    parameter.
    """

    cdef void* _memory
    cdef unsigned char* _maps  # The maps begin at the first aligned address in _memory.
    # The arguments follow the maps, with one entry for each set of tensors that differ only in the address.
    cdef TensorArguments* _arguments
    cdef Py_ssize_t* _described_by  # The indices follow the arguments. Each is the index of a map's arguments.
    cdef Py_ssize_t _count  # The first _count maps are complete.
    cdef CUcontext _context
    cdef int _device_id
    cdef Compilable _options
    cdef list _tensors  # _tensors has one tensor for each map, or is None if the caller passed addresses as integers.
    cdef list _owners  # The owners keep the memory alive; see read().
    cdef object __weakref__

    def __cinit__(self):
        require_maker(TensorMapArray, "cuda_tma.create_tensor_maps(tensors, options)")

    def __dealloc__(self):
        PyMem_Free(self._memory)

    def __reduce__(self):
        raise TypeError("a TensorMapArray cannot be copied or pickled: it belongs to a process and a context. Make "
                        "another with cuda_tma.create_tensor_maps(tensors, options)")

    def __len__(self):
        return self._count

    @property
    def address(self):
        """The host address of the first map, which is a multiple of 128."""
        return <uintptr_t>self._maps

    @property
    def nbytes(self):
        """The size of all maps, which is 128 times their number."""
        return self._count * MAP_BYTES

    def __getitem__(self, index):
        cdef Py_ssize_t at = checked_index(index, self._count, "maps")
        cdef unsigned char* source = self._maps + at * MAP_BYTES
        cdef TensorMapDescriptor descriptor = new_descriptor()
        with cython.critical_section(self):
            tensors, owners = self._tensors, self._owners
            memcpy(descriptor.map(), source, MAP_BYTES)
        if tensors is not None:
            descriptor._owner = owners[at]
            descriptor._tensor = source_of(tensors[at], descriptor._owner)
        descriptor._context, descriptor._device_id = self._context, self._device_id
        descriptor._options = self._options
        descriptor._arguments = self._arguments[self._described_by[at]]
        descriptor._arguments.global_address = address_field(descriptor.map())[0]
        return descriptor

    def __bytes__(self):
        with cython.critical_section(self):
            return (<const char*>self._maps)[:self._count * MAP_BYTES]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(buffer, self, self._maps, self._count * MAP_BYTES, flags)

    def replace_addresses(self, addresses):
        """Set the address of every map.

        Only the alignment of the addresses is checked, and the array does not keep their memory alive.

        Parameters
        ----------
        addresses : sequence or array of int, shape (len(array),)
            The addresses in device memory.

        Raises
        ------
        TensorMapError
            If the number of addresses differs from the number of maps, or if an address is not aligned. The maps are
            then unchanged.
        """
        if not self._count:
            _address_array(addresses, 0, 1)
            return
        require_context(self._context)
        checked = _address_array(addresses, self._count, self._arguments.alignment_bytes)
        with cython.critical_section(self):
            _put_addresses(self, checked)
            self._tensors = self._owners = None

    def upload(self, stream):
        """Copy the maps to device memory in one transfer.

        Parameters
        ----------
        stream : Stream, or object with ``__cuda_stream__``
            Kernels that are launched on the stream later see the maps. In the kernel, a thread must call
            ``fence_tensor_map_acquire`` for a map before its use, because the TMA unit may have an older copy of the
            memory. If the stream captures a graph, keep this array and the Buffer alive, for example with
            ``cuda_tma.graph.keep_alive(stream, array, buffer)``. Every launch of the graph copies the maps from the
            array to the Buffer.

        Returns
        -------
        cuda.core.Buffer
            A Buffer of ``nbytes`` bytes for the ``const TensorMap*`` argument of :func:`cuda_tma.launch`. The Buffer
            does not follow later changes of this array.
        """
        cdef CUstream handle = known_stream(stream).handle
        cdef size_t size_bytes = self._count * MAP_BYTES
        cdef uint64_t target
        cdef CUresult result
        if not size_bytes:
            return Buffer.from_handle(0, 0)
        buffer = allocate(stream, self._context, self._device_id, size_bytes)
        target = int(buffer.handle)
        with nogil:  # A large copy may wait for the stream, and the stream may wait for a host function in Python.
            result = driver.cuMemcpyHtoDAsync(target, self._maps, size_bytes, handle)
        require_success(result, "cuMemcpyHtoDAsync")
        remember_upload(buffer, self._maps, self._count, self._options)
        return buffer


def create_tensor_maps(tensors, options, *, addresses=None):
    """Make many descriptors with the same options at once, in the current CUDA context.

    Parameters
    ----------
    tensors : sequence of tensors, or one tensor
        The tensors, each of which gets its own map and is kept alive. With `addresses`, one tensor with the geometry of
        all maps.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
    addresses : sequence or array of int, optional
        Device addresses of tensors with the geometry of `tensors`. The map of `tensors` is encoded once and copied for
        each address. Only the alignment of the addresses is checked, and only `tensors` is kept alive.

    Returns
    -------
    TensorMapArray

    Raises
    ------
    TensorMapError
        If no map can be made of one of the tensors, or with the options.

    Examples
    --------
    ::

        maps = cuda_tma.create_tensor_maps(weights, cuda_tma.TensorMapOptions((64, 64), swizzle="128B"))
        on_device = maps.upload(stream)
        cuda_tma.launch(stream, config, kernel, on_device, len(maps))
    """
    options = options_from(options=options)
    if addresses is None:
        if not isinstance(tensors, Iterable):
            raise TypeError(
                f"tensors is a {type(tensors).__name__}; pass a sequence of tensors, or one with addresses=")
        return _of_tensors(list(tensors), options)
    return _of_addresses(tensors, options, addresses)


cdef TensorMapArray _of_tensors(list tensors, Compilable options):
    cdef TensorMapArray array = _allocate(len(tensors), options)
    cdef Reading reading
    cdef list owners = []
    array._tensors, array._owners = tensors, owners
    enter_context(&array._context, &array._device_id)
    try:
        for tensor in tensors:
            owner = read(tensor, &reading)
            _put_map(array, array._count, layout_of(owner, &reading))
            owners.append(owner)
            array._count += 1
    except TensorMapError as error:
        raise TensorMapError(f"tensors[{array._count}]: {error}") from error
    return array


cdef int _put_map(TensorMapArray array, Py_ssize_t index, DLTensor* tensor) except -1:
    """Make the map of one tensor whose layout was read."""
    cdef unsigned char* target = array._maps + index * MAP_BYTES
    cdef Py_ssize_t last = array._described_by[index - 1] if index > 0 else -1
    cdef TensorArguments* arguments = array._arguments + last + 1
    describe_here(tensor, array._options, &array._context, &array._device_id, arguments)
    if index > 0 and _differ_in_address_alone(arguments, array._arguments + last):
        # A copy takes a third of the time of encoding, and gives the same bytes (tests/gpu/test_array.py).
        memcpy(target, target - MAP_BYTES, MAP_BYTES)
        replace_address(target, arguments.global_address)
        array._described_by[index] = last
    else:
        encode(target, array._options, arguments, array._device_id)
        array._described_by[index] = last + 1
    return 0


cdef bint _differ_in_address_alone(const TensorArguments* arguments, const TensorArguments* encoded) noexcept:
    """Return whether the arguments differ from the encoded ones only in the address, and the address is legal."""
    cdef size_t address_bytes = sizeof(encoded.global_address)
    return arguments.global_address % arguments.alignment_bytes == 0 and not memcmp(
        <const char*>arguments + address_bytes, <const char*>encoded + address_bytes,
        sizeof(TensorArguments) - address_bytes)


cdef TensorMapArray _of_addresses(object tensor, Compilable options, object addresses):
    cdef Py_ssize_t count = len(addresses)
    cdef TensorMapArray array = _allocate(count, options)
    cdef Py_ssize_t index
    cdef Reading reading
    owner = read(tensor, &reading)
    describe_here(layout_of(owner, &reading), options, &array._context, &array._device_id, array._arguments)
    array._owners = [tensor, owner]  # The maps do not describe the whole tensor.
    checked = _address_array(addresses, count, array._arguments.alignment_bytes)
    if count:
        encode(array._maps, options, array._arguments, array._device_id)
    for index in range(count):
        memcpy(array._maps + index * MAP_BYTES, array._maps, MAP_BYTES)
        array._described_by[index] = 0
    array._count = count
    _put_addresses(array, checked)
    return array


cdef TensorMapArray _new_array():
    cdef bint was_collecting = begin_making(TensorMapArray)
    try:
        return TensorMapArray.__new__(TensorMapArray)
    finally:
        end_making(was_collecting)


cdef TensorMapArray _allocate(Py_ssize_t count, Compilable options):
    """Return an array with space for `count` maps, which are not yet made."""
    cdef TensorMapArray array = _new_array()
    # A tensor is described even if there are no maps, because unused pages of memory cost nothing.
    cdef Py_ssize_t described = max(count, 1)
    cdef Py_ssize_t each_bytes = MAP_BYTES + sizeof(TensorArguments) + sizeof(Py_ssize_t)
    array._memory = PyMem_Malloc(described * each_bytes + MAP_ALIGNMENT)
    if array._memory == NULL:
        raise MemoryError
    array._maps = <unsigned char*>((<uintptr_t>array._memory + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))
    array._arguments = <TensorArguments*>(array._maps + described * MAP_BYTES)
    array._described_by = <Py_ssize_t*>(array._arguments + described)
    array._options = options
    return array


def _address_array(addresses, Py_ssize_t count, uint64_t alignment_bytes):
    """Return the addresses as contiguous uint64. Refuse an illegal address."""
    given = _as_integers(addresses, alignment_bytes)
    if given.shape != (count,) or (given.dtype.kind not in "iu" and count):
        raise _refusals.address_list(given.shape, given.dtype, count)
    values = np.ascontiguousarray(given, dtype=np.uint64)
    # The alignment is a power of two. NumPy's remainder would take longer than the driver.
    unaligned = values & (alignment_bytes - 1) != 0
    illegal = np.flatnonzero(unaligned | (given <= 0))
    if illegal.size:
        raise _refusals.replacement_address(int(given[illegal[0]]), alignment_bytes)
    return values


def _as_integers(addresses, uint64_t alignment_bytes):
    """Return an array of integers if possible.

    NumPy converts a list of np.uint64 and int to floats, and so rounds the addresses.
    """
    given = np.asarray(addresses)
    if given.dtype.kind in "iu" or hasattr(addresses, "dtype"):
        return given
    try:
        values = [operator.index(value) for value in addresses]
    except TypeError:
        return given
    for value in values:
        if not 0 < value < 2**64:
            raise _refusals.replacement_address(value, alignment_bytes)
    return np.array(values, dtype=np.uint64)


cdef int _put_addresses(TensorMapArray array, const uint64_t[::1] addresses) except -1:
    """Set the address of each map. On an error, change no map."""
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t changed
    cdef uint64_t[::1] before = np.empty(array._count, dtype=np.uint64)
    try:
        for index in range(array._count):
            before[index] = address_field(array._maps + index * MAP_BYTES)[0]
            replace_address(array._maps + index * MAP_BYTES, addresses[index])
    except BaseException:
        # replace_address() changes the maps back one by one, because a call that failed may fail again.
        for changed in range(index):
            address_field(array._maps + changed * MAP_BYTES)[0] = before[changed]
        raise
    return 0
