"""TensorMapArray: many tensor maps in one aligned block, for kernels that index them (grouped GEMM, MoE)."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

from ._arguments cimport Compilable, CompiledOptions, TensorArguments, arguments_of, compiled, describe
from ._context cimport enter_context, require_access
from ._create cimport encode
from ._driver cimport CUcontext, CUresult, driver, require_success
from ._export cimport Reading, read, source_of
from ._index cimport checked_index
from ._stream cimport stream_handle
from ._tensor_map cimport MAP_ALIGNMENT, MAP_BYTES, TensorMapDescriptor, fill_buffer

from collections.abc import Iterable

import numpy as np
from cuda.core import Device as CoreDevice

from . import refusals
from .codec import decode
from .errors import TensorMapError
from .keywords import as_options


@cython.final
cdef class TensorMapArray:
    """Tensor maps side by side, 128 bytes each, in one block of host memory that is aligned to 128 bytes.

    Made by :func:`cuda_tma.create_tensor_maps`. ``array[i]`` is a :class:`TensorMapDescriptor` with a copy of map i;
    ``array.upload(stream)`` copies them all to device memory, for a kernel with a ``const TensorMap*`` parameter.
    """

    cdef unsigned char* _memory
    cdef unsigned char* _maps    # the first aligned address in _memory
    cdef Py_ssize_t _count
    cdef uint64_t _alignment_bytes
    cdef CUcontext _context
    cdef int _device_id
    cdef object _options
    cdef list _tensors           # one a map; none where addresses were given as integers
    cdef list _owners            # what keeps the memory: see _export.read()

    def __init__(self):
        raise TypeError("make a TensorMapArray with cuda_tma.create_tensor_maps(tensors, options)")

    def __dealloc__(self):
        PyMem_Free(self._memory)

    def __len__(self):
        return self._count

    @property
    def address(self):
        """Host address of the first map, a multiple of 128."""
        return <uintptr_t>self._maps

    @property
    def nbytes(self):
        """128 times the number of maps."""
        return self._count * MAP_BYTES

    def __getitem__(self, index):
        cdef Py_ssize_t at = checked_index(index, self._count, "maps")
        cdef TensorMapDescriptor descriptor = TensorMapDescriptor.__new__(TensorMapDescriptor)
        memcpy(descriptor.map(), self._maps + at * MAP_BYTES, MAP_BYTES)
        arguments_of(decode(bytes(descriptor)), &descriptor._arguments)
        descriptor._context, descriptor._device_id = self._context, self._device_id
        descriptor._options = self._options
        if len(self._tensors) == self._count:
            descriptor._owner = self._owners[at]
            descriptor._tensor = source_of(self._tensors[at], descriptor._owner)
        return descriptor

    def __bytes__(self):
        return (<const char*>self._maps)[:self._count * MAP_BYTES]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(buffer, self, self._maps, self._count * MAP_BYTES, flags)

    def replace_addresses(self, addresses):
        """Point every map at another address. Only the alignment is checked, and nothing is kept alive.

        Parameters
        ----------
        addresses : sequence or array of int, shape (len(array),)
            Device addresses.

        Raises
        ------
        TensorMapError
            If their number differs or one is not aligned. The maps are then as they were.
        """
        cdef const uint64_t[::1] values = _address_array(addresses, self._count, self._alignment_bytes)
        _put_addresses(self._maps, values)
        self._tensors, self._owners = [], []

    def upload(self, stream):
        """Copy the maps to device memory in one transfer.

        Parameters
        ----------
        stream : Stream, or object with ``__cuda_stream__``
            Kernels that are launched on it later see the maps. A thread of theirs calls ``fence_tensor_map_acquire`` of
            a map before it uses it: the TMA unit may hold an older copy of what lay there. Where it captures a graph,
            keep this array: every launch of the graph copies from it.

        Returns
        -------
        cuda.core.Buffer
            ``nbytes`` bytes; pass it to :func:`cuda_tma.launch` as the ``const TensorMap*`` argument. It does not
            follow later changes of this array.
        """
        cdef CUcontext context
        cdef uintptr_t target
        cdef CUresult result
        cdef size_t size_bytes = self._count * MAP_BYTES
        cdef void* handle = stream_handle(stream, &context)
        buffer = CoreDevice(self._device_id).allocate(size_bytes, stream=stream)
        target = int(buffer.handle)
        with nogil:  # a large copy may wait for the stream, and that for a host function in Python
            result = driver.cuMemcpyHtoDAsync(target, self._maps, size_bytes, handle)
        require_success(result, "cuMemcpyHtoDAsync")
        return buffer


def create_tensor_maps(tensors, options, *, addresses=None):
    """Make many descriptors with the same options at once, in the current CUDA context.

    Parameters
    ----------
    tensors : sequence of tensors, or one tensor
        Each is described by its own map, and kept alive. With `addresses`, one tensor, whose geometry they all have.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
    addresses : sequence or array of int, optional
        Device addresses of tensors like `tensors`: its map is encoded once and given each of them. Only their alignment
        is checked, and nothing but `tensors` is kept alive.

    Returns
    -------
    TensorMapArray

    Raises
    ------
    TensorMapError
        If one of the tensors or the options cannot make a map.

    Examples
    --------
    ::

        maps = cuda_tma.create_tensor_maps(weights, cuda_tma.TensorMapOptions((64, 64), swizzle="128B"))
        on_device = maps.upload(stream)
        cuda_tma.launch(stream, config, kernel, on_device, len(maps))
    """
    options = as_options(options=options)
    if addresses is None:
        if not isinstance(tensors, Iterable):
            raise TypeError(
                f"tensors is a {type(tensors).__name__}; give a sequence of tensors, or addresses= beside one")
        return _of_tensors(list(tensors), options)
    return _of_addresses(tensors, options, addresses)


cdef TensorMapArray _of_tensors(list tensors, object options):
    cdef CompiledOptions values = compiled(options)
    cdef TensorMapArray array = _allocate(tensors, len(tensors), options)
    cdef TensorArguments encoded  # of the last map that was
    cdef Py_ssize_t index = 0
    memset(&encoded, 0, sizeof(encoded))
    try:
        for index in range(array._count):
            array._owners.append(_put_map(array, index, tensors[index], options, values, &encoded))
    except TensorMapError as error:
        raise TensorMapError(f"tensors[{index}]: {error}") from error
    return array


cdef object _put_map(
        TensorMapArray array, Py_ssize_t index, object tensor, Compilable options, CompiledOptions values,
        TensorArguments* encoded):
    """Make the map of one tensor, and return what owns its memory."""
    cdef unsigned char* target = array._maps + index * MAP_BYTES
    cdef TensorArguments arguments
    cdef Reading reading
    owner = read(tensor, &reading)
    memset(&arguments, 0, sizeof(arguments))
    describe(reading.tensor, options, values, &arguments)
    require_access(reading.tensor, array._device_id)
    if _differ_in_address_alone(&arguments, encoded):
        # A third of what encoding takes. The bytes are the same (tests/gpu/test_array.py).
        memcpy(target, target - MAP_BYTES, MAP_BYTES)
        _put_address(target, arguments.global_address)
    else:
        encode(target, reading.tensor, values, &arguments, array._device_id)
        array._alignment_bytes = max(array._alignment_bytes, arguments.alignment_bytes)
        encoded[0] = arguments
    return owner


cdef bint _differ_in_address_alone(const TensorArguments* arguments, const TensorArguments* encoded) noexcept:
    """Whether these are what the encoder took, but for the address, which is a legal one."""
    cdef size_t address_bytes = sizeof(encoded.global_address)
    return arguments.global_address % arguments.alignment_bytes == 0 and not memcmp(
        <const char*>arguments + address_bytes, <const char*>encoded + address_bytes,
        sizeof(TensorArguments) - address_bytes)


cdef TensorMapArray _of_addresses(object tensor, object options, object addresses):
    cdef CompiledOptions values = compiled(options)
    cdef TensorMapArray array
    cdef TensorArguments arguments
    cdef Reading reading
    cdef const uint64_t[::1] checked
    cdef Py_ssize_t index
    owner = read(tensor, &reading)
    memset(&arguments, 0, sizeof(arguments))
    describe(reading.tensor, options, values, &arguments)
    checked = _address_array(addresses, len(addresses), arguments.alignment_bytes)
    array = _allocate([], len(addresses), options)  # no map is of the tensor itself
    array._alignment_bytes = arguments.alignment_bytes
    array._owners += [tensor, owner]
    require_access(reading.tensor, array._device_id)
    if array._count:
        encode(array._maps, reading.tensor, values, &arguments, array._device_id)
    for index in range(1, array._count):
        memcpy(array._maps + index * MAP_BYTES, array._maps, MAP_BYTES)
    _put_addresses(array._maps, checked)
    return array


cdef TensorMapArray _allocate(list tensors, Py_ssize_t count, object options):
    cdef TensorMapArray array = TensorMapArray.__new__(TensorMapArray)
    array._memory = <unsigned char*>PyMem_Malloc(count * MAP_BYTES + MAP_ALIGNMENT)
    if array._memory == NULL:
        raise MemoryError
    array._maps = <unsigned char*>((<uintptr_t>array._memory + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))
    array._count = count
    array._alignment_bytes = 16
    array._options = options
    array._tensors, array._owners = tensors, []
    enter_context(&array._context, &array._device_id)
    return array


def _address_array(addresses, Py_ssize_t count, uint64_t alignment_bytes):
    """The addresses as contiguous uint64, all of them legal."""
    given = np.asarray(addresses)
    if given.shape != (count,) or (given.dtype.kind not in "iu" and count):
        raise refusals.address_list(given.shape, given.dtype, count)
    values = np.ascontiguousarray(given, dtype=np.uint64)
    illegal = np.flatnonzero((values % alignment_bytes != 0) | (given <= 0))
    if illegal.size:
        raise refusals.replacement_address(int(given[illegal[0]]), alignment_bytes)
    return values


cdef int _put_addresses(unsigned char* maps, const uint64_t[::1] addresses) except -1:
    cdef Py_ssize_t index
    for index in range(addresses.shape[0]):
        _put_address(maps + index * MAP_BYTES, addresses[index])
    return 0


cdef inline int _put_address(void* map, uint64_t address) except -1:
    require_success(driver.cuTensorMapReplaceAddress(map, <void*><uintptr_t>address), "cuTensorMapReplaceAddress")
    return 0
